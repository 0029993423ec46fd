"""Figures of forecasts on graphs: along the run, and agent by agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from p2psim.report import notes
from p2psim.report.forecasts import common_notes, left_out

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Cells that have figures of their own.
_MOST = 6


@dataclass(frozen=True)
class DrawnGraph:
    """What of a forecast on a graph is drawn.

    Attributes
    ----------
    label : str
        What distinguishes the cell from the others: its swept values.
    notes : tuple of str
        What must be said under each figure, such as why the forecast is approximate.
    axis : {"commits", "time"}
    points, expected : ndarray, shape (moments,)
        Moments, and what is expected then.
    noiseless : ndarray, shape (moments,), or None
        The same without noise.
    metric : str
        What it is: the name of a metric.
    alone : float or None
        The same of local models.
    records, apart, apart_alone : ndarray, shape (n,), or None
        Records of each agent, and squared distances to its optimum at the end and alone.
    calibration : tuple or None
        Moments, means and standard errors of pilot replicas.
    """

    label: str
    notes: tuple[str, ...]
    axis: str
    points: np.ndarray
    expected: np.ndarray
    noiseless: np.ndarray | None
    metric: str
    alone: float | None
    records: np.ndarray | None
    apart: np.ndarray | None
    apart_alone: np.ndarray | None
    calibration: tuple[np.ndarray, np.ndarray, np.ndarray] | None


def draw_graph_forecasts(cells: Sequence[DrawnGraph], folder: str) -> list[Path]:
    """Draw all figures into a folder; returns the files.

    Raises
    ------
    InputError
        If nothing can be written there.
    """
    from p2psim.report import style

    figures: dict[str, Figure] = {}
    with style.look():
        for metric in dict.fromkeys(cell.metric for cell in cells):
            some = [cell for cell in cells if cell.metric == metric]
            figures[f"forecast-{metric}"] = _run(some)
        for number, cell in enumerate(cells[:_MOST]):
            if cell.records is not None:
                ending = f"-{number}" if len(cells) > 1 else ""
                figures[f"forecast-agents{ending}"] = _agents(cell)
        return style.save_all(figures, folder)


def _run(cells: Sequence[DrawnGraph]) -> Figure:
    """What is expected along the run, what is left of it without noise, local models, and pilot replicas."""
    from p2psim.report import style

    figure = style.new_figure()
    axes = figure.subplots()
    first = cells[0]
    shown = cells[: style.COLOURS]
    for number, cell in enumerate(shown):
        look = style.line_style(number)
        colour = look["color"]
        axes.plot(
            cell.points,
            cell.expected,
            color=colour,
            linestyle=look["linestyle"],
            label=cell.label or "forecast",
        )
        if cell.noiseless is not None:
            axes.plot(cell.points, cell.noiseless, color=colour, linewidth=0.8, alpha=0.6)
        if cell.calibration is not None:
            at, mean, error = cell.calibration
            axes.errorbar(
                at, mean, 2 * error, color=colour, linestyle="", marker=look["marker"], markersize=3
            )
    local = {cell.alone for cell in shown if cell.alone is not None}
    for number, alone in enumerate(sorted(local)[:3]):
        axes.axhline(
            alone, color="black", linestyle=":", label=None if number else "local models, without noise"
        )
    along = "updates of all agents" if first.axis == "commits" else "time (mean clock periods)"
    axes.set(xlabel=along, ylabel=style.metric_label(first.metric), yscale="log")
    style.add_title(axes, f"Expected {first.metric.replace('_', ' ')} along the run")
    style.add_legend(figure, axes)
    remark = "Thick: what is expected" + ("; thin: without noise." if first.noiseless is not None else ".")
    if any(cell.calibration is not None for cell in shown):
        remark += " Points: pilots, ± 2 standard errors."
    style.add_footnote(figure, [remark, *left_out(len(cells) - len(shown)), *common_notes(shown)])
    return figure


def _agents(cell: DrawnGraph) -> Figure:
    """Each agent's expected squared distance to its optimum together, against that alone; larger for more records."""
    from p2psim.report import style

    assert cell.records is not None
    assert cell.apart is not None
    assert cell.apart_alone is not None
    figure = style.new_figure()
    axes = figure.subplots()
    shown = np.isfinite(cell.apart_alone)
    alone, together = cell.apart_alone[shown], cell.apart[shown]
    sizes = 60 * cell.records[shown] / cell.records.max() + 5
    axes.scatter(alone, together, s=sizes, color=style.line_style(0)["color"], alpha=0.7, label="an agent")
    ends = [min(alone.min(), together.min()), max(alone.max(), together.max())]
    axes.plot(ends, ends, color="black", linestyle=":", label="no difference")
    axes.set(
        xlabel="‖θ − θ*‖² of its own minimiser, without noise",
        ylabel="expected ‖θ − θ*‖² together, at the end",
        xscale="log",
        yscale="log",
    )
    style.add_title(axes, f"Who comes closer to its optimum by joining: below the line{notes.of(cell.label)}")
    style.add_legend(figure, axes)
    style.add_footnote(figure, ["The area of a circle grows with the agent's records.", *cell.notes])
    return figure
