"""One look for all figures: sizes for screens and print, and a palette that survives colour blindness."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakKeyDictionary

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from p2psim.core.errors import InputError
from p2psim.report.words import metric_label

__all__ = ["metric_label"]  # figures of others take it from here

#: Dashes of the values of a second key.
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")

#: Colours of kinds. The palette's grey is left to what is only a reference; its yellow is too light for lines.
_KINDS = (0, 1, 2, 3, 4, 9, 5, 6)

#: Colour of what is only there to compare with.
REFERENCE = "0.35"

#: Colour of what went wrong.
ALARM = "#b00020"

#: The font that comes with Matplotlib: the same figure on every machine.
FONT = "DejaVu Sans"

Width = Literal["column", "page"]


@dataclass(frozen=True)
class Page:
    """Width of a figure in inches, and points of its text; small text is 0.87 of it."""

    width: float
    font: float


#: Of a column and a page of print, and of a screen: there is no text below 6 points.
PAGES: Mapping[Width | None, Page] = {None: Page(8.0, 10.5), "page": Page(7.0, 8.5), "column": Page(3.4, 7.5)}

_page: ContextVar[Page] = ContextVar("page", default=PAGES[None])

AXIS_LABELS: Mapping[str, str] = {
    "step": "commits k",
    "time": "simulated time (mean clock periods)",
    "vectors_sent": "p-vectors sent",
    "epsilon": "privacy budget ε per owner",
    "epsilon_spent": "privacy spent, mean ε of the agents",
    "records": "records n",
}


@contextmanager
def look(width: Width | None = None) -> Iterator[None]:
    """Draw and save inside this; the caller's own settings are untouched."""
    page = PAGES[width]
    # Any: matplotlib's stubs list every key, and differ between versions.
    settings: Any = {
        **sns.axes_style("whitegrid"),
        "font.size": page.font,
        **dict.fromkeys(("axes.labelsize", "axes.titlesize", "legend.title_fontsize"), page.font),
        **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 0.87 * page.font),
        "font.sans-serif": [FONT],
        "svg.hashsalt": "p2psim",
        "pdf.fonttype": 42,
        # Names of users may hold any character: a dollar sign starts no formula.
        "text.parse_math": False,
        "legend.frameon": False,
        "grid.linewidth": 0.06 * page.font,
        "grid.color": "0.9",
        "axes.edgecolor": "0.6",
        "axes.linewidth": 0.08 * page.font,
        "lines.linewidth": 0.14 * page.font,
        "lines.markersize": 0.55 * page.font,
        "axes.spines.top": False,
        "axes.spines.right": False,
        # A label is text from a file: LaTeX would run it as a program.
        "text.usetex": False,
    }
    token = _page.set(page)
    try:
        with mpl.rc_context(settings):
            yield
    finally:
        _page.reset(token)


def page() -> Page:
    """Return the page that is drawn for."""
    return _page.get()


def lines_high(lines: float) -> float:
    """Inches of so many lines of text."""
    return lines * page().font * 1.45 / 72


def fitting(inches: float, most: int) -> int:
    """How many things of so many inches stand side by side, where the text is that of a screen."""
    return max(1, min(most, int(page().width / (inches * page().font / PAGES[None].font) + 0.35)))


def characters(share: float = 1.0) -> int:
    """Characters of usual text in a share of the width."""
    return max(12, int(share * page().width * 72 / (0.56 * page().font)))


def colours(count: int, ordered: bool = False) -> list[Any]:
    """Distinct colours: from dark to light for ordered numbers, else of the palette for kinds."""
    if ordered:
        shades = np.linspace(0.05, 0.82, max(count, 2))
        return list(sns.color_palette("viridis", as_cmap=True)(shades)[:count])
    palette = sns.color_palette("colorblind", 10)
    if count > len(_KINDS):
        message = f"{count} lines are too many to be told apart; draw a figure for each value: --facet KEY"
        raise InputError(message)
    return [palette[i] for i in _KINDS[:count]]


def line_style(index: int) -> dict[str, Any]:
    """Colour, dashes and marker of the line with this number."""
    dashes, marker = DASHES[index % len(DASHES)], MARKERS[index % len(MARKERS)]
    return {"color": colours(len(_KINDS))[index % len(_KINDS)], "linestyle": dashes, "marker": marker}


