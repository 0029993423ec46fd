"""Numbers as people write them, and tables of them in text files.

What a float cannot hold is refused, and does not become 0 or infinity. A table has comma-separated values under a
header, every row as long as the header, in UTF-8. Cells stay text, as written; :func:`number` reads one as a number.
"""

import bz2
import csv
import gzip
import io
import itertools
import lzma
import math
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from p2psim.core.errors import MeaningError, first_line

if TYPE_CHECKING:
    import numpy as np

#: A number so written that it may be beyond a float: with an exponent of three digits, or with very many digits.
_SUSPECT = re.compile(
    r"(?<![\w.])(?=\.?[0-9])(?:[0-9]*+\.?[0-9]*+[eE][-+]?[0-9]{3,}|[0-9]{300,}+\.?[0-9]*+|[0-9]*+\.[0-9]{300,}+)"
)


class BeyondFloatError(ValueError):
    """A number is too large or too small for a float."""


def decimal(text: str, infinity: str = "inf") -> float:
    """Return the float that is nearest to a number in decimal notation.

    Parameters
    ----------
    text : str
        What ``float`` reads.
    infinity : str
        How infinity is written where the text comes from, named in the error.

    Raises
    ------
    BeyondFloatError
        If the number is finite and the float infinite, or the float 0 and the number not.
    ValueError
        If it is no number.
    """
    value = float(text)
    shown = text.strip() if len(text) <= 40 else f"{text.strip()[:40]}…"
    if math.isinf(value) and any(letter.isdigit() for letter in text):
        raise BeyondFloatError(f"{shown} is too large for a number; write {infinity} for infinity")
    if value == 0 and re.search("[1-9]", re.split("[eE]", text)[0]):
        raise BeyondFloatError(f"{shown} is too small for a number; the smallest is 5e-324, or write 0")
    return value


def is_beyond(text: str) -> bool:
    """Whether a text is a number that a float cannot hold."""
    try:
        decimal(text)
    except BeyondFloatError:
        return True
    return False


def refuse_beyond(text: str) -> None:
    """Raise BeyondFloatError if a text holds a number that a float cannot hold."""
    for match in _SUSPECT.finditer(text):
        decimal(match.group())


#: Errors of damaged compressed files.
DAMAGED = (OSError, EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)

#: What is wrong with a row, by words of the csv module.
_DAMAGED_ROWS = {
    "new-line": "a carriage return stands inside the row; save the file with line ends LF or CR LF",
    "field larger": "a field has more than 131,072 characters; a quotation mark may never be closed",
}
_MISQUOTED = "a quotation mark is out of place, or never closed"

_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?(inf|infinity)", re.IGNORECASE)


def number(text: str) -> float | None:
    """Read a number in plain decimal notation, possibly infinite or with an exponent; None for any other text.

    Raises
    ------
    BeyondFloatError
        If a float cannot hold it.
    """
    return decimal(text) if is_number(text) else None


def is_number(text: str) -> bool:
    """Whether `number` reads a text, whatever a float can hold."""
    return _NUMBER.fullmatch(text.strip()) is not None


def moment(text: str, place: str, key: str) -> float:
    """Read the begin or the end of a span, 0 or more; ``.inf`` is for ever.

    Raises
    ------
    MeaningError
        Naming the place, if it is no such time.
    """
    try:
        time = number(text.replace(".inf", "inf"))
    except BeyondFloatError as error:
        raise MeaningError(key, f"{place}: {error}") from None
    if time is None or time < 0:
        raise MeaningError(key, f"{place}: begin and end must be times, 0 or more, got {shown(text)}")
    return time


def shown(value: object, most: int = 40) -> str:
    """Show a value in a message: quoted text as written, shortened."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def opened(place: Path) -> IO[bytes]:
    """Open a file, decompressed if its name ends in .gz, .bz2, .xz or .zip (a single file inside)."""
    return _OPENERS.get(place.suffix.lower(), partial(open, mode="rb"))(place)


def _member(place: Path) -> IO[bytes]:
    archive = zipfile.ZipFile(place)
    names = archive.namelist()
    if len(names) != 1:
        raise zipfile.BadZipFile(f"one file is expected inside, it holds {len(names)}")
    return archive.open(names[0])


_OPENERS: dict[str, Callable[[Any], Any]]
_OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open, ".zip": _member}


def lines_of(place: Path, key: str, delimiter: str = ",", skip: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Read the rows of a table that are not empty, as lists of cells.

    Parameters
    ----------
    place : Path
    key : str
        The dotted scenario key, named in errors.
    delimiter : str
    skip : int
        Number of lines before the table.

    Yields
    ------
    line : int
        Number of the line where the row begins, from 1.
    cells : list of str

    Raises
    ------
    MeaningError
        With the line, if the file is not UTF-8 text or a quotation mark is out of place.
    """
    begins = skip + 1
    try:
        with opened(place) as stream, io.TextIOWrapper(stream, "utf-8-sig", newline="") as text:
            for _ in range(skip):
                text.readline()
            reader = csv.reader(text, strict=True, delimiter=delimiter)
            try:
                for cells in reader:
                    if len(cells) > 1 or (cells and cells[0].strip()):
                        yield begins, cells
                    begins = skip + reader.line_num + 1
            except csv.Error as error:
                why = next((why for words, why in _DAMAGED_ROWS.items() if words in str(error)), _MISQUOTED)
                raise MeaningError(key, f"{place}:{begins}: {why}") from None
    except UnicodeDecodeError:
        raise MeaningError(key, _undecodable(place)) from None
    except DAMAGED as error:
        raise MeaningError(key, f"{place} cannot be read: {first_line(error)}") from None


