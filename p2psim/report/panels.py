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

#: The same of figures of many rows, and characters of a row's name that fit in a line there.
MANY_COLUMNS, LONG_LINE = 5, 60

#: More lines than this in one panel cannot be told apart: then they go to several panels, or become rows.
MOST_LINES = 12

#: More rows than this cannot be read.
MOST_ROWS = 60


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


def row_panels(names: Sequence[str], count: int) -> "tuple[Figure, list[Axes]]":
    """A figure of so many panels whose common vertical axis has a row for each name, the first on top."""
    # Many rows stand close together, with a line each, and then there is room for more panels beside each other.
    many = len(names) > MOST_LINES
    lines = [[name] if many and len(name) <= LONG_LINE else style.broken(name) for name in names]
    columns = min(count, MANY_COLUMNS if many else COLUMNS)
    blocks = math.ceil(count / columns)
    height = 1.0 + len(names) * (0.05 if many else 0.14) + 0.18 * sum(map(len, lines))
    longest = max(len(line) for of_one in lines for line in of_one)
    width = 5.2 if columns == 1 else 1.0 + (2.3 if many else 2.8) * columns
    figure = style.new_figure(width + 0.085 * longest, 0.6 + height * blocks)
    grid = figure.subplots(blocks, columns, squeeze=False, sharey=True)
    axes = list(grid.flat)
    for spare in axes[count:]:
        spare.remove()
    axes[0].set_yticks(range(len(names)), ["\n".join(of_one) for of_one in lines], fontsize="small")
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    for first in axes[::columns]:
        first.tick_params(axis="y", labelsize="small")
    return figure, axes[:count]


def grid_panels(rows: Sequence[str], columns: Sequence[str], below: str) -> "tuple[Figure, list[list[Axes]]]":
    """A figure of rows and columns of small panels, named at the left and on top; rows share their vertical axis."""
    figure = style.new_figure(1.2 + 2.7 * len(columns), 1.2 + 1.7 * len(rows))
    grid = figure.subplots(len(rows), len(columns), squeeze=False, sharex=True, sharey="row")
    for text, axes in zip(rows, grid[:, 0], strict=True):
        axes.set_ylabel(style.wrapped(text, 18), fontsize="small")
    for text, axes in zip(columns, grid[0], strict=True):
        name(axes, text)
    for axes in grid[-1]:
        axes.set_xlabel(style.wrapped(below, 26), fontsize="small")
    for axes in grid.flat:
        axes.tick_params(labelsize="small")
    return figure, [list(row) for row in grid]


def left_out(rows: int) -> list[str]:
    """Note on the rows that a figure of rows leaves out."""
    if rows <= MOST_ROWS:
        return []
    return [
        f"The first {MOST_ROWS} of {rows} rows are drawn; --facet KEY draws a figure for each value of a swept key."
    ]


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