def plain_line(index: int) -> dict[str, Any]:
    """Colour and dashes of the line with this number, without its marker."""
    look = line_style(index)
    del look["marker"]
    return look


def reference(index: int = 0) -> dict[str, Any]:
    """Look of a line that is only there to compare with."""
    dashes = (*DASHES[1:], DASHES[0])[index % 4]
    return {"color": REFERENCE, "linestyle": dashes, "linewidth": 0.1 * page().font}


_numbers: "WeakKeyDictionary[Figure, list[pd.DataFrame]]" = WeakKeyDictionary()


def note(
    axes: Axes,
    line: str,
    x: ArrayLike,
    y: ArrayLike,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
) -> None:
    """Keep the numbers of what is drawn, for the table beside the figure."""
    columns = {"x": x, "y": y} | ({} if low is None else {"low": low, "high": high})
    figure = axes.get_figure(root=True)
    assert isinstance(figure, Figure)
    table = pd.DataFrame({name: np.atleast_1d(np.asarray(values)) for name, values in columns.items()})
    panel = axes.get_title(loc="left").replace("\n", " ") if len(figure.axes) > 1 else ""
    table.insert(0, "line", line)
    table.insert(0, "panel", panel)
    _numbers.setdefault(figure, []).append(table)


def numbers(figure: Figure) -> pd.DataFrame:
    """Numbers that a figure shows: ``panel``, ``line``, ``x``, ``y``, and ``low`` and ``high`` of bands and bars."""
    tables = _numbers.get(figure) or [pd.DataFrame(columns=["panel", "line", "x", "y"])]
    return pd.concat(tables, ignore_index=True)


def has_numbers(figure: Figure) -> bool:
    """Whether the numbers of a figure are known."""
    return figure in _numbers


def shade(axes: Axes, x: ArrayLike, low: ArrayLike, high: ArrayLike, color: Any, **more: Any) -> None:
    """Fill a band in the light colour of its line."""
    axes.fill_between(x, low, high, **{"color": color, "alpha": 0.16, "linewidth": 0, **more})


def mark(axes: Axes, x: ArrayLike, y: ArrayLike, marker: str, size: float, color: Any, **more: Any) -> None:
    """Draw points without a line; sizes are those of a screen."""
    size *= page().font / PAGES[None].font
    axes.plot(x, y, linestyle="none", marker=marker, markersize=size, color=color, **more)


def bar(axes: Axes, row: float, low: float, high: float, color: Any) -> None:
    """Draw a row's bar from one number to another."""
    axes.plot([low, high], [row, row], color=color, linewidth=0.22 * page().font, solid_capstyle="butt")


def new_figure(height: float | None = None) -> Figure:
    """An empty figure as wide as the page that no window owns, so that nothing has to be closed."""
    width = page().width
    return Figure(figsize=(width, max(0.6 * width, 2.2) if height is None else height), layout="constrained")


def new_axes(height: float | None = None) -> tuple[Figure, Axes]:
    """An empty figure of one panel."""
    figure = new_figure(height)
    return figure, figure.add_subplot()


def add_title(axes: Axes, text: str) -> None:
    """Write a title above the left end of axes, in lines that fit above axes of the whole width."""
    axes.set_title(broken(text, characters(0.82)), loc="left")


def add_legend(figure: Figure, axes: Axes) -> None:
    """Put the legend of what axes show under them."""
    shown = zip(*axes.get_legend_handles_labels(), strict=True)
    put_legend(figure, [(str(text), handle) for handle, text in shown])


