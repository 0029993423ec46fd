"""What a column of a user's table becomes: numbers, categories one-hot or by their place, or dates.

Nothing is fitted: the list of categories of a column is taken to be public, as a data dictionary is.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.core.text_tables import shown
from p2psim.data.classes import in_order, text_of
from p2psim.data.columns import MISSING, MISSING_CATEGORY, NotNumbersError, numbers_in

CategoryCode = Literal["one-hot", "ordinal"]
DateCode = Literal["years", "days"]

#: Different values that a column of categories may have.
MOST_CATEGORIES = 1_000

_DAY = np.timedelta64(1, "D")
_ZONES = (None, "UTC")


def is_text(column: Any) -> bool:
    """Whether a column of Arrow holds text."""
    import pyarrow as pa

    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def present(column: Any) -> Any:
    """A column of text without the spaces around it, with nulls where a word for a missing value stands."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(pc.cast(column, pa.string()))
    return pc.if_else(pc.is_in(text, value_set=pa.array(MISSING)), pa.scalar(None, pa.string()), text)


def dates_in(column: Any, unit: str) -> np.ndarray:
    """Take a column of dates, or of ISO 8601 dates written as text, as numbers.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
    unit : {"years", "days"}
        The year with its elapsed fraction, or days since 1970-01-01. Times with a zone are those of UTC.

    Returns
    -------
    ndarray of float64, shape (n,)
        NaN where a value is missing.

    Raises
    ------
    NotNumbersError
        With the first row that holds no date.
    """
    import pyarrow as pa

    written = present(column) if is_text(column) else column
    if not (is_text(column) or pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)):
        raise NotNumbersError(f"{column.type}, which are not dates")
    moments = _moments(written)
    if moments is None:
        cells = written.to_pylist()
        # With either zone some value is wrong: what neither takes, or what differs from those before it.
        row = max(
            next(i for i, cell in enumerate(cells) if _moments([cell], (zone,)) is None) for zone in _ZONES
        )
        wrong = "a date without a zone, beside others with a zone"
        if _moments([cells[row]]) is None:
            wrong = "not a date such as 2026-11-29"
        elif _moments([cells[row]], (None,)) is None:
            wrong = "a date with a zone, beside others without a zone"
        raise NotNumbersError(f"{shown(cells[row])}, which is {wrong}", row)
    times = moments.to_numpy().astype("M8[us]")
    if unit == "days":
        values = (times - np.datetime64(0, "D")) / _DAY
    else:
        years = times.astype("M8[Y]")
        begin, end = years.astype("M8[us]"), (years + 1).astype("M8[us]")
        values = 1970 + years.astype(np.int64) + (times - begin) / (end - begin)
    return np.where(np.isnat(times), np.nan, values)


def _moments(written: Any, zones: Sequence[str | None] = _ZONES) -> Any:
    """Dates as moments without a zone, those of UTC where they have one; None where they are not all alike."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(written, list):
        written = pa.chunked_array([pa.array(written, pa.string())])
    for zone in zones:
        with suppress(pa.ArrowInvalid):
            return pc.cast(
                pc.cast(written, pa.timestamp("us", zone), safe=False), pa.timestamp("us"), safe=False
            )
    return None


def begins_with_dates(column: Any, row: int) -> bool:
    """Whether dates stand before `row`, the first that holds none: then it is a mistake rather than a category."""
    return bool(present(column)[:row].null_count < row)


def categories_in(column: Any) -> tuple[list[str], np.ndarray]:
    """Take a column as categories, without the spaces around them.

    Parameters
    ----------
    column : pyarrow.ChunkedArray

    Returns
    -------
    names : list of str
        In the order of numbers if all of them are numbers, otherwise of text.
    places : ndarray of int64, shape (n,)
        −1 where a value is missing.

    Raises
    ------
    NotNumbersError
        If values are neither text nor numbers nor dates.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type):
        values = pc.cast(column, pa.float64()).to_pylist()
        named = [None if v is None or v != v else str(int(v)) if v.is_integer() else repr(v) for v in values]
        text = pa.chunked_array([pa.array(named, pa.string())])
    else:
        text = present(text_of(column))
    coded = pc.dictionary_encode(text).combine_chunks()
    words = coded.dictionary.to_pylist()
    names = in_order(words)
    place = {name: i for i, name in enumerate(names)}
    renumbered = np.array([place[word] for word in words] + [-1], dtype=np.int64)
    return names, renumbered[coded.indices.fill_null(-1).to_numpy()]


