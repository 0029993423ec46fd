"""Figures of one panel or of several: their places, the names of their axes, their titles and notes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from p2psim.core.figure_names import MEASURED_AXES
from p2psim.report import notes, style
from p2psim.report.curves import MetricCurve
from p2psim.report.source import Source

#: Panels beside each other, and inches of one.
COLUMNS, WIDTH, HEIGHT = 3, 3.6, 2.5

#: The same of figures of many rows, and characters of a row's name that fit in a line there.
MANY_COLUMNS, LONG_LINE = 5, 60

#: More lines than this in one panel cannot be told apart: then they go to several panels, or become rows.
MOST_LINES = 12

#: More rows than this cannot be read.
MOST_ROWS = 60

#: The horizontal axes of a run, in a title.
_AXIS_WORDS: Mapping[str, str] = {
    "step": "commits",
    "time": "simulated time",
    "vectors_sent": "vectors sent",
    "epsilon": "privacy spent",
}


def axis_label(source: Source) -> str:
    """Label of the horizontal axis."""
    return style.AXIS_LABELS[MEASURED_AXES.get(source.against, source.against)]


def axis_words(source: Source) -> str:
    """Name the horizontal axis in a title."""
    return _AXIS_WORDS[source.against]


def stem(source: Source, name: str) -> str:
    """File name of a figure without its extension."""
    return name if source.against == "step" else f"{name}-{source.against}"


def new_panels(count: int, below: str) -> tuple[Figure, list[Axes]]:
    """A figure of several panels, row by row, whose common horizontal axis is labelled at the lowest ones."""
    columns = min(count, COLUMNS)
    rows = math.ceil(count / columns)
    figure = style.new_figure(WIDTH * columns + 0.6, HEIGHT * rows + 0.8)
    axes = _places(figure, rows, columns, count, sharex=True)
    for place, panel in enumerate(axes):
        # Where the last row is short, those above its gap are the lowest.
        lowest = place + columns >= count
        panel.tick_params(labelbottom=lowest, labelsize="small")
        if lowest:
            panel.set_xlabel(below, fontsize="small")
    return figure, axes


def row_panels(names: Sequence[str], count: int, many: bool | None = None) -> tuple[Figure, list[Axes]]:
    """A figure of several panels whose common vertical axis has a row for each name, the first on top."""
    # Many rows stand close together, with a line each, and then there is room for more panels beside each other.
    many = len(names) > MOST_LINES if many is None else many
    lines = [[name] if many and len(name) <= LONG_LINE else style.broken(name) for name in names]
    columns = min(count, MANY_COLUMNS if many else COLUMNS)
    blocks = math.ceil(count / columns)
    height = 1.0 + len(names) * (0.05 if many else 0.14) + 0.18 * sum(map(len, lines))
    longest = max(len(line) for of_one in lines for line in of_one)
    width = 5.2 if columns == 1 else 1.0 + (2.3 if many else 2.8) * columns
    figure = style.new_figure(width + 0.085 * longest, 0.6 + height * blocks)
    axes = _places(figure, blocks, columns, count, sharey=True)
    axes[0].set_yticks(range(len(lines)), ["\n".join(label) for label in lines], fontsize="small")
    axes[0].set_ylim(len(lines) - 0.5, -0.5)
    for first in axes[::columns]:
        first.tick_params(axis="y", labelsize="small")
    return figure, axes


def _places(figure: Figure, rows: int, columns: int, count: int, **shared: Any) -> list[Axes]:
    """The first places of a grid; the others stay empty."""
    axes: list[Axes] = list(figure.subplots(rows, columns, squeeze=False, **shared).flat)
    for spare in axes[count:]:
        spare.remove()
    return axes[:count]


def grid_panels(rows: Sequence[str], columns: Sequence[str], below: str) -> tuple[Figure, list[list[Axes]]]:
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


def name(axes: Axes, text: str) -> None:
    """Write what a panel shows above it."""
    axes.set_title("\n".join(style.broken(text)) if text else "", loc="left", fontsize="small")


def draw_curve(axes: Axes, curve: MetricCurve, index: int, label: str | None, band: bool = True) -> None:
    """Draw the line with this number in a small panel, with its band."""
    look = style.plain_line(index)
    if band:
        style.shade(axes, curve.x, curve.low, curve.high, look["color"])
    axes.plot(curve.x, curve.median, label=label, linewidth=1.5, **look)
    axes.margins(x=0.02)


def left_out(number: int, most: int = MOST_ROWS, what: str = "rows") -> list[str]:
    """Note on what a figure leaves out that shows ``most`` of something."""
    rest = "--facet KEY draws a figure for each value of a swept key"
    return [f"The first {most} of {number} {what} are drawn; {rest}."] if number > most else []


def changing(source: Source, metrics: Sequence[str]) -> tuple[list[str], list[str]]:
    """Metrics that are worth a panel, since they change, and a note on those that have one value throughout."""
    values = {metric: source.rows(metric)["value"].to_numpy(dtype=float) for metric in metrics}
    constant = [metric for metric in metrics if (values[metric] == values[metric][0]).all()]
    if len(constant) in (0, len(metrics)):
        return list(metrics), []
    known = ", ".join(f"{words(metric)} {values[metric][0]:g}" for metric in constant)
    return [metric for metric in metrics if metric not in constant], [f"Always the same: {known}."]


def words(metric: str) -> str:
    """A metric's name as words of a title."""
    return metric.replace("_", " ")


def finish(
    figure: Figure, axes: Axes, source: Source, x: str, y: str, title: str, remarks: Sequence[str]
) -> None:
    """Write the labels, title, legend, remarks and the notes on the run of a figure of one panel."""
    style.finish(figure, axes, x, y, source.title(title), [*remarks, *notes.run_notes(source)])


def finish_panels(
    figure: Figure, source: Source, title: str, remarks: Sequence[str], legend: Axes | None = None
) -> None:
    """Write the title of the whole figure, the legend of one of its panels, remarks and the notes on the run."""
    width = int(figure.get_figwidth() / style.TITLE_CHARACTER)
    figure.suptitle(style.wrapped(source.title(title), width), x=0.01, ha="left", fontsize="medium")
    if legend is not None:
        style.add_legend(figure, legend)
    style.add_footnote(figure, [*remarks, *notes.run_notes(source)])
