"""One look for all figures: a palette that survives colour blindness, and lines that survive grey."""

import io
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import seaborn as sns
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from p2psim.core.errors import InputError
from p2psim.core.files import write_bytes
from p2psim.scenario.record import label_of

#: Dots per inch of the PNG files.
DPI = 150

#: Numbers of different lengths without a common divisor, so that combinations repeat as late as possible.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)), (0, (9, 2)))
COLOURS = 9

#: A log axis for a swept number from this ratio of its largest and smallest value on.
WIDE = 20

#: A log axis for values beyond this ratio of their largest and smallest.
DECADES = 100

#: Characters of a line of a legend, where it can be broken.
LEGEND_LINE = 36

#: Inches of a title beside the labels of the axis, and of one of its characters.
TITLE_WIDTH, TITLE_CHARACTER = 6.4, 0.095

AXIS_LABELS: Mapping[str, str] = {
    "step": "commits k",
    "time": "simulated time (mean clock periods)",
    "vectors_sent": "p-vectors sent",
    "epsilon": "privacy budget ε per owner",
    "epsilon_spent": "privacy spent, mean ε of the agents",
    "records": "records n",
}


def metric_label(metric: str) -> str:
    """Axis label of a metric, with its unit; unknown metrics keep their name. A long one takes several lines."""
    return wrapped(label_of(metric))


def wrapped(text: str, width: int = 42) -> str:
    """Text in lines that fit beside the axes of a figure of usual height."""
    return "\n".join(textwrap.wrap(text, width))


@contextmanager
def look() -> Iterator[None]:
    """Draw and save inside this; the caller's own settings are untouched."""
    # Any: matplotlib's stubs list every key, and differ between versions.
    settings: Any = {
        **sns.axes_style("whitegrid"),
        **sns.plotting_context("notebook", font_scale=0.95),
        # The font that comes with matplotlib: the same figure on every machine.
        "font.sans-serif": ["DejaVu Sans"],
        "svg.hashsalt": "p2psim",
        # Names of users may hold any character: a dollar sign starts no formula.
        "text.parse_math": False,
        "axes.titlesize": "medium",
        "legend.frameon": False,
        "grid.linewidth": 0.6,
        "axes.linewidth": 0.8,
        # A label is text from a file: LaTeX would run it as a program.
        "text.usetex": False,
    }
    with mpl.rc_context(settings):
        yield


def line_style(index: int) -> dict[str, Any]:
    """Colour, dashes and marker of the line with this number."""
    # The palette's tenth colour repeats its first in grey; yellow (9th) is too light for thin lines.
    palette = sns.color_palette("colorblind", 10)
    order = (0, 1, 2, 3, 4, 9, 5, 7, 6)
    return {
        "color": palette[order[index % COLOURS]],
        "linestyle": DASHES[index % len(DASHES)],
        "marker": MARKERS[index % len(MARKERS)],
    }


def plain_line(index: int) -> dict[str, Any]:
    """Colour and dashes of the line with this number, without its marker."""
    look = line_style(index)
    del look["marker"]
    return look


def shade(axes: Axes, x: ArrayLike, low: ArrayLike, high: ArrayLike, color: Any, **more: Any) -> None:
    """Fill a band in the light colour of its line."""
    axes.fill_between(x, low, high, **{"color": color, "alpha": 0.15, "linewidth": 0, **more})


def mark(axes: Axes, x: ArrayLike, y: ArrayLike, marker: str, size: float, color: Any, **more: Any) -> None:
    """Draw points without a line."""
    axes.plot(x, y, linestyle="none", marker=marker, markersize=size, color=color, **more)


def bar(axes: Axes, row: float, low: float, high: float, color: Any) -> None:
    """Draw a row's bar from one number to another."""
    axes.plot([low, high], [row, row], color=color, linewidth=2.2, solid_capstyle="butt")


def new_figure(width: float = 7.6, height: float = 4.6) -> Figure:
    """An empty figure that no window owns, so that nothing has to be closed."""
    return Figure(figsize=(width, height), layout="constrained")


