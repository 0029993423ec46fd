"""Files of figures: PNG, SVG and PDF whose bytes follow from the figure, and its numbers as CSV."""

import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from matplotlib import rc_context, ticker
from matplotlib.figure import Figure

from p2psim.core.errors import InputError
from p2psim.core.files import write_bytes
from p2psim.core.printing import complain
from p2psim.report import style
from p2psim.report.words import SUPERSCRIPTS

#: Dots per inch of the PNG files of a screen; those of print have more.
DPI = 150

#: Formats of files, and what is left out of them so that the same figure is the same bytes.
FORMATS: Mapping[str, Mapping[str, Any]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


def save_all(
    figures: Mapping[str, Figure], folder: Path | str, formats: Sequence[str] = ("png", "svg")
) -> list[Path]:
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
    with _one_note_on_letters():
        return [path for stem, figure in figures.items() for path in save(figure, into, stem, formats)]


def save(figure: Figure, folder: Path, stem: str, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Write each format, whole or not at all, the same bytes for the same figure, and its numbers as CSV."""
    _plain_powers(figure)
    files: dict[str, Callable[[io.BytesIO], Any]] = {
        name: lambda file, name=name: figure.savefig(file, format=name, dpi=DPI, metadata=dict(FORMATS[name]))  # type: ignore[misc]
        for name in formats
    }
    if style.has_numbers(figure):
        files["csv"] = lambda file: style.numbers(figure).to_csv(file, index=False)
    paths = []
    with _laid_out(figure):
        for extension, write in files.items():
            content = io.BytesIO()
            write(content)
            # A metric of a stranger's table may have any name.
            path = folder / f"{stem.replace('/', '-')}.{extension}"
            write_bytes(path, content.getvalue())
            paths.append(path)
    return paths


@contextmanager
def _laid_out(figure: Figure) -> Iterator[None]:
    """Give everything its place once, and not for each format: that takes as long as drawing it twice."""
    engine, dpi = figure.get_layout_engine(), figure.dpi
    figure.dpi = DPI
    figure.draw_without_rendering()
    figure.dpi = dpi
    with rc_context({"figure.autolayout": False, "figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)
    try:
        yield
    finally:
        figure.set_layout_engine(engine)


@contextmanager
def _one_note_on_letters() -> Iterator[None]:
    """Say once which letters the font does not have, in the place of Matplotlib's warnings, one for each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    missing: dict[str, None] = {}
    for one in caught:
        if letter := re.match(r"Glyph (\d+) .*missing from", str(one.message)):
            missing[chr(int(letter[1]))] = None
        elif "currently does not support" not in str(one.message):  # a script of such letters
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    if missing:
        shown = "".join(list(missing)[:20]) + "…" * (len(missing) > 20)
        text = f"boxes stand for letters that the font of figures, {style.FONT}, does not have: {shown}"
        complain(text, "note")


class _PlainPowers(ticker.Formatter):
    """The same labels in plain text: which ticks are labelled follows from the ticks that there are."""

    def __init__(self, inner: ticker.LogFormatterMathtext) -> None:
        self.inner = inner

    def set_locs(self, locs: Any) -> None:
        self.inner.set_locs(locs)

    def __call__(self, value: float, position: int | None = None) -> str:
        inside = re.sub(r"[$]|\\mathdefault", "", self.inner(value, position)).replace("\\times", "·")
        inside = re.sub(r"\^\{([-0-9]+)\}", lambda power: power[1].translate(SUPERSCRIPTS), inside)
        return re.sub(r"[{} ]", "", inside).replace("-", "−")


def _plain_powers(figure: Figure) -> None:
    """Write the powers of ten of log axes as Unicode, since formulas are not parsed (see `look`)."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(major := axis.get_major_formatter(), ticker.LogFormatterMathtext):
                axis.set_major_formatter(_PlainPowers(major))
            if isinstance(minor := axis.get_minor_formatter(), ticker.LogFormatterMathtext):
                axis.set_minor_formatter(_PlainPowers(minor))