def put_legend(figure: Figure, entries: Sequence[tuple[str, Any]]) -> None:
    """Put a legend under the axes, where it covers no data; entries without a handle are headings."""
    blocks: list[list[tuple[str, Any]]] = []
    for text, handle in entries:
        if handle is None or not blocks:
            blocks.append([])
        blocks[-1].append((broken(text, characters(0.85)), handle))
    if not blocks:
        return
    blank = Line2D([], [], linestyle="none")
    title = blocks[0][0][0] if blocks[0][0][1] is None and len(blocks) == 1 else ""
    if len(blocks) > 1:
        # A column for each block: shorter ones are filled up.
        longest, columns = max(map(len, blocks)), len(blocks)
        filled = [[*block, *[("", None)] * (longest - len(block))] for block in blocks]
        cells = [cell for block in filled for cell in block]
        rows: float = sum(max(text.count("\n") + 1 for text, _ in row) for row in zip(*filled, strict=True))
    else:
        cells = blocks[0][1:] if title else blocks[0]
        width = max(len(line) for text, _ in cells for line in text.split("\n")) + 6
        columns = max(1, min(len(cells), characters(0.98) // width))
        height = -(-len(cells) // columns)
        columns = -(-len(cells) // height)
        # Read along rows, as there are few of them; the legend itself goes down columns.
        cells = [cells[i] for column in range(columns) for i in range(column, len(cells), columns)]
        lines = sum(max(cell[0].count("\n") + 1 for cell in cells[row::height]) for row in range(height))
        rows = lines + bool(title)
    texts = [f"{text}:" if handle is None and text else text for text, handle in cells]
    handles = [blank if handle is None else handle for _, handle in cells]
    legend = figure.legend(
        handles, texts, title=f"{title}:" if title else None, ncols=columns, alignment="left", handlelength=2.6,
        columnspacing=1.2, loc="lower left", borderaxespad=0.2,
    )  # fmt: skip
    legend.set_in_layout(False)
    _reserve(figure, "legend", lines_high(0.95 * rows + 0.6))


_below: "WeakKeyDictionary[Figure, dict[str, float]]" = WeakKeyDictionary()


def _reserve(figure: Figure, what: str, inches: float) -> None:
    """Have the figure grow by what stands under its axes, which keep their size: the footnote, above it the legend."""
    places = _below.setdefault(figure, {"footnote": 0.0, "legend": 0.0})
    figure.set_figheight(figure.get_figheight() + inches - places[what])
    places[what] = inches
    high = figure.get_figheight()
    bottom = sum(places.values()) / high
    figure.get_layout_engine().set(rect=(0, bottom, 1, 1 - bottom))  # type: ignore[union-attr, call-arg]
    if figure.get_supylabel():
        figure._supylabel.set_y((1 + bottom) / 2)  # type: ignore[attr-defined]
    for legend in figure.legends:
        legend.set_bbox_to_anchor((0.005, (places["footnote"] + 0.02) / high))


def broken(text: str, width: int) -> str:
    """A label in lines of at most so many characters."""
    return "\n".join(line for part in text.split("\n") for line in textwrap.wrap(part, width) or [""])


def in_lines(label: str, width: int) -> str:
    """Label of an axis: in one line if it fits, else broken before its unit and its direction."""
    if len(label) <= width:
        return label
    parts = label.replace(", lower", "\nlower").replace(", higher", "\nhigher")
    if max(map(len, parts.split("\n"))) > width:
        parts = parts.replace(" (", "\n(")
    return broken(parts, width)


def add_footnote(figure: Figure, notes: Sequence[str]) -> None:
    """Write notes under the figure, wrapped to its width."""
    if not notes:
        return
    size = max(6.0, 0.76 * page().font)
    width = int(figure.get_figwidth() * 72 / (0.56 * size))
    lines = [line for text in notes for line in textwrap.wrap(text, width, subsequent_indent="   ")]
    figure.text(
        0.01, 0.04 / figure.get_figheight(), "\n".join(lines), ha="left", va="bottom", fontsize=size, color="0.25",
        linespacing=1.3, gid="footnote",
    )  # fmt: skip
    _reserve(figure, "footnote", (len(lines) * 1.4 + 0.6) * size / 72)


def add_badge(figure: Figure, text: str) -> None:
    """Write a warning that nobody can miss in the upper right corner."""
    if text:
        figure.text(
            0.995, 0.995, text, ha="right", va="top", color="white", weight="bold",
            fontsize=max(6.0, 0.8 * page().font),
            bbox={"boxstyle": "round,pad=0.3", "facecolor": ALARM, "edgecolor": "none"}, gid="badge",
        )  # fmt: skip


def finish(figure: Figure, axes: Axes, x: str, y: str, title: str, notes: Sequence[str]) -> None:
    """Write the labels, title, legend and notes of a figure of one panel."""
    axes.set(xlabel=x, ylabel=in_lines(y, 44))
    add_title(axes, title)
    add_legend(figure, axes)
    add_footnote(figure, notes)