def new_axes(width: float = 7.6, height: float = 4.6) -> tuple[Figure, Axes]:
    """An empty figure of one panel."""
    figure = new_figure(width, height)
    return figure, figure.add_subplot()


def add_title(axes: Axes, text: str) -> None:
    """Write a title above the left end of axes, in lines that fit above axes of the usual width."""
    axes.set_title(wrapped(text, int(TITLE_WIDTH / TITLE_CHARACTER)), loc="left")


def plain_ticks(axes: Axes, values: ArrayLike) -> None:
    """Name the values of a log axis that were run, as long as there is room for them."""
    ticks = np.unique(np.asarray(values, dtype=float))
    logs = np.log(ticks)
    if not 2 <= len(logs) <= 12 or np.diff(logs).min() < 0.07 * np.ptp(logs):
        return
    axes.xaxis.set_major_locator(ticker.FixedLocator(ticks.tolist()))
    axes.xaxis.set_major_formatter(_short)
    axes.xaxis.set_minor_locator(ticker.NullLocator())


def number_axis(axes: Axes, values: ArrayLike) -> None:
    """Ticks of a horizontal axis of numbers: logarithmic where they are positive and span more than `WIDE`."""
    numbers = np.asarray(values, dtype=float)
    if numbers.min() > 0 and numbers.max() >= WIDE * numbers.min():
        axes.set_xscale("log")
        plain_ticks(axes, numbers)
    else:
        few_ticks(axes)


def log_ticks(axes: Axes) -> None:
    """Plain numbers 1, 2 and 5 times powers of ten on a horizontal log axis, of a long one powers alone."""
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high < 5000 * low else (1,)))
    axes.xaxis.set_major_formatter(_short)
    axes.xaxis.set_minor_formatter(ticker.NullFormatter())


def log_axes(axes: Axes) -> None:
    """Make both axes logarithmic, with plain numbers on the horizontal one."""
    axes.set_yscale("log")
    log_ticks(axes)


def key_label(key: str) -> str:
    """Label of the axis of a swept key: its last word; the owners of a star and ε have names of their own."""
    named = {"network.topology.agents": "owners N (number)", "privacy.epsilon": AXIS_LABELS["epsilon"]}
    last = key.split(".")[-1]
    word = ".".join(key.split(".")[-2:]) if last.isdecimal() else last.replace("_", " ")
    return named.get(key, f"{word} (number)")


def is_log(asked: bool | None, values: ArrayLike) -> bool:
    """Whether values have a log axis: as asked, or where they are positive and span more than a factor of `DECADES`."""
    if asked is not None:
        return asked
    finite = np.asarray(values, dtype=float)
    finite = finite[np.isfinite(finite)]
    return bool(finite.size) and bool(finite.min() > 0) and bool(finite.max() > DECADES * finite.min())


def few_ticks(axes: Axes) -> None:
    """Ticks of a linear horizontal axis, few enough for their numbers, with thousands set apart."""
    axes.xaxis.set_major_locator(ticker.MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(_short)


def few_decades(axes: Axes, values: ArrayLike) -> None:
    """Name ticks of a log axis by plain numbers when the values span little more than a decade."""
    numbers = np.asarray(values, dtype=float)
    numbers = numbers[np.isfinite(numbers) & (numbers > 0)]
    if numbers.max() > 20 * numbers.min():
        return
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 3, 4, 5, 6, 7, 8, 9)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")


def _short(value: float, _: float) -> str:
    return f"{value:,.0f}" if value >= 1000 and value == round(value) else f"{value:g}"


