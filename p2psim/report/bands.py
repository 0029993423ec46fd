"""Percentile bands of one metric, a line for each swept value."""

from typing import TYPE_CHECKING

import numpy as np

from p2psim.figure_names import MEASURED_AXES
from p2psim.report import notes, style
from p2psim.report.curves import curves
from p2psim.report.source import Source

if TYPE_CHECKING:
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
