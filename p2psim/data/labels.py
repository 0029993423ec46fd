"""Labels of owners, as they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.core.text_tables import is_number
from p2psim.data.columns import NotNumbersError
from p2psim.data.records import row_name

if TYPE_CHECKING:
    import pandas as pd

#: Relative error of numbers in single precision.
_SINGLE = 2.0**-23


def labels_in(column: Any) -> np.ndarray | pd.Categorical:
    """Take a column as labels, as they are written: ``007`` is not ``7``, and ``NA`` is one.

    Parameters
    ----------
    column : pyarrow.ChunkedArray

    Returns
    -------
    ndarray of float64 or pandas.Categorical, shape (n,)
        Floating-point numbers stay. Categories are ordered as numbers if all of them are numbers, otherwise as text;
        null and empty text are missing.

    Raises
    ------
    NotNumbersError
        If values are neither text nor numbers nor dates.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_floating(kind):
        return np.array(pc.cast(column, pa.float64()).to_numpy(), dtype=np.float64)
    try:
        text = pc.cast(column, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise NotNumbersError(str(kind)) from None
    if pa.types.is_boolean(kind):
        text = pc.utf8_capitalize(text)
    coded = pc.dictionary_encode(text).combine_chunks()
    names = coded.dictionary.to_pylist()
    codes = coded.indices.fill_null(-1).to_numpy()
    ordered = in_order(name for name in names if name)
    place = {name: i for i, name in enumerate(ordered)}
    renumbered = np.array([place.get(name, -1) for name in names] + [-1], dtype=np.int64)
    return pd.Categorical.from_codes(
        renumbered[codes], categories=pd.Index(ordered, dtype=object), ordered=True
    )


def in_order(labels: Iterable[str]) -> list[str]:
    """Different labels in order: as numbers if all of them are numbers, otherwise as text."""
    by_text = sorted(labels)
    if any(not is_number(label) for label in by_text):
        return by_text
    return sorted(by_text, key=lambda label: Decimal(label.strip()))


def first_row(marked: np.ndarray) -> str:
    """Place of the first row that a mask marks."""
    return row_name(int(np.argmax(marked)))


@dataclass(frozen=True)
class Column:
    """A column that says who holds each row; `owners_of` numbers them.

    Attributes
    ----------
    values : array_like, shape (n,)
        Numbers or text, or labels of `labels_in`.
    first : callable
        Place of the first row that a mask of these rows, shape (n,), marks, for errors.
    """

    values: Any
    first: Callable[[np.ndarray], str] = first_row


def owners_of(
    values: Any, key: str, first: Callable[[np.ndarray], str] = first_row
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Number the distinct values of a column, in order, and name them.

    Floating-point numbers are named by their value to six places, and those that differ by the rounding of single
    precision are one: codes that are stored so, as the hospitals of `azpro` are, have more digits than were written.

    Parameters
    ----------
    values : array_like, shape (n,)
        Numbers or text, or labels of `labels_in`.
    key : str
        The dotted scenario key, named in errors.
    first : callable
        Place of the first value that a mask marks, for errors.

    Returns
    -------
    owners : ndarray of int64, shape (n,)
    labels : tuple of str

    Raises
    ------
    MeaningError
        If a value is missing or infinite, or two that differ are written alike.
    """
    import pandas as pd

    series = pd.Series(values)

    def refuse(bad: np.ndarray, what: str) -> None:
        if bad.any():
            raise MeaningError(key, f"{int(bad.sum())} rows have {what}, the first is {first(bad)}")

    refuse(series.isna().to_numpy(), "no value")
    if pd.api.types.is_float_dtype(series.dtype):
        numbers = series.to_numpy(dtype=np.float64)
        refuse(np.isinf(numbers), "an infinite value")
        values, of_row = np.unique(numbers, return_inverse=True)
        near = [round(value, 6) for value in values.tolist()]
        for lower, upper in pairwise(values.tolist()):
            if round(lower, 6) == round(upper, 6) and upper - lower > _SINGLE * abs(upper):
                raise MeaningError(
                    key, f"{lower!r} and {upper!r} are the same to six places; give the codes as text"
                )
        distinct, of_value = np.unique(near, return_inverse=True)
        owners = of_value[of_row]
        labels = tuple(str(int(v)) if v == int(v) else str(v) for v in distinct.tolist())
    elif pd.api.types.is_numeric_dtype(series.dtype):
        distinct, owners = np.unique(series.to_numpy(), return_inverse=True)
        labels = tuple(map(str, distinct.tolist()))
    elif isinstance(series.dtype, pd.CategoricalDtype):
        present, owners = np.unique(series.cat.codes.to_numpy(), return_inverse=True)
        labels = tuple(series.cat.categories[present])
        if all(map(is_number, labels)):
            refuse(np.isinf(np.array(list(map(float, labels))))[owners], "an infinite value")
    else:
        owners, names = pd.factorize(series.astype(str).to_numpy(dtype=object), sort=True)
        labels = tuple(names)
        if series.nunique() > len(labels):
            raise MeaningError(
                key, "different values are written alike, such as the number 7 and the text '7'"
            )
    return owners.astype(np.int64), labels
