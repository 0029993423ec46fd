"""Figures of forecasts: along the run, by owner, and against the number of owners and ε."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import InputError
from p2psim.report.drawn_forecast import Drawn
from p2psim.report.forecast_maps import alone, budgets, surface

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Cells that have figures of their own.
_MOST = 6

#: Owners that have a bar of their own.
_BARS = 40


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
