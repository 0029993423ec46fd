"""A table in a CSV or Parquet file, and the places of its values."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from p2psim.core.agent_names import some
from p2psim.core.errors import MeaningError, first_line
from p2psim.core.files import checked
from p2psim.core.text_tables import DAMAGED, as_wide, header_of, lines_of, opened, refuse_repeated, shown
from p2psim.data.classes import labels_in
from p2psim.data.columns import MISSING, NotNumbersError, numbers_in, require


@dataclass(frozen=True, eq=False)
class TableFile(Mapping[str, Any]):
    """A table that was read; as a mapping, the labels of each column, as written.

    Attributes
    ----------
    place : Path
    table : pyarrow.Table
    index : tuple of str
        Columns that number the rows: those without a name, or the index of the data frame that was written. They are
        no features unless they are named.
    lines : callable or None
        Makes the lines on which rows begin; None where numbers are not written as text.
    notes : int
        Number of rows that were left out, since they are notes.
    decimal : str
        Decimal mark of numbers that are written as text.
    places : callable or None
        Place of a row, where rows are not those of the file.
    """

    place: Path
    table: Any
    index: tuple[str, ...] = ()
    lines: Callable[[], Iterator[int]] | None = None
    notes: int = 0
    decimal: str = "."
    places: Callable[[int], str] | None = None

    def __getitem__(self, name: str) -> Any:
        try:
            return labels_in(self.table[name])
        except NotNumbersError as error:
            message = f"column {name!r} holds {error}, which cannot name owners"
            raise MeaningError("data.partition.column", message) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.table.column_names)

    def __len__(self) -> int:
        return int(self.table.num_columns)

    def where(self, row: int) -> str:
        """Place of a row, which counts from 0."""
        if self.places is not None:
            return self.places(row)
        if self.lines is None:
            return f"row {row + 1} of {self.place}"
        return f"row {row + 1} ({self.place}:{self._line(row)})"

    def where_inside(self, row: int) -> str:
        """Place of a row, which counts from 0, for readers who know the file: its line, where rows are lines."""
        if self.places is not None:
            return self.places(row)
        return f"row {row + 1}" if self.lines is None else f"line {self._line(row)}"

    def _line(self, row: int) -> int:
        assert self.lines is not None
        return next(itertools.islice(self.lines(), row, None))

    def numbers(self, name: str) -> np.ndarray:
        """Values of a column as numbers, shape (n,), NaN where missing; see `numbers_in`."""
        import pyarrow.compute as pc

        column = self.table[name]
        if self.lines is None or self.decimal == ".":
            return numbers_in(column, is_text=self.lines is not None)
        # A point is no part of a number then: 1.234 may be meant as 1,234.
        text = pc.replace_substring(pc.replace_substring(column, ".", "·"), self.decimal, ".")
        try:
            return numbers_in(text, is_text=True)
        except NotNumbersError as error:
            raise NotNumbersError(shown(column[error.row].as_py()), error.row) from None

    def holds_decimal_commas(self, name: str) -> bool:
        """Whether a column of text holds numbers once commas are decimal marks."""
        try:
            has_points = self.lines is not None and self.decimal == "."
            return has_points and bool(np.isfinite(replace(self, decimal=",").numbers(name)).any())
        except NotNumbersError:
            return False

    def finite(self, names: Sequence[str], key: str, hint: str = "") -> np.ndarray:
        """Values of columns, which must be finite numbers.

        Parameters
        ----------
        names : sequence of str
        key : str
            The dotted scenario key, named in errors.
        hint : str
            What a message about a column of something else ends with.

        Returns
        -------
        ndarray of float64, shape (n, len(names))

        Raises
        ------
        MeaningError
            With the value and its place, if there is no such column, or it holds something else.
        """
        X = np.empty((self.table.num_rows, len(names)))
        for j, name in enumerate(names):
            require(self, name, key)
            try:
                values = self.numbers(name)
            except NotNumbersError as error:
                given = f"it holds {error}" if error.row is None else f"{self.where(error.row)} has {error}"
                raise MeaningError(key, f"column {name!r} must hold numbers; {given}{hint}") from None
            X[:, j] = values
            self.refuse(~np.isfinite(values), name, key)
        return X

    def refuse(self, bad: np.ndarray, name: str, key: str, hint: str = "") -> None:
        """Raise a MeaningError, with the first place and a hint, if rows of a column are no finite numbers."""
        if bad.any():
            row = int(np.argmax(bad))
            raise MeaningError(
                key,
                f"column {name!r} must hold finite numbers; {int(bad.sum())} are missing, infinite or beyond "
                f"floating-point numbers, the first in {self.where(row)}: {shown(self.table[name][row].as_py())}{hint}",
            )

    def frame(self, words: Sequence[str] = MISSING) -> Any:
        """Columns as a pandas.DataFrame of text, in which these words are missing values."""
        import pyarrow as pa
        import pyarrow.compute as pc

        none, known = pa.scalar(None, pa.string()), pa.array(words)
        columns = [pc.if_else(pc.is_in(one, value_set=known), none, one) for one in self.table.columns]
        return pa.table(columns, names=list(self)).to_pandas()

    def keep(self, rows: np.ndarray) -> TableFile:
        """Rows for which a mask, shape (n,), is true."""
        import pyarrow as pa

        kept = np.flatnonzero(rows)

        def places(row: int) -> str:
            return self.where(int(kept[row]))

        return replace(self, table=self.table.filter(pa.array(rows)), places=places)

    def followed_by(self, other: TableFile, key: str) -> TableFile:
        """Put below this table the rows of another that has its columns, and perhaps more.

        Raises
        ------
        MeaningError
            If it lacks a column, or holds there what does not fit.
        """
        import pyarrow as pa

        if lacking := [name for name in self if name not in other.table.column_names]:
            message = f"{other.place} must have the columns of {self.place}; it lacks {some(lacking)}"
            raise MeaningError(key, message)
        try:
            more = other.table.select(list(self))
            table = pa.concat_tables([self.table, more], promote_options="permissive")
        except pa.ArrowException as error:
            raise MeaningError(key, f"{other.place} does not fit {self.place}: {first_line(error)}") from None
        own = self.table.num_rows

        def places(row: int) -> str:
            return self.where(row) if row < own else other.where(row - own)

        return replace(self, table=table.combine_chunks(), places=places)


def read_csv(
    path: str,
    key: str,
    *,
    delimiter: str = ",",
    skip: int = 0,
    names: Sequence[str] | None = None,
    wanted: Callable[[str], bool] = lambda name: True,
    notes: bool = False,
    decimal: str = ".",
    hint: str = "separator: {}",
) -> TableFile:
    """Read a CSV file in UTF-8 (compressed as its name says) as text.

    Parameters
    ----------
    path : str
    key : str
        The dotted scenario key, named in errors.
    delimiter : str
    skip : int
        Number of lines before the table.
    names : sequence of str, optional
        Names of the columns of a table that has no header.
    wanted : callable
        Whether to keep the column of a name.
    notes : bool
        Whether rows of a single field are notes, which are left out and counted.
    decimal : str
        Decimal mark of numbers.
    hint : str
        How a separator is given, with a place for it; for the error that there is a single column.

    Raises
    ------
    MissingSourceError
        If there is no such file.
    MeaningError
        With the line, if it is not UTF-8, a row is shorter or longer than the header, or two columns have the same
        name.
    """
    import pyarrow as pa
    from pyarrow import csv

    place = checked(path, key)
    header = header_of(place, key, delimiter, skip) if names is None else names
    if len(header) == 1 and (marks := [mark for mark in (",", ";", "\t", "|") if mark in header[0]]):
        raise MeaningError(
            key,
            f"{place} has a single column, {shown(header[0])}; if {shown(marks[0])} separates its fields, give "
            + hint.format(json.dumps(marks[0])),
        )
    named = [name or f"(column {j + 1})" for j, name in enumerate(header)]
    left_out = 0

    def lines() -> Iterator[tuple[int, list[str]]]:
        below = itertools.islice(lines_of(place, key, delimiter, skip), int(names is None), None)
        rows = ((line, cells) for line, cells in below if not (notes and len(cells) == 1))
        return as_wide(rows, len(named), place, key, delimiter)

    def of_other_width(row: Any) -> str:
        nonlocal left_out
        is_blank = not row.text.strip()
        if row.actual_columns > 1 or not (notes or is_blank):
            return "error"
        left_out += not is_blank
        return "skip"

    def begins() -> Iterator[int]:
        return (line for line, _ in lines())

    kept = [name for name in named if wanted(name)]
    types = {name: pa.string() for name in kept}
    first = next(begins(), None)
    if first is None:
        empty = pa.table({name: pa.array([], kind) for name, kind in types.items()})
        return TableFile(place, empty, (), begins, 0, decimal)
    try:
        with opened(place) as stream:
            table = csv.read_csv(
                stream,
                # One thread: workers share the cores, and rows are counted in order.
                csv.ReadOptions(column_names=named, skip_rows=first - 1, use_threads=False),
                csv.ParseOptions(
                    delimiter=delimiter, newlines_in_values=True, invalid_row_handler=of_other_width
                ),
                csv.ConvertOptions(column_types=types, include_columns=kept, strings_can_be_null=False),
            )
    except (pa.ArrowException, ValueError, *DAMAGED) as error:
        for _ in lines():  # which stops where the fault is
            pass
        raise MeaningError(key, f"{place} cannot be read as CSV: {first_line(error)}") from None
    if _may_swallow(place, len(table)):
        for _ in lines():  # which refuses a quotation mark that is out of place
            pass
    unnamed = tuple(name for name, given in zip(named, header, strict=True) if not given)
    return TableFile(place, table, unnamed, begins, left_out, decimal)


def _may_swallow(place: Path, rows: int) -> bool:
    """Whether a quotation mark that is never closed may have made one cell of many rows: pyarrow does not tell."""
    quotes = ends = 0
    with opened(place) as stream:
        while piece := stream.read(1 << 20):
            quotes += piece.count(b'"')
            ends += piece.count(b"\n")
    return quotes % 2 == 1 or (quotes > 0 and ends > rows + 1)


def read_parquet(path: str, key: str) -> TableFile:
    """Read a Parquet file; see `read_csv`."""
    import pyarrow as pa
    from pyarrow import parquet

    place = checked(path, key)
    try:
        with parquet.ParquetFile(place) as file:
            table = file.read()
    except (pa.ArrowException, ValueError, OSError) as error:
        raise MeaningError(key, f"{place} cannot be read as Parquet: {first_line(error)}") from None
    refuse_repeated(table.column_names, key, place)
    written = (table.schema.pandas_metadata or {}).get("index_columns", [])
    return TableFile(place, table, tuple(name for name in written if isinstance(name, str)))
