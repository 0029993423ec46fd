"""Metrics of the network along the run, and why messages did not arrive."""

from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import InputError
from p2psim.network.metrics import NETWORK_METRICS
from p2psim.report import notes, style
from p2psim.report.bands import axis_label, axis_words, stem
from p2psim.report.curves import curves
from p2psim.report.panels import apart, entitle, name, panels
from p2psim.report.source import Source

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Why an attempt to deliver a message fails: the metrics that are its shares, and what a person calls them.
CAUSES = {
    "loss_rate": "lost by the channel",
    "collision_rate": "collided",
    "offline_rate": "receiver away",
    "unsent_rate": "never sent",
}

#: Cells of the figure of causes, each of which has a panel.
MOST_CELLS = 24

#: Bands are drawn for up to so many lines; more would hide each other.
MOST_BANDS = 6


def recorded_of_network(source: Source) -> list[str]:
    """Metrics of the network that the run recorded, or the one that is asked for, in the order of their table.

    Raises
    ------
    InputError
        If there is none.
    """
    wanted = source.recorded() if source.metric is None else [source.metric]
    found = [metric for metric in NETWORK_METRICS if metric in wanted and metric in source.recorded()]
    if not found:
        raise InputError(
            f"the run recorded no such metric of the network; record.metrics can name {', '.join(NETWORK_METRICS)}"
        )
    return found


def draw_network(source: Source) -> "dict[str, Figure]":
    """A panel for each metric of the network, and stacked causes of failure with a panel for each cell.

    Raises
    ------
    InputError
        If no metric of the network was recorded.
    """
    names = recorded_of_network(source)
    figures = {stem(source, "network"): _metrics(source, names)}
    causes = [metric for metric in CAUSES if metric in names and (source.rows(metric)["value"] > 0).any()]
    if causes and source.metric is None and source.metrics["cell"].nunique() <= MOST_CELLS:
        figures[stem(source, "network-causes")] = _causes(source, causes)
    return figures


def _metrics(source: Source, names: list[str]) -> "Figure":
    names, constant = apart(source, names)
    figure, grid = panels(len(names), axis_label(source))
    drawn = []
    for axes, metric in zip(grid, names, strict=True):
        drawn = curves(source, metric)
        for index, curve in enumerate(drawn):
            look = style.line_style(index)
            if len(drawn) <= MOST_BANDS:
                axes.fill_between(
                    curve.x, curve.low, curve.high, color=look["color"], alpha=0.15, linewidth=0
                )
            axes.plot(
                curve.x, curve.median, label=curve.label or None, linewidth=1.5, color=look["color"],
                linestyle=look["linestyle"],
            )  # fmt: skip
        name(axes, metric.replace("_", " "))
        axes.margins(x=0.02)
    entitle(figure, source, f"the network against {axis_words(source)}")
    style.add_legend(figure, grid[0])
    replicas = notes.between([curve.replicas for curve in drawn])
    band = " and 25 to 75 %" if len(drawn) <= MOST_BANDS else ""
    remarks = [f"Median{band} of {replicas} replicas."]
    if constant:
        remarks.append(f"Always the same: {', '.join(constant)}.")
    style.add_footnote(figure, [*remarks, *notes.run_notes(source)])
    return figure


def _causes(source: Source, causes: list[str]) -> "Figure":
    by_cause = [curves(source, metric) for metric in causes]
    cells = len(by_cause[0])
    figure, grid = panels(cells, axis_label(source))
    top = 0.0
    for place, axes in enumerate(grid):
        lines = [of_cells[place] for of_cells in by_cause]
        heights = np.array([line.mean for line in lines])
        looks = [style.line_style(index)["color"] for index in range(len(causes))]
        axes.stackplot(lines[0].x, heights, colors=looks, labels=[CAUSES[c] for c in causes], alpha=0.85)
        top = max(top, float(heights.sum(axis=0).max()))
        name(axes, lines[0].label)
        axes.margins(x=0)
    for axes in grid:
        axes.set_ylim(0, min(1.0, 1.1 * top) or 1.0)
    figure.supylabel("share of attempts so far that failed", fontsize="medium")
    entitle(figure, source, f"why messages did not arrive, against {axis_words(source)}")
    style.add_legend(figure, grid[0])
    left = [CAUSES[cause] for cause in CAUSES if cause not in source.recorded()]
    remarks = ["Mean over replicas. An attempt is a message to one receiver, each time that it is sent."]
    if left:
        remarks.append(f"Not recorded: {', '.join(left)}.")
    style.add_footnote(figure, [*remarks, *notes.run_notes(source)])
    return figure
