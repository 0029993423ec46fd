"""A metric of all agents, of each group of them, and of the worst tenth, side by side."""

from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import InputError
from p2psim.report import notes, style
from p2psim.report.bands import axis_label, axis_words, stem
from p2psim.report.curves import Curve, curves
from p2psim.report.panels import entitle, name, panels
from p2psim.report.source import Source
from p2psim.study.recordable import label_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Metrics of the worst tenth of agents, by the metric of all of them.
WORST = {"test_accuracy": "worst_decile_accuracy"}

#: Cells and models, each of which has a panel.
MOST_PANELS = 24


def draw_groups(source: Source) -> "dict[str, Figure]":
    """A panel for each cell and model, with a line for all agents, each group, and the worst tenth.

    Raises
    ------
    InputError
        If nothing of groups was recorded, or there are too many cells for a figure.
    """
    parts = {metric: parts_of(source, metric) for metric in wholes(source)}
    if not parts:
        raise InputError(
            "the run recorded nothing of groups; set record.by: group, or record worst_decile_accuracy"
        )
    return {stem(source, f"groups-{metric}"): _figure(source, metric, of) for metric, of in parts.items()}


def wholes(source: Source) -> list[str]:
    """Metrics of all agents that the run has of some of them too, or the one of them that is asked for."""
    recorded = source.recorded()
    found = [
        metric
        for metric in recorded
        if WORST.get(metric) in recorded or any(other.startswith(f"{metric}[") for other in recorded)
    ]
    return found if source.metric is None else [metric for metric in found if metric == source.metric]


def parts_of(source: Source, metric: str) -> dict[str, str]:
    """Names of the lines, by the metric that each shows."""
    groups = [other for other in source.recorded() if other.startswith(f"{metric}[")]
    worst = [other for other in [WORST.get(metric)] if other in source.recorded()]
    return {
        metric: "all agents",
        **{group: group.removeprefix(f"{metric}[").removesuffix("]") for group in groups},
        **{str(one): "worst tenth" for one in worst},
    }


def _figure(source: Source, metric: str, parts: dict[str, str]) -> "Figure":
    drawn = {part: {curve.label: curve for curve in curves(source, part)} for part in parts}
    labels = list(dict.fromkeys(label for of_part in drawn.values() for label in of_part))
    if len(labels) > MOST_PANELS:
        raise InputError(f"{len(labels)} cells and models are too many panels for one figure")
    figure, grid = panels(len(labels), axis_label(source))
    shown: list[Curve] = []
    for axes, label in zip(grid, labels, strict=True):
        for index, (part, of_part) in enumerate(drawn.items()):
            if label not in of_part:
                continue
            curve, look = of_part[label], style.line_style(index)
            axes.fill_between(curve.x, curve.low, curve.high, color=look["color"], alpha=0.15, linewidth=0)
            axes.plot(
                curve.x, curve.median, label=parts[part], linewidth=1.5, color=look["color"],
                linestyle=look["linestyle"],
            )  # fmt: skip
            shown.append(curve)
        name(axes, label)
        axes.margins(x=0.02)
    values = np.concatenate([part for curve in shown for part in (curve.low, curve.median, curve.high)])
    values = values[np.isfinite(values)]
    if values.size and np.ptp(values) > 0:
        room = 0.05 * np.ptp(values)
        for axes in grid:
            axes.set_ylim(values.min() - room, values.max() + room)
    figure.supylabel(label_of(metric), fontsize="medium")
    entitle(figure, source, f"{metric.replace('_', ' ')} of groups against {axis_words(source)}")
    style.add_legend(figure, grid[0])
    style.add_footnote(figure, [*notes.curve_notes(shown, False, source), *notes.run_notes(source)])
    return figure
