"""Axes: where they are logarithmic, their ticks, what sets their range, and names beside the ends of lines."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from p2psim.report.style import characters, lines_high, page
from p2psim.report.words import number

#: A log axis from this ratio of largest and smallest value on.
WIDE = 10


def is_log(asked: bool | None, values: ArrayLike, fraction: bool = False) -> bool:
    """Whether values have a log axis: as asked, or where they are positive and span more than a factor of `WIDE`."""
    numbers = np.asarray(values, dtype=float)
    numbers = numbers[np.isfinite(numbers)]
    if asked is not None:
        return asked and bool(np.any(numbers > 0))
    positive = bool(numbers.size) and bool(numbers.min() > 0)
    return positive and not fraction and bool(numbers.max() >= WIDE * numbers.min())


def columns_of(axes: Axes) -> int:
    """How many panels stand side by side in a figure, by one of them."""
    spec = axes.get_gridspec()
    return spec.ncols if spec is not None else 1


def number_axis(axes: Axes, values: ArrayLike, swept: bool = True) -> None:
    """Ticks of a horizontal axis: the numbers that were swept, as far as there is room for them, or round ones."""
    numbers = np.unique(np.asarray(values, dtype=float))
    log = is_log(None, numbers)
    if log:
        axes.set_xscale("log")
    at = np.log(numbers) if log else numbers
    room = characters(1 / columns_of(axes)) * 0.8
    apart = max(len(_short(value, 0)) for value in numbers) / room
    if swept and 2 <= len(at) <= 12 and np.diff(at).min() >= apart * np.ptp(at):
        axes.xaxis.set_major_locator(ticker.FixedLocator(numbers.tolist()))
        axes.xaxis.set_major_formatter(_short)
        axes.xaxis.set_minor_locator(ticker.NullLocator())
    elif log:
        log_ticks(axes)
    else:
        few_ticks(axes)


def label_cells(axes: Axes, across: Sequence[str], down: Sequence[str]) -> None:
    """Name columns and rows of a map: columns upright where their names have no place side by side, and only every
    second, third, … where there is no place for all.
    """
    spec, (width, height) = axes.get_gridspec(), axes.figure.get_size_inches()  # type: ignore[union-attr]
    columns, rows = (spec.ncols, spec.nrows) if spec is not None else (1, 1)
    # In points; a quarter of the figure is colour bar, labels and title.
    wide, high = (0.75 * 72 * size / count for size, count in ((width, columns), (height, rows)))
    line, letter = 1.25 * page().font, 0.6 * page().font
    upright = (max(map(len, across)) + 1) * letter * len(across) > wide
    steps = (math.ceil(line * len(across) / wide) if upright else 1, math.ceil(line * len(down) / high))
    for axis, texts, step in ((axes.xaxis, across, steps[0]), (axes.yaxis, down, steps[1])):
        axis.set_ticks(np.arange(0, len(texts), step) + 0.5, texts[::step])
    axes.tick_params(axis="x", rotation=90 * upright, length=0)
    axes.tick_params(axis="y", rotation=0, length=0)


def log_ticks(axes: Axes, of: Literal["x", "y"] = "x") -> None:
    """Plain numbers 1, 2 and 5 times powers of ten on a log axis, of a long one powers alone."""
    axes.set(**{f"{of}scale": "log"})
    axis = axes.xaxis if of == "x" else axes.yaxis
    low, high = axis.get_view_interval()
    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high < 500 * low else (1,)))
    axis.set_major_formatter(_short)
    axis.set_minor_formatter(ticker.NullFormatter())


def fitted_log_ticks(axes: Axes) -> None:
    """Plain numbers on a horizontal log axis, as many as there is room for: round ones, or powers of ten."""
    low, high = axes.get_xlim()
    axes.xaxis.set_minor_formatter(ticker.NullFormatter())
    if high < 5 * low:
        few_ticks(axes)
        return
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    at: list[float] = []
    for digits, step in (((1, 2, 5), 1), *(((1,), step) for step in range(1, len(powers)))):
        tried = [float(f"{digit}e{power}") for power in powers[::step] for digit in digits]
        at = [tick for tick in tried if low <= tick <= high] or at
        if (max(len(_short(tick, 0)) for tick in at) + 2) * len(at) <= characters(0.8 / columns_of(axes)):
            break
    axes.xaxis.set_major_locator(ticker.FixedLocator(at))
    axes.xaxis.set_major_formatter(_short)


def log_axes(axes: Axes) -> None:
    """Make both axes logarithmic, with plain numbers on the horizontal one."""
    axes.set_yscale("log")
    log_ticks(axes)


def few_ticks(axes: Axes) -> None:
    """Ticks of a linear horizontal axis, few enough for their numbers, with thousands set apart."""
    bins = max(2, min(7, characters(1 / columns_of(axes)) // 9))
    axes.xaxis.set_major_locator(ticker.MaxNLocator(nbins=bins, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(_short)


def few_decades(axes: Axes, values: ArrayLike) -> None:
    """Name ticks of a log axis by plain numbers when the values span up to two decades."""
    numbers = np.asarray(values, dtype=float)
    numbers = numbers[np.isfinite(numbers) & (numbers > 0)]
    if not numbers.size or numbers.max() > 100 * numbers.min():
        return
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(ticker.LogLocator(subs=(1, 2, 3, 4, 5, 6, 7, 8, 9)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(ticker.NullFormatter())


def _short(value: float, _: float) -> str:
    return number(value)


def fit_values(
    axes: Axes, values: ArrayLike, log: bool, fraction: bool = False, across: bool = False
) -> None:
    """Have the values that matter set the vertical (or the other) scale; what is drawn beside them does not."""
    set_limits = axes.set_xlim if across else axes.set_ylim
    numbers = np.asarray(values, dtype=float)
    numbers = numbers[np.isfinite(numbers) & ((numbers > 0) | (not log))]
    if not numbers.size:
        return
    if log:
        (axes.set_xscale if across else axes.set_yscale)("log", nonpositive="mask")
        low, high = np.log10(numbers.min()), np.log10(numbers.max())
        room = 0.05 * max(high - low, 0.2)
        set_limits(10 ** (low - room), 10 ** (high + room))
        if across:
            fitted_log_ticks(axes)
        else:
            few_decades(axes, numbers)
    else:
        room = 0.05 * (np.ptp(numbers) or abs(numbers.max()) or 1.0)
        low, high = numbers.min() - room, numbers.max() + room
        # A share never lies outside of 0 and 1.
        set_limits(*((max(low, -0.02), min(high, 1.02)) if fraction else (low, high)))


def label_ends(axes: Axes, ends: Sequence[tuple[float, str, Any]]) -> bool:
    """Write the name of each line beside its end, apart from each other; False where there is no room.

    Parameters
    ----------
    axes : Axes
        With its final limits.
    ends : sequence of (value, text, colour)
    """
    figure = axes.get_figure(root=True)
    assert isinstance(figure, Figure)
    if not ends or max(len(text) for _, text, _ in ends) > characters(0.24):
        return False
    high = lines_high(0.95) / (0.72 * figure.get_figheight())
    to_axes = axes.transScale + axes.transLimits
    places = np.array([to_axes.transform((axes.get_xlim()[1], value))[1] for value, *_ in ends])
    if not np.isfinite(places).all():
        return False
    order = np.argsort(places)
    apart = _spread(np.clip(places[order], 0, 1), high)
    if np.abs(apart - places[order]).max() > 2.5 * high or apart[-1] > 1.05 or apart[0] < -0.08:
        return False
    for place, i in zip(apart, order, strict=True):
        _, text, color = ends[i]
        axes.annotate(
            text, (1, place), xytext=(0.5 * page().font, 0), xycoords="axes fraction", textcoords="offset points",
            va="center", ha="left", color=color, fontsize=0.92 * page().font,
        )  # fmt: skip
    return True


def _spread(places: np.ndarray, gap: float) -> np.ndarray:
    """Ascending places at least a gap apart, as close to what they were as that allows (pool adjacent violators)."""
    shifted = places - gap * np.arange(places.size)
    blocks: list[list[float]] = []
    for value in shifted:
        blocks.append([value, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (a, n), (b, m) = blocks[-2:]
            blocks[-2:] = [[(a * n + b * m) / (n + m), n + m]]
    return np.concatenate([np.full(int(n), value) for value, n in blocks]) + gap * np.arange(places.size)
