"""Final values against a positive quantity, log-log, with fitted slope and the fitted shape of F (11).

`draw_epsilon` draws ψ against ε (F figure 4), and `draw_size` ψ against the number of records n (F figure 5).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from p2psim.core.errors import InputError
from p2psim.report import notes, style
from p2psim.report.points import FEWEST, Points, points, records_of_cells
from p2psim.report.source import FITNESS, Source
from p2psim.theory.bounds.shape import ShapeBound

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Float = NDArray[np.float64]

BOUND_DASHES: tuple[int, tuple[float, ...]] = (0, (1, 1.6))
LIMIT_DASHES: tuple[int, tuple[float, ...]] = (0, (6, 2, 1, 2))


def power_figure(source: Source, metric: str, lines: list[Points], axis: str, symbol: str) -> "Figure":
    """Draw lines of points with bars, slopes and fitted bounds.

    Parameters
    ----------
    source : Source
        The run.
    metric : str
        What the points are.
    lines : list of Points
        From `p2psim.report.points.points`.
    axis : str
        Key of the horizontal axis in `p2psim.report.style.AXIS_LABELS`.
    symbol : str
        What the axis is called in short.
    """
    figure = style.new_figure(8.4, 4.8)
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.set_yscale("log", nonpositive="mask")
    for index, line in enumerate(lines):
        _draw_points(axes, line, style.line_style(index))
    # Fitted curves may leave the axes: the points decide what is seen.
    style.plain_ticks(axes, np.concatenate([line.x for line in lines]))
    axes.set_ylim(axes.get_ylim())
    bounds = [line.bound() if metric == FITNESS else None for line in lines]
    for index, (line, bound) in enumerate(zip(lines, bounds, strict=True)):
        _draw_fits(axes, line, bound, style.line_style(index)["color"])
    # One entry for all lines of a sort, in grey: colour and marker already tell the lines apart.
    if any(bound is not None for bound in bounds):
        axes.plot([], [], color="0.3", linestyle=BOUND_DASHES, label="fitted F (11)")
    if any(line.limit is not None for line in lines):
        axes.plot([], [], color="0.3", linestyle=LIMIT_DASHES, label=f"median at {symbol} = ∞")
    axes.set_xlabel(style.AXIS_LABELS[axis])
    axes.set_ylabel(style.wrapped(f"final {style.metric_label(metric)}"))
    style.add_title(axes, source.title(f"final {metric.replace('_', ' ')} against {symbol}"))
    style.add_legend(figure, axes)
    counts = notes.replicas([count for line in lines for count in line.counts])
    remarks = [
        f"Point: median of {counts}; bar: {source.band_words}. "
        "Fit: least squares through the medians on log scales; "
        "its interval: 95 %, by the bootstrap over replicas.",
        *_remarks(lines, "ψ" if metric == FITNESS else metric, symbol),
    ]
    if any(bound is not None for bound in bounds):
        remarks.append(
            "F (11): (c₁/n)·√(Σ1/ε_i²) + (c₂/n²)·Σ1/ε_i²; c₁, c₂ ≥ 0 fitted to the medians by relative error."
        )
    remarks += notes.hidden_note([v for line in lines for v in (line.low, line.median, line.high)])
    style.add_footnote(figure, [*remarks, *notes.run_notes(source)])
    return figure


def _draw_points(axes: "Axes", line: Points, look: dict[str, Any]) -> None:
    # Masked where a log axis has no place for them; the footnote counts them.
    low, median, high = (
        np.where(np.isfinite(v) & (v > 0), v, np.nan) for v in (line.low, line.median, line.high)
    )
    colour = look["color"]
    drawn = np.isfinite(median)
    bars = [(median - low)[drawn], (high - median)[drawn]]
    axes.errorbar(line.x[drawn], median[drawn], bars, fmt="none", ecolor=colour, capsize=3, elinewidth=1.2)
    for mask, face in ((line.used, colour), (~line.used, "white")):
        axes.plot(
            line.x[mask], median[mask], linestyle="none", marker=look["marker"], markersize=7,
            markerfacecolor=face, markeredgecolor=colour, markeredgewidth=1.4, zorder=3,
        )  # fmt: skip
    if line.limit is not None and np.isfinite(line.limit) and line.limit > 0:
        axes.axhline(line.limit, color=colour, linewidth=1.4, linestyle=LIMIT_DASHES)
    axes.plot([], [], **{**look, "linestyle": "none"}, markersize=7, label=line.label or "median")
    slope = line.slope()
    if slope is not None:
        name = f"fit: slope {_number(slope.slope)}"
        if line.interval is not None:
            name += f" [{_number(line.interval[0])}, {_number(line.interval[1])}]"
        axes.plot([], [], color=colour, linewidth=1.4, linestyle="-", label=name)


def _draw_fits(axes: "Axes", line: Points, bound: ShapeBound | None, colour: Any) -> None:
    thin = {"color": colour, "linewidth": 1.4}
    slope = line.slope()
    if slope is not None:
        ends = line.x[line.used][[0, -1]]
        axes.plot(ends, slope(ends), **thin, linestyle="-")
    if bound is not None:
        axes.plot(*_bound_curve(line, bound), **thin, linestyle=BOUND_DASHES)


def _bound_curve(line: Points, bound: ShapeBound) -> tuple[Float, Float]:
    """The fitted bound between the first and last point; log-log interpolation is exact for powers of x."""
    known = np.isfinite(line.inverse_squares) & (line.inverse_squares > 0) & (line.records > 0)
    x = np.geomspace(line.x[known][0], line.x[known][-1], 60)
    at = np.log(line.x[known])
    n, total = (
        np.exp(np.interp(np.log(x), at, np.log(v[known]))) for v in (line.records, line.inverse_squares)
    )
    return x, bound(n, total)


def _remarks(lines: Sequence[Points], what: str, symbol: str) -> list[str]:
    out = [
        f"{line.not_finite} of {sum(line.counts)} replicas end infinite or undefined{notes.of(line.label)}, "
        "counted as +∞."
        for line in lines
        if line.not_finite
    ]
    flat = []
    for line in lines:
        left = line.x[np.isfinite(line.median) & (line.median > 0) & ~line.used]
        if len(left):
            flat.append(f"{symbol} = {', '.join(f'{x:g}' for x in left)}{notes.of(line.label)}")
    if flat:
        out.append(
            f"Hollow points are not used for slopes and bounds, since {what} is flat there, saturated "
            f"by noise or left with other errors: {'; '.join(flat)}."
        )
    bare = [line for line in lines if line.used.sum() >= 2 and line.interval is None]
    if bare:
        out.append(
            f"No interval for want of {FEWEST} replicas a point, or of positive medians in all resamples"
            f"{_listed(bare)}."
        )
    none = [line for line in lines if line.used.sum() < 2]
    if none:
        out.append(f"No slope, for want of two usable points{_listed(none)}.")
    return out


def _listed(lines: Sequence[Points]) -> str:
    named = [line.label for line in lines if line.label]
    return f": {'; '.join(named)}" if named else ""


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


KEY = "privacy.epsilon"


def draw_epsilon(source: Source) -> "dict[str, Figure]":
    """Medians with 25 to 75 % bars, slope with its interval, and the fitted F (11), log-log.

    Raises
    ------
    InputError
        If the run does not sweep ``privacy.epsilon`` over at least two numbers.
    """
    metric = source.metric or FITNESS
    rows = source.rows(metric)
    if KEY not in source.swept:
        swept = ", ".join(source.swept) or "nothing"
        raise InputError(
            f"the run has no sweep over {KEY} (it sweeps {swept}); add `sweep: {{{KEY}: [1, 10, 100]}}`"
        )
    cells = rows.drop_duplicates("cell").set_index("cell")[KEY]
    values = pd.to_numeric(cells, errors="coerce").astype(float)
    if values.isna().any():
        raise InputError(
            f"{KEY} must be one number for all owners in every cell, got {cells[values.isna()].iloc[0]}"
        )
    if values[np.isfinite(values)].nunique() < 2:
        raise InputError(f"{KEY} must take at least two finite values, got {sorted(values.unique())}")
    lines = points(
        source, metric, dict(zip(map(int, values.index), values.tolist(), strict=True)), hide=[KEY]
    )
    stem = "epsilon" if metric == FITNESS else f"epsilon-{metric}"
    return {stem: power_figure(source, metric, lines, "epsilon", "ε")}


def draw_size(source: Source) -> "dict[str, Figure]":
    """Medians with 25 to 75 % bars, slope with its interval, and the fitted F (11), log-log.

    n counts the records of all owners, from the agents' table, whichever key of the data is swept.

    Raises
    ------
    InputError
        If all cells have the same number of records.
    """
    metric = source.metric or FITNESS
    rows = source.rows(metric)
    records = {cell: n for cell, n in records_of_cells(source).items() if n > 0}
    sizes = sorted({records[cell] for cell in rows["cell"].unique() if cell in records})
    if len(sizes) < 2:
        given = f"every cell has n = {sizes[0]:g}" if sizes else "the agents' table has none"
        raise InputError(
            f"the run has no sweep over the number of records ({given}); "
            "sweep a key of data.partition, for instance its sizes"
        )
    # The keys that set n are those whose value says which n a cell has, and that alone.
    heads = rows.drop_duplicates("cell")
    n = heads["cell"].map(records)
    setters = [
        key for key in source.swept if key.startswith("data.") and n.groupby(heads[key]).nunique().max() == 1
    ]
    lines = points(source, metric, records, hide=setters)
    stem = "size" if metric == FITNESS else f"size-{metric}"
    return {stem: power_figure(source, metric, lines, "records", "n")}
