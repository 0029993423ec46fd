"""From a column of a file to numbers."""

import contextlib
from typing import Any

import numpy as np

from p2psim.decimals import is_beyond
from p2psim.text_tables import is_number, shown

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
    made = pc.cast(column, pa.float64(), safe=False).to_numpy()
    return np.array(made, dtype=np.float64)


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
