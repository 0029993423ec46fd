"""Conversion of columns, of a file or of a data frame, to numbers.

The rules look at no value of another row's owner: nothing is fitted here. A category becomes its place in the sorted
list of categories, which is taken to be public, as a data dictionary is. Missing values become constants for the same
reason.
"""

import contextlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from p2psim.core.agent_names import some
from p2psim.core.errors import MeaningError
from p2psim.core.faults import nearest
from p2psim.core.text_tables import is_beyond, is_number, shown
from p2psim.data.records import Where, row_name

#: What a missing number becomes: "months since the last delinquency" is missing when there was none.
MISSING_NUMBER = 0.0
#: What a missing category becomes: a category of its own.
MISSING_CATEGORY = -1.0


def require(known: Iterable[object], name: str, key: str) -> None:
    """Raise unless there is a column of that name.

    Raises
    ------
    MeaningError
        Naming the nearest known column, and the known ones.
    """
    names = [str(column) for column in known]
    if name in names:
        return
    hint = f" (did you mean {near!r}?)" if (near := nearest(name, names)) else ""
    message = f"no column is called {name!r}{hint}; the columns are {some(names, 12) or 'none'}"
    raise MeaningError(key, message)


def numeric(frame: Any, name: str, key: str, where: Where = row_name) -> np.ndarray:
    """Take a column that holds numbers already.

    Parameters
    ----------
    frame : pandas.DataFrame
    name : str
        A column of the frame.
    key : str
        The dotted scenario key, named in errors.
    where : callable
        Place of a row, which counts from 0, for errors.

    Returns
    -------
    ndarray of float64, shape (n,)

    Raises
    ------
    MeaningError
        If the column is text, or has missing or infinite values.
    """
    from pandas.api.types import is_numeric_dtype

    if not is_numeric_dtype(frame[name].dtype):
        raise MeaningError(key, f"column {name!r} must hold numbers, it holds {frame[name].dtype}")
    values: np.ndarray = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
    check_finite(values[:, None], [name], key, where)
    return values


def check_finite(values: np.ndarray, names: Iterable[str], key: str, where: Where = row_name) -> None:
    """Raise if a value is missing or infinite.

    Parameters
    ----------
    values : ndarray, shape (n, p)
    names : iterable of str
        The p columns.
    key : str
        The dotted scenario key, named in errors.
    where : callable
        Place of a row, which counts from 0, for errors.

    Raises
    ------
    MeaningError
        Naming the first such column, and the place of its first such row.
    """
    for j, name in enumerate(names):
        bad = ~np.isfinite(values[:, j])
        if bad.any():
            raise MeaningError(
                key,
                f"column {name!r} must hold finite numbers; {int(bad.sum())} are missing or infinite, "
                f"the first in {where(int(np.argmax(bad)))}",
            )


def encode(frame: Any, key: str, where: Where = row_name) -> tuple[np.ndarray, dict[str, object]]:
    """Turn every column into numbers.

    Numbers stay, a missing one becomes 0. Text that always reads as a number, a percentage (``13.5%``) or
    a month (``Aug-2003``, as a fraction of a year) becomes that number; any other text becomes the place
    of its value among the sorted values, and −1 where it is missing.

    Parameters
    ----------
    frame : pandas.DataFrame
    key : str
        The dotted scenario key, named in errors.
    where : callable
        Place of a row, which counts from 0, for errors.

    Returns
    -------
    X : ndarray of float64, shape (n, p)
    notes : dict
        ``missing``: number of missing values a column; ``categories``: their list a column.

    Raises
    ------
    MeaningError
        If a number is infinite.
    """
    from pandas.api.types import is_numeric_dtype

    X = np.empty((len(frame), frame.shape[1]))
    missing: dict[str, int] = {}
    categories: dict[str, list[str]] = {}
    for j, name in enumerate(frame.columns):
        series = frame[name]
        absent = series.isna().to_numpy()
        if absent.any():
            missing[str(name)] = int(absent.sum())
        has_numbers = is_numeric_dtype(series.dtype)
        values = series.to_numpy(dtype=np.float64, na_value=np.nan) if has_numbers else number_of_text(series)
        if values is None:
            codes, values = _codes(series, absent)
            categories[str(name)] = codes
        else:
            values = np.where(absent, MISSING_NUMBER, values)
        X[:, j] = values
    check_finite(X, map(str, frame.columns), key, where)
    return X, {"missing": missing, "categories": categories}


