"""From columns of a data frame to numbers, by rules that look at no value of another row's owner.

A category becomes its place in the sorted list of categories, which is taken to be public, as a data
dictionary is. Missing values become constants for the same reason: nothing is fitted here.
"""

import contextlib
import difflib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from p2psim.data.cells import within_floats
from p2psim.data.records import row_name
from p2psim.errors import MeaningError

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
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    shown = ", ".join(names[:12]) + (f", … ({len(names)} in all)" if len(names) > 12 else "")
    raise MeaningError(key, f"no column is called {name!r}{hint}; the columns are {shown or 'none'}")


def numeric(frame: Any, names: Iterable[str], key: str, where: Callable[[int], str] = row_name) -> np.ndarray:
    """Take columns that are numbers already.

    Parameters
    ----------
    frame : pandas.DataFrame
    names : iterable of str
        Columns of the frame.
    key : str
        The dotted scenario key, named in errors.
    where : callable
        Place of a row, which counts from 0, for errors.

    Returns
    -------
    ndarray of float64, shape (n, len(names))

    Raises
    ------
    MeaningError
        If a column is text, or has missing or infinite values.
    """
    from pandas.api.types import is_numeric_dtype

    names = list(names)
    values = np.empty((len(frame), len(names)))
    for j, name in enumerate(names):
        if not is_numeric_dtype(frame[name].dtype):
            raise MeaningError(key, f"column {name!r} must hold numbers, it holds {frame[name].dtype}")
        values[:, j] = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
    check_finite(values, names, key, where)
    return values


def check_finite(
    values: np.ndarray, names: Iterable[str], key: str, where: Callable[[int], str] = row_name
) -> None:
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


def encode(
    frame: Any, key: str, where: Callable[[int], str] = row_name
) -> tuple[np.ndarray, dict[str, object]]:
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
        values = (
            series.to_numpy(dtype=np.float64, na_value=np.nan)
            if is_numeric_dtype(series.dtype)
            else number_of_text(series)
        )
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
