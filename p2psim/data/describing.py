"""What the columns of a file hold, what they would become as features, and which could be y or name owners."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from p2psim.data.columns import NotNumbersError
from p2psim.data.encoding import MOST_CATEGORIES, begins_with_dates, categories_in, dates_in
from p2psim.data.table_file import TableFile, read_csv, read_parquet

#: Names that columns of labels often have.
_LABELS = ("y", "label", "labels", "target", "class", "outcome", "response")
#: Most frequent values that are listed of columns with too many for categories.
_SHOWN = 5
#: Rows from which numbers without a gap are taken for those of the rows, and what is said of their column.
_COUNTED = 20
_COUNTS = "a number; if it only numbers the rows, list the features in x without it"


@dataclass(frozen=True)
class ColumnSummary:
    """A column of a file.

    Attributes
    ----------
    column : str
    holds : str
        ``numbers``, ``dates``, ``categories``, ``text`` (too many different values for categories), ``row numbers``,
        ``nothing``, or a type that no source reads.
    missing : int
        Rows without a value.
    different : int or None
        Number of different values.
    least, most : float, str or None
        Smallest and largest value of numbers and dates.
    counts : dict
        Rows of each category, the most frequent first; of text only the first few.
    becomes : str
        What a source makes of it, and the key that keeps it where it is left out otherwise.
    first : str
        What the first value that is no number is, and where.
    """

    column: str
    holds: str
    missing: int
    different: int | None
    least: float | str | None
    most: float | str | None
    counts: Mapping[str, int]
    becomes: str
    first: str = ""


def _summary(file: TableFile, name: str) -> ColumnSummary:
    first, column = "", file.table[name]
    try:
        values = file.numbers(name)
    except NotNumbersError as error:
        first = error.what if error.row is None else f"{error.what} in {file.where_inside(error.row)}"
        if file.holds_decimal_commas(name):
            why = 'left out; --decimal , (decimal: "," in a scenario) makes numbers of it'
            return ColumnSummary(name, "decimal commas", 0, None, None, None, {}, why, first)
    else:
        known = values[~np.isnan(values)]
        least, most = (float(known.min()), float(known.max())) if known.size else (None, None)
        holds = "row numbers" if name in file.index else "numbers" if known.size else "nothing"
        becomes = {"numbers": "a number", "nothing": "left out"}.get(holds, "left out, unless x names it")
        if _numbers_rows(values):
            becomes = _COUNTS
        gaps = values.size - known.size
        if np.isinf(known).any():
            becomes = "refused: a value is infinite or beyond floating-point numbers"
        elif holds == "numbers" and gaps:
            becomes = "refused; missing: drop, mean or median keeps it"
        return ColumnSummary(name, holds, gaps, np.unique(known).size, least, most, {}, becomes)
    try:
        days = dates_in(column, "days")
    except NotNumbersError as error:
        if error.row is not None and begins_with_dates(column, error.row):
            first = f"{error.what} ({file.where_inside(error.row)})"
    else:
        known = days[~np.isnan(days)]
        if not known.size:
            return ColumnSummary(name, "nothing", days.size, 0, None, None, {}, "left out")
        begin, end = (str(np.datetime64(int(np.floor(day)), "D")) for day in (known.min(), known.max()))
        return ColumnSummary(
            name, "dates", days.size - known.size, np.unique(known).size, begin, end, {},
            f"left out; dates: {{{name}: years}} keeps it{_with(days.size - known.size)}", first,
        )  # fmt: skip
    try:
        names, places = categories_in(column)
    except NotNumbersError:
        return ColumnSummary(
            name, str(column.type), column.null_count, None, None, None, {}, "left out", first
        )
    rows = np.bincount(places[places >= 0], minlength=len(names))
    few = len(names) <= MOST_CATEGORIES
    frequent = np.argsort(-rows, kind="stable")[: None if few else _SHOWN]
    keeps = f"; categories: {{{name}: one-hot}} keeps it, as {len(names)} features" if few else ""
    keeps += _with(int((places < 0).sum())) if few else ""
    return ColumnSummary(
        name, "categories" if few else "text", int((places < 0).sum()), len(names), None, None,
        {names[i]: int(rows[i]) for i in frequent}, f"left out{keeps}", first,
    )  # fmt: skip


def _numbers_rows(values: np.ndarray) -> bool:
    """Whether a column of some length counts its rows, in any order."""
    counted = np.sort(values)
    return values.size >= _COUNTED and float(counted[0]).is_integer() and bool((np.diff(counted) == 1).all())


def _with(missing: int) -> str:
    return ", with missing: drop, mean or median" if missing else ""


def is_parquet(path: str) -> bool:
    """Whether a file is Parquet, by its name."""
    return path.lower().endswith((".parquet", ".pq"))


def describe(path: str, separator: str = ",", decimal: str = ".") -> dict[str, Any]:
    """Describe a CSV or Parquet file (named ``.parquet`` or ``.pq``).

    Returns
    -------
    dict
        ``path``, ``rows``, ``columns`` (of each what `ColumnSummary` has), ``y`` and ``partition``: names of columns
        that could be the labels, and name the owners, the likeliest first; ``classes``, those labels that are two
        classes; and ``smallest``, the least records of an owner with each such partition.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    if is_parquet(path):
        file = read_parquet(path, "FILE")
    else:
        file = read_csv(path, "FILE", delimiter=separator, decimal=decimal, hint="--separator {}")
    rows = file.table.num_rows
    columns = [_summary(file, name) for name in file]
    labels = [c for c in columns if c.holds in ("numbers", "categories") and not c.missing]
    named = [c.column for c in labels if c.column.lower() in _LABELS]
    two = [c.column for c in labels if c.different == 2]
    others = [
        c.column for c in labels if c.column in two or (c.holds == "numbers" and (c.different or 0) > 2)
    ]
    # What only numbers the rows comes last.
    counting = [c.column for c in columns if c.becomes == _COUNTS]
    others.sort(key=lambda name: name not in counting)
    smallest = {}
    for c in columns:
        # Owners hold two records at least in the mean; numbers are owners where they are few codes.
        several = 2 <= (c.different or 0) <= rows / 2 and not c.missing and c.column not in named
        codes = c.holds == "categories" or (
            c.holds == "numbers" and (c.different or 0) <= MOST_CATEGORIES and _is_whole(file, c.column)
        )
        if several and codes:
            smallest[c.column] = int(np.bincount(categories_in(file.table[c.column])[1]).min())
    holds = {c.column: c.holds for c in columns}
    return {
        "path": path,
        "rows": rows,
        "columns": [asdict(column) for column in columns],
        # The last columns are likelier than the first.
        "y": [*named, *reversed([name for name in others if name not in named])],
        "classes": [
            c.column for c in labels if c.column in two or (c.column in named and c.holds == "categories")
        ],
        "partition": sorted(smallest, key=lambda name: holds[name] != "categories"),
        "smallest": smallest,
    }


def _is_whole(file: TableFile, name: str) -> bool:
    values = file.numbers(name)
    return bool((values == np.floor(values)).all())
