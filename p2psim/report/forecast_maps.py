"""Figures of who gains by joining: against N and ε, against owners' sizes, and with several sets of partners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from p2psim.report import notes
from p2psim.report.drawn_forecast import Drawn
from p2psim.report.source import as_text, named

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Captioned(Protocol):
    """A cell that has a label and notes."""

    @property
    def label(self) -> str:
        """What distinguishes it from the others."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What must be said under each of its figures."""


#: Factors of all budgets that lines are drawn at.
FACTORS = (0.1, 0.3, 1.0, 3.0, 10.0)


def surface(cell: Drawn) -> Figure:
    """Expected ψ over the number of average owners and ε, and where it is what one reaches alone."""
    from matplotlib.colors import LogNorm

    from p2psim.report import style

    figure = style.new_figure()
    axes = figure.subplots()
    numbers = np.unique(np.geomspace(2, max(100, 4 * cell.owners), 16).round().astype(int))
    epsilons = cell.epsilon * np.geomspace(0.1, 10, 17)
    psi = np.array([[cell.psi_of(int(N), float(epsilon)) for N in numbers] for epsilon in epsilons])
    shown = np.ma.masked_invalid(psi)
    if shown.count() == 0:
        axes.text(0.5, 0.5, "the step is unstable for all of these", transform=axes.transAxes, ha="center")
        style.add_footnote(figure, cell.notes)
        return figure
    norm = LogNorm(float(shown.min()), max(float(shown.max()), float(shown.min()) * 10))
    mesh = axes.pcolormesh(numbers, epsilons, shown, norm=norm, cmap="viridis_r", shading="nearest")
    figure.colorbar(mesh, label="expected ψ (dimensionless)")
    if shown.min() < cell.alone < shown.max():
        axes.contour(numbers, epsilons, shown, levels=[cell.alone], colors="black")
        where = "above the black line it pays"
    else:
        where = "it pays everywhere here" if shown.max() <= cell.alone else "it pays nowhere here"
    axes.set(yscale="log", xlabel="owners N, all alike", ylabel="privacy budget ε per owner")
    style.log_ticks(axes)
    style.add_title(axes, f"Does it pay to join? {where[0].upper()}{where[1:]}{notes.of(cell.label)}")
    remark = "E[ψ] at the end of N owners like the average one; it pays where that is less than the mean ψ of one alone"
    style.add_footnote(figure, [f"{remark}, without noise.", *cell.notes])
    return figure


def alone(cell: Drawn) -> Figure:
    """What each owner reaches alone against its size; horizontal lines are what all reach together at several ε."""
    from p2psim.report import style

    figure = style.new_figure()
    axes = figure.subplots()
    axes.plot(
        cell.records, cell.isolated, "o", color="black", markersize=4, label="each owner alone, without noise"
    )
    for number, factor in enumerate(FACTORS):
        psi = cell.psi_at(factor)
        if np.isfinite(psi):
            look = style.line_style(number)
            label = f"together, {budget(factor * cell.epsilon)}"
            axes.axhline(psi, color=look["color"], linestyle=look["linestyle"], label=label)
    axes.set(xlabel="records of the owner (number)", ylabel="ψ (dimensionless)", yscale="log")
    style.log_ticks(axes)
    style.add_title(axes, f"Who gains: owners above a line{notes.of(cell.label)}")
    style.add_legend(figure, axes)
    remark = "Point: ψ of the optimum of an owner's own records, without noise. Line: E[ψ] of all owners at the end"
    style.add_footnote(figure, [f"{remark}; all budgets are multiplied alike.", *cell.notes])
    return figure


def budgets(cells: Sequence[Drawn]) -> Figure:
    """Expected ψ of several sets of partners against ε, and what the first owner reaches alone in each."""
    from p2psim.report import style

    figure = style.new_figure()
    axes = figure.subplots()
    factors = np.geomspace(0.01, 100, 33)
    noisy = [cell for cell in cells if cell.noise.any()][: style.COLOURS]
    for number, cell in enumerate(noisy):
        psi = np.array([cell.psi_at(float(factor)) for factor in factors])
        look = style.line_style(number)
        axes.plot(
            factors * cell.epsilon,
            np.where(np.isfinite(psi), psi, np.nan),
            color=look["color"],
            linestyle=look["linestyle"],
            label=cell.label or "together",
        )
        axes.axhline(cell.isolated[0], color=look["color"], linestyle=":", linewidth=1)
    axes.set(
        xlabel="privacy budget ε (all owners' multiplied alike)",
        ylabel="expected ψ (dimensionless)",
        yscale="log",
    )
    style.log_ticks(axes)
    style.add_title(axes, "From which budget on it pays")
    style.add_legend(figure, axes)
    remark = "Line: E[ψ] of all owners at the end. Dotted, in its colour: ψ of the optimum of the first owner's records"
    more = sum(bool(cell.noise.any()) for cell in cells) - len(noisy)
    style.add_footnote(figure, [f"{remark}, without noise.", *left_out(more), *common_notes(noisy)])
    return figure


def budget(epsilon: float) -> str:
    """What a legend says of a budget, in three digits."""
    return named("ε", as_text(float(f"{epsilon:.3g}")))


def left_out(cells: int) -> list[str]:
    """Say that more cells there are than colours."""
    return [f"{cells} more cells are not drawn."] if cells > 0 else []


def common_notes(cells: Sequence[Captioned]) -> list[str]:
    """Notes of several cells, each once; of one that not all have, which they are."""
    told: dict[str, list[str]] = {}
    for cell in cells:
        for note in cell.notes:
            told.setdefault(note, []).append(cell.label)
    return [
        note if len(which) == len(cells) else f"{note} (In {len(which)} of {len(cells)} cells.)"
        for note, which in told.items()
    ]