@dataclass(frozen=True)
class Code:
    """What a column becomes.

    Attributes
    ----------
    column : str
    kind : str
        ``number``, ``one-hot``, ``ordinal``, ``years`` or ``days``.
    categories : tuple of str
        In order, of the two kinds of categories.
    """

    column: str
    kind: str = "number"
    categories: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        if self.kind != "one-hot":
            return (self.column,)
        return tuple(f"{self.column}={name}" for name in self.categories)

    @property
    def note(self) -> dict[str, object]:
        """The same in plain JSON types; `noted` reads it."""
        return {"as": self.kind, **({"categories": list(self.categories)} if self.categories else {})}

    @classmethod
    def noted(cls, column: str, note: dict[str, Any] | None) -> "Code":
        """Code that `note` wrote; a number where nothing is noted."""
        return cls(column, note["as"], tuple(note.get("categories", ()))) if note else cls(column)

    def features(self, column: Any) -> np.ndarray:
        """Features of a column of Arrow, shape (n, q), NaN where a value is missing.

        Raises
        ------
        NotNumbersError
            If a value is none that the code knows.
        """
        if self.kind == "number":
            return numbers_in(column, is_text(column))[:, None]
        if self.kind in ("years", "days"):
            return dates_in(column, self.kind)[:, None]
        names, places = categories_in(column)
        place = {name: i for i, name in enumerate(self.categories)}
        known = np.array([place.get(name, -1) for name in names] + [-1], dtype=np.int64)
        strange = (known[places] < 0) & (places >= 0)
        if strange.any():
            row = int(np.argmax(strange))
            raise NotNumbersError(f"{names[places[row]]!r}, which is not one of its categories", row)
        places = known[places]
        values = places[:, None].astype(float)
        if self.kind == "one-hot":
            values = (places[:, None] == np.arange(len(self.categories))).astype(float)
        values[places < 0] = np.nan
        return values

    def without_gaps(self, features: np.ndarray) -> np.ndarray:
        """The same, with what a missing category becomes: zeros, or −1; missing numbers stay NaN."""
        if not self.categories:
            return features
        return np.where(np.isnan(features), 0.0 if self.kind == "one-hot" else MISSING_CATEGORY, features)


def indicated(name: str) -> str:
    """Name of the feature that says where a column has no value."""
    return f"{name} is missing"


def coded(column: Any, name: str, kind: str) -> tuple[Code, np.ndarray]:
    """Make a code of a kind for a column of Arrow, and its features.

    Raises
    ------
    NotNumbersError
        If the column holds no categories, or no dates.
    MeaningError
        If there are too many categories.
    """
    names: Sequence[str] = ()
    if kind in ("one-hot", "ordinal"):
        names, _ = categories_in(column)
        if not names:
            raise NotNumbersError("no values")
        if len(names) > MOST_CATEGORIES:
            raise MeaningError(
                "data.source.categories",
                f"column {name!r} has {len(names):,} different values; categories are 1 to {MOST_CATEGORIES:,}: name "
                "the columns of categories, as {COLUMN: one-hot}, or list the features in data.source.x",
            )
    code = Code(name, kind, tuple(names))
    return code, code.features(column)


def keeping(columns: Iterable[tuple[str, Any]]) -> str:
    """Say which options would keep columns that hold no numbers; nothing where none does."""
    options: dict[str, list[str]] = {"dates": [], "categories": []}
    for name, column in columns:
        with suppress(NotNumbersError):
            if not np.isnan(dates_in(column, "days")).all():
                options["dates"].append(f"{name}: years")
            continue
        with suppress(NotNumbersError):
            if 0 < len(categories_in(column)[0]) <= MOST_CATEGORIES:
                options["categories"].append(f"{name}: one-hot")
    phrases = [f"{key}: {{{', '.join(entries)}}}" for key, entries in options.items() if entries]
    return f"; to keep them, give data.source {' and '.join(phrases)}" if phrases else ""
