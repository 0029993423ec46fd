"""Figures of several panels: small multiples with one legend."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from p2psim.report import style
from p2psim.report.source import Source

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Panels beside each other, and inches of one.
COLUMNS, WIDTH, HEIGHT = 3, 3.6, 2.5


def panels(count: int, below: str) -> "tuple[Figure, list[Axes]]":
    """A figure of so many panels, row by row, whose common horizontal axis is labelled at the lowest ones."""
    columns = min(count, COLUMNS)
    rows = math.ceil(count / columns)
    figure = style.new_figure(WIDTH * columns + 0.6, HEIGHT * rows + 0.8)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True)
    axes = list(grid.flat)
    for spare in axes[count:]:
        spare.remove()
    for place in range(count):
        # Where the last row is short, those above its gap are the lowest.
        lowest = place + columns >= count
        axes[place].tick_params(labelbottom=lowest, labelsize="small")
        if lowest:
            axes[place].set_xlabel(below, fontsize="small")
    return figure, axes[:count]


def apart(source: Source, metrics: Sequence[str]) -> tuple[list[str], list[str]]:
    """Metrics that are worth a panel, since they change, and those that have one value throughout, with it."""
    values = {metric: source.rows(metric)["value"].to_numpy(dtype=float) for metric in metrics}
    changing = [metric for metric in metrics if not (values[metric] == values[metric][0]).all()]
    told = [
        f"{metric.replace('_', ' ')} {values[metric][0]:g}" for metric in metrics if metric not in changing
    ]
    return (changing, told) if changing else (list(metrics), [])


def name(axes: "Axes", text: str) -> None:
    """Write what a panel shows above it."""
    axes.set_title("\n".join(style.broken(text)) if text else "", loc="left", fontsize="small")


def entitle(figure: "Figure", source: Source, text: str) -> None:
    """Write the title of the whole figure."""
    width = int(figure.get_figwidth() / style.TITLE_CHARACTER)
    figure.suptitle(style.wrapped(source.title(text), width), x=0.01, ha="left", fontsize="medium")
