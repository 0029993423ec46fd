"""Figures of forecasts: along the run, by owner, and against the number of owners and ε."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from p2psim.report import notes
from p2psim.report.drawn_forecast import Drawn
from p2psim.report.forecast_maps import FACTORS, alone, budget, budgets, common_notes, left_out, surface

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Cells that have figures of their own.
_MOST = 6

#: Owners that have a bar of their own; so many names of so many characters stand side by side.
_BARS, _UPRIGHT, _SHORT_NAME = 40, 12, 6


def draw_forecasts(cells: Sequence[Drawn], folder: str) -> list[Path]:
    """Draw all figures into a folder; returns the files.

    Raises
    ------
    InputError
        If nothing can be written there.
    """
    from p2psim.report import style

    figures: dict[str, Figure] = {}
    with style.look():
        figures["forecast-run"] = _run(cells)
        for number, cell in enumerate(cells[:_MOST]):
            ending = f"-{number}" if len(cells) > 1 else ""
            if cell.noise.any():
                figures[f"forecast-owners{ending}"] = _owners(cell)
                figures[f"forecast-partners{ending}"] = _partners(cell)
                figures[f"forecast-surface{ending}"] = surface(cell)
                figures[f"forecast-alone{ending}"] = alone(cell)
        if any(cell.noise.any() for cell in cells):
            figures["forecast-budgets"] = budgets(cells)
        return style.save_all(figures, folder)


def _run(cells: Sequence[Drawn]) -> Figure:
    """Expected ψ along the run, what is left without noise, and pilot replicas."""
    from p2psim.report import style

    figure = style.new_figure()
    axes = figure.subplots()
    for number, cell in enumerate(cells[: style.COLOURS]):
        look = style.line_style(number)
        axes.plot(
            cell.steps, cell.psi, color=look["color"], linestyle=look["linestyle"], label=cell.label or "E[ψ]"
        )
        axes.plot(cell.steps, cell.noiseless, color=look["color"], linewidth=0.8, alpha=0.6)
        if cell.calibration is not None:
            steps, mean, error = cell.calibration
            axes.errorbar(
                steps, mean, 2 * error, color=look["color"], linestyle="", marker=look["marker"], markersize=3
            )
    axes.set(xlabel=style.AXIS_LABELS["step"], ylabel="expected ψ (dimensionless)", yscale="log")
    shown = cells[: style.COLOURS]
    style.add_title(axes, "Expected relative fitness along the run")
    style.add_legend(figure, axes)
    pilots = any(cell.calibration is not None for cell in shown)
    remarks = [
        "Thick: E[ψ]; thin: without noise." + (" Points: pilots, ± 2 standard errors." if pilots else "")
    ]
    style.add_footnote(figure, [*remarks, *left_out(len(cells) - len(shown)), *common_notes(shown)])
    return figure


def _owners(cell: Drawn) -> Figure:
    """Share of the noise that is each owner's, in their order; of many, those with the largest shares."""
    from p2psim.report import style

    figure = style.new_figure()
    axes = figure.subplots()
    order = np.sort(np.argsort(-cell.noise, kind="stable")[:_BARS])
    share = 100 * cell.noise / cell.noise.sum()
    axes.bar(np.arange(order.size), share[order], color=style.line_style(0)["color"])
    axes.set_xticks(np.arange(order.size), [cell.owners_named[i] for i in order])
    if order.size > _UPRIGHT or max(len(name) for name in cell.owners_named) > _SHORT_NAME:
        axes.tick_params(axis="x", labelsize="x-small", rotation=90)
    axes.set(xlabel="owner", ylabel="share of the noise (%)")
    axes.grid(False, axis="x")
    style.add_title(axes, f"Whose noise it is{notes.of(cell.label)}")
    remark = "What each owner's noise adds to E[ψ] at the end, as a share of what all add."
    more = f"The {order.size} largest of {cell.owners} shares, in the order of the owners."
    style.add_footnote(figure, [remark, *([more] if cell.owners > order.size else []), *cell.notes])
    return figure


def _partners(cell: Drawn) -> Figure:
    """Expected ψ against the number of average owners at several ε, and what one reaches alone."""
    from p2psim.report import style

    figure = style.new_figure()
    axes = figure.subplots()
    most = max(100, 4 * cell.owners)
    numbers = np.unique(np.geomspace(2, most, 14).round().astype(int))
    for number, factor in enumerate(FACTORS):
        epsilon = factor * cell.epsilon
        psi = np.array([cell.psi_of(int(N), epsilon) for N in numbers])
        shown = np.where(np.isfinite(psi), psi, np.nan)
        axes.plot(numbers, shown, label=budget(epsilon), markersize=4, **style.line_style(number))
    axes.axhline(cell.alone, color="black", linestyle=":", label="alone, without noise")
    axes.set(xlabel="owners N, all alike", ylabel="expected ψ (dimensionless)", yscale="log")
    style.log_ticks(axes)
    style.add_title(axes, f"Does it pay to join?{notes.of(cell.label)}")
    style.add_legend(figure, axes)
    remark = "E[ψ] at the end of N owners like the average one; dotted: mean ψ of the optimum of one's own records."
    style.add_footnote(figure, [remark, *cell.notes])
    return figure
