"""Figures of one panel or of several: their places, lines, names, titles and notes."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from p2psim.core.errors import InputError
from p2psim.core.figures import MEASURED_AXES
from p2psim.core.intervals import mean_interval
from p2psim.network.metrics import NETWORK_METRICS
from p2psim.report import notes, scales, style
from p2psim.report.channels import MOST_LINES, MOST_PANELS, Plan
from p2psim.report.curves import Drawn, MetricCurve
from p2psim.report.source import Source
from p2psim.report.words import number, words

T = TypeVar("T")

#: More rows than this cannot be read.
MOST_ROWS = 60

#: More columns than this of a figure whose rows are metrics.
MOST_COLUMNS = 6

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
    return name if source.against == source.usual else f"{name}-{source.against}"


def new_panels(
    count: int, below: str, sharey: bool = False, sharex: bool = True
) -> tuple[Figure, list[Axes]]:
    """A figure of several panels, row by row, whose common horizontal axis is labelled at the lowest ones."""
    columns = min(count, style.fitting(2.5, 4))
    if columns == 3 and count == 4:
        columns = 2
    rows = math.ceil(count / columns)
    height = 0.58 if columns == 1 else (0.72 if rows > 1 else 0.85) / columns
    figure = style.new_figure(rows * height * style.page().width + style.lines_high(2 * rows))
    axes = list(figure.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=sharey).flat)
    for spare in axes[count:]:
        spare.remove()
    for place, panel in enumerate(axes[:count]):
        # Where the last row is short, those above its gap are the lowest.
        lowest = place + columns >= count
        panel.tick_params(labelbottom=lowest or not sharex)
        if place // columns == rows - 1:
            panel.set_xlabel(style.in_lines(below, style.characters(0.9 / columns)))
    return figure, axes[:count]


def metric_panels(plan: Plan, metrics: Sequence[str], below: str) -> tuple[Figure, list[list[Axes]]]:
    """Panels of metrics, each a list with those of the plan; rows and columns where there are several of both."""
    if len(plan.titles) > MOST_PANELS:
        raise InputError(f"{len(plan.titles)} panels are too many for one figure; --facet KEY draws several")
    if len(metrics) == 1:
        figure, axes = new_panels(len(plan.titles), below, sharey=True)
        for title, panel in zip(plan.titles, axes, strict=True):
            name(panel, title)
        return figure, [axes]
    if len(plan.titles) == 1:
        figure, axes = new_panels(len(metrics), below)
        for metric, panel in zip(metrics, axes, strict=True):
            name(panel, _unit(metric))
        return figure, [[panel] for panel in axes]
    if len(plan.titles) > MOST_COLUMNS:
        raise InputError(
            f"{len(plan.titles)} columns are too many for a figure of {len(metrics)} metrics; name one with --metric, "
            "or draw a figure for each value of a swept key, --facet KEY"
        )
    columns = len(plan.titles)
    high = max(0.6 * (style.page().width / columns), style.lines_high(5))
    figure = style.new_figure(len(metrics) * high + style.lines_high(3))
    grid = figure.subplots(len(metrics), columns, squeeze=False, sharex=True, sharey="row")
    for metric, row in zip(metrics, grid, strict=True):
        # An upright label turns its arrow: what points right in it is drawn pointing up. It is in no line of its own.
        text = _unit(metric).replace(" ↑", "\N{NO-BREAK SPACE}→").replace(" ↓", "\N{NO-BREAK SPACE}←")
        row[0].set_ylabel(style.broken(text, int(0.8 * high * 72 / (0.56 * style.page().font))))
    for title, panel in zip(plan.titles, grid[0], strict=True):
        name(panel, title)
    for panel in grid[-1]:
        panel.set_xlabel(style.in_lines(below, style.characters(0.9 / columns)))
    return figure, [list(row) for row in grid]


def _unit(metric: str) -> str:
    """A metric's name for a small panel, with what is better."""
    label = style.metric_label(metric)
    arrow = " ↓" if label.endswith("lower is better") else " ↑" if label.endswith("higher is better") else ""
    return words(metric) + arrow


def name_values(figure: Figure, axes: Sequence[Axes], label: str) -> None:
    """Write the label of the vertical axis that all panels share."""
    high = int(0.75 * figure.get_figheight() * 72 / (0.56 * style.page().font))
    text = style.in_lines(label, max(18, high))
    if len(axes) == 1:
        axes[0].set_ylabel(text)
    else:
        figure.supylabel(text, fontsize=style.page().font)


