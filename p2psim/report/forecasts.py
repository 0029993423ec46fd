"""Figures of forecasts: along the run, by owner, and against the number of owners and ε."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Cells that have figures of their own.
_MOST = 6

#: Owners that have a bar of their own.
_BARS = 40


@dataclass(frozen=True)
class Drawn:
    """What of a forecast is drawn.

    Attributes
    ----------
    label : str
        Swept values of the cell.
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
    calibration : tuple or None
        Steps, means and standard errors of pilot replicas.
    """

    label: str
    steps: np.ndarray
    psi: np.ndarray
    noiseless: np.ndarray
    noise: np.ndarray
    alone: float
    epsilon: float
    owners: int
    psi_of: Callable[[int, float], float]
    calibration: tuple[np.ndarray, np.ndarray, np.ndarray] | None


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
        return save_all(figures, folder)


def save_all(figures: Mapping[str, Figure], folder: str) -> list[Path]:
    """Save figures by the stems of their files.

    Raises
    ------
    InputError
        If nothing can be written there.
    """
    from p2psim.report import style

    into = Path(folder)
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write figures into {into}: {error.strerror or error}") from error
    return [path for stem, figure in figures.items() for path in style.save(figure, into, stem)]


def _run(cells: Sequence[Drawn]) -> Figure:
    """Expected ψ along the run, what is left without noise, and pilot replicas."""
    from p2psim.report import style

    figure = style.new_figure()
    axes = figure.subplots()
    for number, cell in enumerate(cells[: style.COLOURS]):
        look = style.line_style(number)
        axes.plot(
            cell.steps, cell.psi, color=look["color"], linestyle=look["linestyle"], label=cell.label or "ψ"
        )
        axes.plot(cell.steps, cell.noiseless, color=look["color"], linewidth=0.8, alpha=0.6)
        if cell.calibration is not None:
            steps, mean, error = cell.calibration
            axes.errorbar(
                steps, mean, 2 * error, color=look["color"], linestyle="", marker=look["marker"], markersize=3
            )
    axes.set(xlabel=style.AXIS_LABELS["step"], ylabel="expected ψ (dimensionless)", yscale="log")
    axes.set_title(
        "Forecast; thin: without noise" + ("; points: pilots ± 2 s.e." if cells[0].calibration else "")
    )
    axes.legend()
    return figure


def _owners(cell: Drawn) -> Figure:
    """Share of the noise that is each owner's, largest first."""
    from p2psim.report import style

    figure = style.new_figure()
    axes = figure.subplots()
    order = np.argsort(-cell.noise, kind="stable")[:_BARS]
    share = 100 * cell.noise / cell.noise.sum()
    axes.bar(np.arange(order.size), share[order], color=style.line_style(0)["color"])
    axes.set_xticks(np.arange(order.size), [str(i) for i in order], fontsize="x-small", rotation=90)
    axes.set(xlabel="owner", ylabel="share of the noise (%)")
    more = f", the first {order.size} of {cell.owners}" if cell.owners > order.size else ""
    axes.set_title(f"Whose noise it is{more}{': ' if cell.label else ''}{cell.label}")
    return figure


def _partners(cell: Drawn) -> Figure:
    """Expected ψ against the number of average owners at several ε, and what one reaches alone."""
    from p2psim.report import style

    figure = style.new_figure()
    axes = figure.subplots()
    most = max(100, 4 * cell.owners)
    numbers = np.unique(np.geomspace(2, most, 14).round().astype(int))
    for number, factor in enumerate((0.1, 0.3, 1.0, 3.0, 10.0)):
        epsilon = factor * cell.epsilon
        psi = np.array([cell.psi_of(int(N), epsilon) for N in numbers])
        shown = np.where(np.isfinite(psi), psi, np.nan)
        axes.plot(numbers, shown, label=f"ε = {epsilon:.3g}", markersize=4, **style.line_style(number))
    axes.axhline(cell.alone, color="black", linestyle=":", label="alone, without noise")
    axes.set(xlabel="owners N, all alike", ylabel="expected ψ (dimensionless)", xscale="log", yscale="log")
    axes.set_title(f"Does it pay to join?{' ' if cell.label else ''}{cell.label}")
    axes.legend()
    return figure
