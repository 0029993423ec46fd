"""Figures of a metric by agents' numbers of records (B figure 3), and of a metric by groups of agents.

The figure by groups shows all agents, each group, and the worst tenth side by side.
"""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from p2psim.core.errors import InputError
from p2psim.report import notes, style
from p2psim.report.curves import Curve, curves, labels, quartiles
from p2psim.report.figures.bands import axis_label, axis_words, entitle, name, panels, stem
from p2psim.report.source import FITNESS, Source
from p2psim.scenario.record import label_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Agents are gathered in so many groups of equal size, by their records.
BINS = 8


def draw_agents(source: Source) -> "dict[str, Figure]":
    """Quartiles over agents of like numbers of records, at the last record, a line for each cell and model.

    Raises
    ------
    InputError
        If no metric was recorded of single agents, or all have the same number of records.
    """
    of_each = source.metrics[source.metrics["agent"].notna() & (source.metrics["metric"] != FITNESS)]
    names = sorted(map(str, of_each["metric"].unique()))
    if source.metric is not None:
        names = [name for name in names if name == source.metric]
    if not names:
        raise InputError("the run recorded no metric of single agents; name one in record.per_agent")
    return {f"agents-{name}": _figure(source, name) for name in names}


def _figure(source: Source, metric: str) -> "Figure":
    table = by_records(source, metric)
    edges = _edges(table["records"].to_numpy(dtype=float))
    figure = style.new_figure()
    axes = figure.add_subplot()
    named = labels(source.swept, table)
    drawn: set[tuple[object, ...]] = set()
    index = 0
    for _, group in table.groupby(["cell", "model"], sort=True, observed=True):
        head = tuple(group[[*source.swept, "model"]].iloc[0])
        x, low, median, high = _binned(group, edges)
        values = (head[-1], *median.round(12))
        # A baseline that nothing swept changes is drawn once.
        if head[-1] != "main" and values in drawn:
            continue
        drawn.add(values)
        look = style.line_style(index)
        index += 1
        label = str(head[-1]) if head[-1] != "main" else named[head] or None
        axes.fill_between(x, low, high, color=look["color"], alpha=0.15, linewidth=0)
        axes.plot(x, median, label=label, markersize=6, linewidth=1.6, **look)
    axes.set_xlabel("records of an agent (number)")
    axes.set_ylabel(style.metric_label(metric))
    style.add_title(axes, source.title(f"{metric.replace('_', ' ')} of agents by their records"))
    style.add_legend(figure, axes)
    count = len(edges) - 1
    remark = (
        f"Last record: median and 25 to 75 % over agents and replicas, in {count} groups of agents with like numbers "
        "of records, drawn at the group's mean."
    )
    style.add_footnote(figure, [remark, *notes.run_notes(source)])
    return figure


def by_records(source: Source, metric: str) -> pd.DataFrame:
    """Last values of single agents, with the number of their records in the column ``records``.

    Raises
    ------
    InputError
        If all agents have the same number of records.
    """
    rows = source.rows(metric)
    rows = rows[rows["agent"].notna()].sort_values(["step", "time"], kind="stable")
    last = rows.drop_duplicates(["cell", "model", "replica", "agent"], keep="last")
    agents = source.agents.rename(columns={"index": "agent"})[["cell", "replica", "agent", "records"]]
    table = last.astype({"agent": "int64"}).merge(
        agents.astype({"agent": "int64"}), on=["cell", "replica", "agent"]
    )
    if table["records"].nunique() < 2:
        raise InputError("all agents have the same number of records, so there is nothing to draw against")
    return table


def _edges(records: np.ndarray) -> np.ndarray:
    return np.unique(np.quantile(records, np.linspace(0, 1, BINS + 1)))


def _binned(group: pd.DataFrame, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean number of records and quartiles of the values in each group that has agents."""
    records, values = group["records"].to_numpy(dtype=float), group["value"].to_numpy(dtype=float)
    place = np.clip(np.searchsorted(edges, records, side="right") - 1, 0, len(edges) - 2)
    used = np.unique(place)
    x = np.array([records[place == k].mean() for k in used])
    low, median, high = np.array([quartiles(values[place == k][None, :])[:, 0] for k in used]).T
    return x, low, median, high


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
    return {
        stem(source, f"groups-{metric}"): _figure_of_groups(source, metric, of)
        for metric, of in parts.items()
    }


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


def _figure_of_groups(source: Source, metric: str, parts: dict[str, str]) -> "Figure":
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