def row_panels(names: Sequence[str], count: int, each: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure of several panels whose common vertical axis has a row for each name, the first on top.

    A row has room for ``each`` points one below the other.
    """
    lines = [style.broken(name, style.characters(0.4)) for name in names]
    columns = min(count, style.fitting(2.4, 5))
    blocks = math.ceil(count / columns)
    rows = sum(max(1.5, line.count("\n") + 1, 0.62 * each + 0.5) for line in lines)
    figure = style.new_figure(blocks * (style.lines_high(rows) + style.lines_high(2.5)))
    axes = list(figure.subplots(blocks, columns, squeeze=False, sharey=True).flat)
    for spare in axes[count:]:
        spare.remove()
    axes[0].set_yticks(range(len(lines)), lines)
    axes[0].set_ylim(len(lines) - 0.5, -0.5)
    for panel in axes[:count] if each > 1 else ():
        across = panel.get_yaxis_transform()
        panel.hlines(np.arange(1, len(lines)) - 0.5, 0, 1, transform=across, color="0.85", lw=0.8)
        panel.grid(axis="y", visible=False)
    return figure, axes[:count]


def name(axes: Axes, text: str) -> None:
    """Write what a panel shows above it."""
    size, room = style.page().font * 0.92, style.characters(0.95 / scales.columns_of(axes))
    axes.set_title(style.broken(text, room) if text else "", loc="left", fontsize=size)


def draw_curve(axes: Axes, drawn: Drawn[MetricCurve], look: Mapping[str, Any] | None = None) -> None:
    """Draw a line with its band; of few replicas each, thin. A baseline is a plain line."""
    curve = drawn.what
    look = look or ({**drawn.line.look, "marker": ""} if drawn.is_main else style.reference())
    label = drawn.label or words(drawn.model)
    axes.margins(x=0.02)
    if not drawn.is_main:
        x = curve.x
        if len(x) and (curve.median == curve.median[-1]).all():
            axes.axhline(curve.median[-1], **look)
        else:
            axes.plot(x, curve.median, **look)
        style.note(axes, label, x, curve.median)
        return
    draw_band(axes, curve, label, look["color"], curve.median)
    axes.plot(curve.x, curve.median, label=label, **look)


def draw_band(axes: Axes, curve: MetricCurve, label: str, color: Any, middle: np.ndarray) -> None:
    """Draw the band over replicas, or each of a few, without the line in the middle of both."""
    if curve.replicas >= notes.FEW:
        style.shade(axes, curve.x, curve.low, curve.high, color)
        style.note(axes, label, curve.x, middle, curve.low, curve.high)
        return
    style.note(axes, label, curve.x, middle)
    if curve.replicas > 1:
        axes.plot(curve.x, np.ma.masked_invalid(curve.each), color=color, linewidth=0.5, alpha=0.5)
    for replica, values in enumerate(curve.each.T if curve.replicas > 1 else ()):
        style.note(axes, f"{label}, replica {replica}", curve.x, values)


def draw_means(
    axes: Axes,
    x: Sequence[float] | np.ndarray,
    samples: Sequence[np.ndarray],
    label: str,
    look: Mapping[str, Any],
    geometric: bool = False,
) -> None:
    """Draw means over replicas with their 95 % intervals; of few replicas each, and no interval.

    Parameters
    ----------
    axes : Axes
    x : sequence of m float
    samples : sequence of m ndarrays
        One value per replica.
    label : str
    look : mapping
        Colour, dashes and marker, such as `p2psim.report.style.line_style` returns.
    geometric : bool
        Whether means are geometric ones, of positive values.
    """
    of = [np.log(sample) if geometric else np.asarray(sample, dtype=float) for sample in samples]
    found = np.array([dataclasses.astuple(mean_interval(sample)) for sample in of])
    middle, low, high = (np.exp(found) if geometric else found).T
    if notes.are_few(map(len, samples)):
        for at, sample in zip(x, samples, strict=True):
            places = np.full(len(sample), at)
            style.mark(axes, places, sample, look["marker"], 3, look["color"], alpha=0.5, markeredgewidth=0)
            style.note(axes, f"{label}, replicas", places, sample)
        style.note(axes, label, x, middle)
    else:
        axes.vlines(x, low, high, color=look["color"], linewidth=0.2 * style.page().font, alpha=0.6)
        style.note(axes, label, x, middle, low, high)
    axes.plot(x, middle, label=label, **look)


def references(drawn: Sequence[Drawn[Any]]) -> dict[str, dict[str, Any]]:
    """Looks of baselines by model: dashes tell models apart."""
    models = list(dict.fromkeys(one.model for one in drawn if not one.is_main))
    return {model: style.reference(index) for index, model in enumerate(models)}


def on_scale(
    axes: Sequence[Axes],
    drawn: Sequence[Drawn[T]],
    values_of: Callable[[T], np.ndarray],
    metric: str,
    across: bool = False,
) -> tuple[list[Drawn[T]], list[str]]:
    """What a reader sees, and a note on baselines that lie outside of the scale, which the main model sets.

    Parameters
    ----------
    axes : sequence of Axes
        The panels, with their final limits.
    drawn : sequence of Drawn
    values_of : callable
        Values that its line goes through.
    metric : str
        What the values are, for the note.
    across : bool
        Whether values have the horizontal axis.
    """
    known: dict[str, list[np.ndarray]] = {}
    seen: set[str] = set()
    for one in drawn if any(one.is_main for one in drawn) else ():
        values = np.asarray(values_of(one.what), dtype=float)
        values = values[np.isfinite(values)]
        known.setdefault(one.model, []).append(values)
        for panel in one.panels:
            low, high = sorted(axes[panel].get_xlim() if across else axes[panel].get_ylim())
            if one.is_main or (values.size and values.min() <= high and values.max() >= low):
                seen.add(one.model)
    parts = []
    for model in [model for model in known if model not in seen]:
        values = np.concatenate(known[model])
        ends = dict.fromkeys(number(float(f"{end:.3g}")) for end in (values.min(), values.max()))
        parts.append(f"{words(model).replace('-', ' ')}, {' to '.join(ends)}" if values.size else "")
    hidden = known.keys() - seen
    note = [f"Off the scale of {words(metric)}: {'; '.join(filter(None, parts))}."] if any(parts) else []
    return [one for one in drawn if one.model not in hidden], note


def explain(
    figure: Figure,
    axes: Sequence[Axes],
    plan: Plan,
    drawn: Sequence[Drawn[Any]],
    ends: Sequence[tuple[float, str, Any]] = (),
) -> None:
    """Name lines beside their ends where one panel has room for that, else in a legend."""
    looks = references(drawn)
    if len(axes) == 1 and ends and plan.dash is None and scales.label_ends(axes[0], ends):
        return
    entries = plan.legend()
    if not entries and len(plan.lines) > 1 and not plan.is_alone:
        entries = [(line.label, Line2D([], [], **{**line.look, "marker": ""})) for line in plan.lines]
    if looks and not entries and not plan.is_alone:
        entries = [(plan.source.main, Line2D([], [], **{**plan.lines[0].look, "marker": ""}))]
    if looks and entries and entries[0][1] is None:
        entries.append(("", None))
    entries += [(words(model).replace("-", " "), Line2D([], [], **look)) for model, look in looks.items()]
    style.put_legend(figure, entries)


def changing(source: Source, metrics: Sequence[str]) -> tuple[list[str], list[str]]:
    """Metrics that are worth a panel, since they change, and a note on those that have one value throughout."""
    values = {metric: _worth(source.rows(metric), metric) for metric in metrics}
    constant = [
        m for m in metrics if np.array_equal(values[m], np.full_like(values[m], values[m][0]), equal_nan=True)
    ]
    if len(metrics) == 1 or len(constant) in (0, len(metrics)):
        return list(metrics), []
    known = ", ".join(f"{words(metric)} {values[metric][0]:g}" for metric in constant)
    varied = [metric for metric in metrics if metric not in constant]
    return varied, [f"Always the same, so not drawn: {known}."]


def _worth(rows: pd.DataFrame, metric: str) -> np.ndarray:
    """Values that say whether a metric changes; that it is undefined at the start is no change."""
    values = rows["value"].to_numpy(dtype=float)
    network = NETWORK_METRICS.get(metric)
    known = values[~np.isnan(values)] if network is not None and network.starts_undefined else values
    return known if known.size else values


def left_out(number: int, most: int = MOST_ROWS, what: str = "rows") -> list[str]:
    """Note on what a figure leaves out that shows ``most`` of something."""
    rest = "--facet KEY draws a figure for each value of a swept key"
    return [f"The first {most} of {number} {what} are drawn; {rest}."] if number > most else []


def too_many(plan: Plan) -> None:
    """Refuse more lines than one panel can have.

    Raises
    ------
    InputError
        Which says how to draw them.
    """
    if len(plan.lines) > MOST_LINES * max(1, len(plan.titles)):
        raise InputError(f"{len(plan.lines)} lines are too many for this figure; draw several: --facet KEY")


def finish(figure: Figure, source: Source, title: str, remarks: Sequence[str]) -> None:
    """Write the title of the whole figure, the badge and the footnote."""
    warning = notes.badge(source)
    if len(warning) > 0.4 * style.characters():
        warning = warning.replace("; ", "\n")
    lines = warning.split("\n")
    room = style.characters(0.94) - (max(map(len, lines)) + 3 if warning else 0)
    text = style.broken(source.title(title), max(20, room))
    text += "\n" * (len(lines) - 1 - text.count("\n"))  # the badge beside it covers no panel
    figure.suptitle(text, x=0.01, ha="left", fontsize=style.page().font * 1.08)
    style.add_badge(figure, warning)
    style.add_footnote(figure, remarks)