def add_legend(figure: Figure, axes: Axes) -> None:
    """Put the legend beside the axes, where it covers no data; long names take several lines.

    The figure grows for it, not the axes shrink. Handles are long enough to tell dashes apart.
    """
    handles, names = axes.get_legend_handles_labels()
    if not handles:
        return
    lines = [broken(str(name)) for name in names]
    # A character is about .085 inch wide, a line about .19 inch high.
    longest = max(len(line) for name in lines for line in name)
    figure.set_figwidth(figure.get_figwidth() + 0.085 * max(0, longest - 13))
    figure.set_figheight(max(figure.get_figheight(), 0.6 + 0.19 * sum(map(len, lines))))
    figure.legend(
        handles, ["\n".join(name) for name in lines], loc="outside right upper", fontsize="small",
        alignment="left", handlelength=4.4,
    )  # fmt: skip


def broken(name: str) -> list[str]:
    """Lines of a label: ``key = value`` parts, as many a line as there is room for."""
    lines: list[str] = []
    for line in name.splitlines():
        parts = line.split(", ")
        lines.append(parts[0])
        for part in parts[1:]:
            if len(lines[-1]) + len(part) + 2 <= LEGEND_LINE:
                lines[-1] += f", {part}"
            else:
                lines[-1] += ","
                lines.append(part)
    return lines


def add_footnote(figure: Figure, notes: Sequence[str]) -> None:
    """Write notes under the figure, wrapped to its width."""
    if not notes:
        return
    # At 7.5 points a character is about .064 inch wide.
    width = int(figure.get_figwidth() / 0.064)
    lines = [line for note in notes for line in textwrap.wrap(note, width, subsequent_indent="   ")]
    # The axes keep their size: the figure grows instead.
    figure.set_figheight(figure.get_figheight() + 0.15 * len(lines))
    # A label of the whole figure is given room by the layout; plain text is not.
    figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=7.5, color="0.25", linespacing=1.35)


def finish(figure: Figure, axes: Axes, x: str, y: str, title: str, notes: Sequence[str]) -> None:
    """Write the labels, title, legend and notes of a figure of one panel."""
    axes.set(xlabel=x, ylabel=y)
    add_title(axes, title)
    add_legend(figure, axes)
    add_footnote(figure, notes)


def save_all(figures: Mapping[str, Figure], folder: Path | str) -> list[Path]:
    """Save figures by the stems of their files, in a folder that is made where there is none.

    Raises
    ------
    InputError
        If nothing can be written there.
    """
    into = Path(folder)
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write figures into {into}: {error.strerror or error}") from error
    return [path for stem, figure in figures.items() for path in save(figure, into, stem)]


def save(figure: Figure, folder: Path, stem: str) -> list[Path]:
    """Write PNG and SVG, each whole or not at all, the same bytes for the same figure."""
    _plain_powers(figure)
    paths = []
    for extension, metadata in (("png", {}), ("svg", {"Date": None})):
        content = io.BytesIO()
        figure.savefig(content, format=extension, dpi=DPI, metadata=metadata)
        # A metric of a stranger's table may have any name.
        path = folder / f"{stem.replace('/', '-')}.{extension}"
        write_bytes(path, content.getvalue())
        paths.append(path)
    return paths


_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


class _PlainPowers(ticker.Formatter):
    """The same labels in plain text: which ticks are labelled follows from the ticks that there are."""

    def __init__(self, inner: ticker.LogFormatterMathtext) -> None:
        self.inner = inner

    def set_locs(self, locs: Any) -> None:
        self.inner.set_locs(locs)

    def __call__(self, value: float, position: int | None = None) -> str:
        inside = re.sub(r"[$]|\\mathdefault", "", self.inner(value, position)).replace("\\times", "·")
        inside = re.sub(r"\^\{([-0-9]+)\}", lambda power: power[1].translate(_SUPERSCRIPTS), inside)
        return re.sub(r"[{} ]", "", inside).replace("-", "−")


def _plain_powers(figure: Figure) -> None:
    """Write the powers of ten of log axes as Unicode, since formulas are not parsed (see `look`)."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(major := axis.get_major_formatter(), ticker.LogFormatterMathtext):
                axis.set_major_formatter(_PlainPowers(major))
            if isinstance(minor := axis.get_minor_formatter(), ticker.LogFormatterMathtext):
                axis.set_minor_formatter(_PlainPowers(minor))
