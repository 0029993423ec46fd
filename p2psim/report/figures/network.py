"""Metrics of the network along the run, and why messages did not arrive."""

import numpy as np
from matplotlib.figure import Figure

from p2psim.core.errors import InputError
from p2psim.network.metrics import NETWORK_METRICS
from p2psim.report import notes, panels, style
from p2psim.report.channels import Plan
from p2psim.report.curves import finals
from p2psim.report.figures.bands import band_figure
from p2psim.report.source import Source

#: Why an attempt to deliver a message fails: the metrics that are its shares, and what a person calls them.
CAUSES = {
    "loss_rate": "lost by the channel",
    "collision_rate": "collided",
    "offline_rate": "receiver away",
    "unsent_rate": "never sent",
}


def draw_network(source: Source) -> dict[str, Figure]:
    """A panel for each metric of the network, and causes of failure in a bar for each cell.

    Where lines are too many for one panel, each metric has a figure with panels of its own.

    Raises
    ------
    InputError
        If no metric of the network was recorded.
    """
    names = [m for m in NETWORK_METRICS if m in source.recorded() and source.metric in (None, m)]
    if not names:
        raise InputError(
            f"the run recorded no such metric of the network; record.metrics can name {', '.join(NETWORK_METRICS)}"
        )
    title = f"the network against {panels.axis_words(source)}"
    if len(Plan(source).titles) <= panels.MOST_COLUMNS:
        figures = {panels.stem(source, "network"): band_figure(source, names, title)}
    else:
        figures = {
            panels.stem(source, f"network-{name}"): band_figure(source, [name], title)
            for name in panels.changing(source, names)[0]
        }
    causes = [metric for metric in CAUSES if metric in names and (source.rows(metric)["value"] > 0).any()]
    if causes and source.metric is None:
        figures["network-causes"] = _causes(source, causes)
    return figures


def _causes(source: Source, causes: list[str]) -> Figure:
    """A bar for each cell: shares of all attempts until the end that failed, by their cause, one beside the other."""
    plan = Plan(source, panels=False)
    lines = {line.number: line.label or source.main for line in plan.lines}
    shown = list(lines)[: panels.MOST_ROWS]
    of_cell = {cell: line.number for cell, line in plan.of_cell.items()}
    figure, (axes,) = panels.row_panels([lines[number] for number in shown], 1)
    left = np.zeros(len(shown))
    for cause, colour in zip(causes, style.colours(len(causes)), strict=True):
        table = finals(source, cause)
        width = table.groupby(table["cell"].map(of_cell))["value"].mean().loc[shown].to_numpy(dtype=float)
        axes.barh(range(len(width)), width, left=left, color=colour, height=0.7, label=CAUSES[cause])
        style.note(axes, CAUSES[cause], np.arange(len(width)), width)
        left = left + width
    axes.set_xlim(0, min(1.0, 1.08 * float(left.max())) or 1.0)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("share of all attempts that failed (fraction), lower is better")
    style.add_legend(figure, axes)
    counts = source.metrics.groupby("cell")["replica"].nunique().tolist()
    remarks = [f"n = {notes.replicas(counts)}; bar: mean.", *panels.left_out(len(lines))]
    panels.finish(figure, source, "why messages did not arrive", remarks)
    return figure