def number_of_text(series: Any) -> np.ndarray | None:
    """Read text as numbers, percentages or months; None where some value is none of them.

    Parameters
    ----------
    series : pandas.Series
        Of text; missing values give NaN.

    Returns
    -------
    ndarray of float64, shape (n,), or None
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    text = series.astype("string").str.strip()
    for candidate in (text, text.str.removesuffix("%")):
        with contextlib.suppress(pa.ArrowInvalid):
            written = pa.chunked_array([pa.array(candidate, pa.string())])
            values = pc.cast(written, pa.float64())
            if not pc.any(pc.is_nan(values)).as_py():
                return within_floats(written, values)
    months = pd.to_datetime(text, format="%b-%Y", errors="coerce")
    if (months.isna() & text.notna()).any():
        return None
    years = months.dt.year + (months.dt.month - 1) / 12
    return np.asarray(years.to_numpy(dtype=np.float64, na_value=np.nan))


def _codes(series: Any, absent: np.ndarray) -> tuple[list[str], np.ndarray]:
    text = np.array([str(value).strip() for value in series.to_numpy(dtype=object)[~absent]], dtype=str)
    categories, places = np.unique(text, return_inverse=True)
    values = np.full(len(series), MISSING_CATEGORY)
    values[~absent] = places
    return categories.tolist(), values


#: Words for a value that is missing, in columns of numbers and among the features of text files.
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "<NA>", "#N/A")

_TRUTHS = {"true": 1.0, "True": 1.0, "TRUE": 1.0, "false": 0.0, "False": 0.0, "FALSE": 0.0}


class NotNumbersError(ValueError):
    """A column does not hold numbers.

    Attributes
    ----------
    row : int or None
        The first row that holds something else, from 0; None if its type says so.
    what : str
        What is there.
    """

    def __init__(self, what: str, row: int | None = None):
        super().__init__(what)
        self.what, self.row = what, row


def numbers_in(column: Any, is_text: bool) -> np.ndarray:
    """Take a column as numbers.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
    is_text : bool
        Whether numbers are written as text, as in CSV. Text in other files is no number.

    Returns
    -------
    ndarray of float64, shape (n,)
        NaN where a value is missing. Truth values are 0 and 1, decimals the nearest double.

    Raises
    ------
    NotNumbersError
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if is_text:
        return _numbers_in_text(column)
    if pa.types.is_decimal(kind):
        # By their digits: Arrow's own conversion may miss the nearest double.
        column = pc.cast(pc.cast(column, pa.string()), pa.float64())
    elif not (
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_null(kind)
    ):
        raise NotNumbersError(str(kind))
    return np.array(pc.cast(column, pa.float64(), safe=False).to_numpy(), dtype=np.float64)


def _numbers_in_text(column: Any) -> np.ndarray:
    import pyarrow as pa
    import pyarrow.compute as pc

    with contextlib.suppress(pa.ArrowInvalid):
        return within_floats(column, pc.cast(column, pa.float64()))
    text = pc.ascii_trim_whitespace(column)
    text = pc.if_else(pc.is_in(text, value_set=pa.array(MISSING)), pa.scalar(None, pa.string()), text)
    try:
        return within_floats(text, pc.cast(text, pa.float64()))
    except pa.ArrowInvalid:
        cells = text.to_pylist()
    truths = [np.nan if cell is None else _TRUTHS.get(cell) for cell in cells]
    if None not in truths:
        return np.array(truths, dtype=np.float64)
    row = next(i for i, cell in enumerate(cells) if cell is not None and not is_number(cell))
    raise NotNumbersError(shown(column[row].as_py()), row)


def within_floats(text: Any, numbers: Any) -> np.ndarray:
    """Numbers of a column of text; infinite where a float is 0 and the number is not, so that it is refused, too."""
    values = np.array(numbers.to_numpy(), dtype=np.float64)
    zeros = np.flatnonzero(values == 0)
    column = text.take(zeros)
    too_small = [cell for cell in column.unique().to_pylist() if is_beyond(cell)]
    if too_small:
        values[zeros[[cell in too_small for cell in column.to_pylist()]]] = np.inf
    return values
