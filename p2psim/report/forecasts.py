"""Figures of forecasts: along the run, by owner, and against the number of owners and ε.

What the figures of forecasts are drawn from.

Figures of who gains by joining: against N and ε, against owners' sizes, and with several sets of partners.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from p2psim.report import notes
from p2psim.report.source import as_text, named

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


@dataclass(frozen=True)
class Drawn:
    """What of a forecast is drawn.

    Attributes
    ----------
    label : str
        What distinguishes the cell from the others: its swept values.
    owners_named : tuple of str, length N
        Labels of the owners.
    notes : tuple of str
        What must be said under each figure, such as why the forecast is approximate.
    steps, psi, noiseless : ndarray, shape (records,)
        Answers, E[ψ], and E[ψ] without noise.
    noise : ndarray, shape (N,)
        What each owner's noise adds at the end.
    alone : float
        Mean isolated ψ.
    epsilon : float
        Equal ε of average owners.
    owners : int
        N.
    psi_of : callable
        E[ψ] of (number of average owners, ε).
    records, isolated : ndarray, shape (N,)
        n_i, and the ψ that each owner reaches alone.
    psi_at : callable
        E[ψ] of a factor by which all budgets are multiplied; infinite where it is no number.
    calibration : tuple or None
        Steps, means and standard errors of pilot replicas.
    """

    label: str
    owners_named: tuple[str, ...]
    notes: tuple[str, ...]
    steps: np.ndarray
    psi: np.ndarray
    noiseless: np.ndarray
    noise: np.ndarray
    alone: float
    epsilon: float
    owners: int
    psi_of: Callable[[int, float], float]
    records: np.ndarray
    isolated: np.ndarray
    psi_at: Callable[[float], float]
    calibration: tuple[np.ndarray, np.ndarray, np.ndarray] | None


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