#: Files that people take for CSV, by their first bytes, and how a CSV file is made of them.
_OTHER_FILES = (
    *((mark, "UTF-16 text; save the file as UTF-8") for mark in (b"\xff\xfe", b"\xfe\xff")),
    *(
        (mark, "no text, but a ZIP archive or a spreadsheet; save the table as CSV (UTF-8)")
        for mark in (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
    ),
)


def _undecodable(place: Path) -> str:
    with opened(place) as stream:
        data = stream.read()
    for begins, what in _OTHER_FILES:
        if data.startswith(begins):
            return f"{place} is {what}"
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return (
            f"{place}:{line}: is not UTF-8 text (byte 0x{data[error.start]:02x}); save the file as UTF-8, "
            "for instance with iconv --from-code LATIN1 --to-code UTF-8"
        )
    return f"{place} is not UTF-8 text"


def header_of(place: Path, key: str, delimiter: str = ",", skip: int = 0) -> list[str]:
    """Names of the columns of a table, which begins with them; parameters as of `lines_of`.

    Raises
    ------
    MeaningError
        If there is no header, or two columns have the same name.
    """
    line, header = next(lines_of(place, key, delimiter, skip), (1, []))
    if not header:
        raise MeaningError(key, f"{place} is empty")
    refuse_repeated(header, key, f"{place}:{line}")
    return header


def refuse_repeated(names: Sequence[str], key: str, place: object) -> None:
    """Raise if two columns have the same name; those without a name are told apart by their places.

    Raises
    ------
    MeaningError
    """
    if (again := repeated(names)) is not None:
        raise MeaningError(key, f"{place}: two columns are called {names[again]!r}")


def repeated(names: Sequence[str]) -> int | None:
    """Place, from 0, of the first name that was there before; None where all differ. Empty names do not count."""
    known = {""}
    for i, name in enumerate(names):
        if name and name in known:
            return i
        known.add(name)
    return None


def as_wide(
    lines: Iterable[tuple[int, list[str]]], width: int, place: Path, key: str, delimiter: str = ","
) -> Iterator[tuple[int, list[str]]]:
    """Pass on the rows that `lines_of` yields, which must have `width` cells.

    Raises
    ------
    MeaningError
        With the line, if a row is shorter or longer.
    """
    for line, cells in lines:
        if len(cells) != width:
            given = shown(delimiter.join(cells), 60)
            raise MeaningError(key, f"{place}:{line}: must have {width} fields, got {len(cells)}: {given}")
        yield line, cells


def matrix_of(place: Path, key: str) -> "np.ndarray":
    """Read a table of numbers without a header, shape (rows, columns); what follows ``#`` is a comment.

    Raises
    ------
    MeaningError
        With the line, if a cell is no number or a row is shorter or longer than the first.
    """
    import numpy as np

    rows = rows_of(place, key)
    if (first := next(rows, None)) is None:
        raise MeaningError(key, f"{place} is empty")
    numbers = []
    for line, cells in as_wide(itertools.chain([first], rows), len(first[1]), place, key):
        try:
            values = [number(cell) for cell in cells]
        except BeyondFloatError as error:
            raise MeaningError(key, f"{place}:{line}: {error}") from None
        if None in values:
            raise MeaningError(key, f"{place}:{line}: {shown(cells[values.index(None)])} is not a number")
        numbers.append(values)
    return np.array(numbers, dtype=np.float64)


def rows_of(place: Path, key: str) -> Iterator[tuple[int, list[str]]]:
    """Read rows as `lines_of` does, without what follows ``#``, and without rows that are empty then."""
    for line, cells in lines_of(place, key):
        if text := ",".join(cells).split("#", 1)[0].strip():
            yield line, text.split(",")
