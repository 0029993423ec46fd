"""Percentile bands of metrics against commits or time, one line for each swept value; and figures of several panels.

`draw_curves` draws any recorded metric, and `draw_fitness` the relative fitness ψ (F figure 2). Panels are small
multiples with one legend.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from p2psim.core.errors import InputError
from p2psim.core.figure_names import MEASURED_AXES
from p2psim.network.metrics import NETWORK_METRICS
from p2psim.report import notes, style
from p2psim.report.curves import curves
from p2psim.report.source import FITNESS, Source

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Markers along a line.
MARKS = 9


def band_figure(source: Source, metric: str, log: bool | None = None) -> "Figure":
    """Draw the median and the band of a metric against steps or time.

    Parameters
    ----------
    source : Source
        The run.
    metric : str
        Name of the metric.
    log : bool, optional
        Log axis for the values, unless the source says it. By default, when all are positive and span more than a
        factor of 100. A log axis is given up when there is no positive value at all.
    """
    drawn = curves(source, metric)
    values = np.concatenate([v for c in drawn for v in (c.low, c.median, c.high)])
    values = values[np.isfinite(values)]
    log = style.is_log(log if source.log is None else source.log, values) and bool(np.any(values > 0))
    figure = style.new_figure()
    axes = figure.add_subplot()
    if log:
        axes.set_yscale("log", nonpositive="mask")
    shade = 0.2 if len(drawn) <= 6 else 0.1
    for index, curve in enumerate(drawn):
        look = style.line_style(index)
        # Lines start their markers at different places, so that they stay apart where lines run together.
        gap = max(1, len(curve.x) // MARKS)
        start = index * gap // len(drawn)
        axes.fill_between(curve.x, curve.low, curve.high, color=look["color"], alpha=shade, linewidth=0)
        axes.plot(
            curve.x, curve.median, label=curve.label or None, markevery=(start, gap),
            markersize=5, linewidth=1.6, **look,
        )  # fmt: skip
    axes.set_xlabel(axis_label(source))
    axes.set_ylabel(style.metric_label(metric))
    style.add_title(axes, source.title(f"{metric.replace('_', ' ')} against {axis_words(source)}"))
    axes.margins(x=0.02)
    style.few_ticks(axes)
    if log:
        style.few_decades(axes, values)
    style.add_legend(figure, axes)
    compared = notes.comparability([metric], source.swept)
    style.add_footnote(figure, [*notes.curve_notes(drawn, log, source), *compared, *notes.run_notes(source)])
    return figure


def axis_label(source: Source) -> str:
    """Label of the horizontal axis."""
    return style.AXIS_LABELS[MEASURED_AXES.get(source.against, source.against)]


def axis_words(source: Source) -> str:
    """Name the horizontal axis in a title."""
    words = {"step": "commits", "time": "simulated time", "vectors_sent": "vectors sent"}
    return {**words, "epsilon": "privacy spent"}[source.against]


def stem(source: Source, name: str) -> str:
    """File name of a figure without its extension."""
    return name if source.against == "step" else f"{name}-{source.against}"


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


def draw_curves(source: Source) -> "dict[str, Figure]":
    """Percentile bands of the metric asked for, or of every metric that has no figure of its own.

    Unless asked for, a metric that never changes in any run, such as ``isolated_fitness``, is no curve: ``finals``
    shows it. Nor is one that is an axis, nor that of a group or of the network, which ``groups`` and ``network``
    show beside others.

    Raises
    ------
    InputError
        If the run did not record it, or has no other metric that changes.
    """
    names = [source.metric] if source.metric else [name for name in _others(source) if _changes(source, name)]
    if not names:
        raise InputError(f"the run has no metric besides {FITNESS} that changes; add one to record.metrics")
    return {stem(source, f"curves-{name}"): band_figure(source, name) for name in names}


def _others(source: Source) -> list[str]:
    left_out = (FITNESS, *MEASURED_AXES.values(), *NETWORK_METRICS)
    return [name for name in source.recorded() if name not in left_out and not name.endswith("]")]


def _changes(source: Source, metric: str) -> bool:
    rows = source.rows(metric)
    one = rows["agent"].astype("Int64").fillna(-9)
    values = rows.groupby(["cell", "model", "replica", one], observed=True)["value"]
    return bool((values.nunique(dropna=False) > 1).any())


def draw_fitness(source: Source) -> "dict[str, Figure]":
    """Percentile bands of ψ on a log axis, a line for each swept value.

    Raises
    ------
    InputError
        If the run did not record ``relative_fitness``, or another metric is asked for.
    """
    if source.metric not in (None, FITNESS):
        raise InputError(f"fitness draws {FITNESS}; the kind for {source.metric} is curves")
    return {stem(source, "fitness"): band_figure(source, FITNESS, log=True)}
