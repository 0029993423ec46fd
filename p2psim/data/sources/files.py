"""Files that the user has: what they are, and what is wrong with them."""

from pathlib import Path
from typing import Any

from p2psim.data.columns import numeric, require
from p2psim.data.records import Request, Table
from p2psim.errors import MeaningError, first_line
from p2psim.paths import DataPath, checked, sha256_of

__all__ = ["DataPath", "checked", "fingerprint", "numeric_table", "read_csv", "read_parquet"]


def fingerprint(path: str) -> dict[str, object]:
    """SHA-256 of a file's contents, so that a run tells which data it was."""
    return {"sha256": sha256_of(Path(path).expanduser())}


def read_csv(path: str, key: str, **options: Any) -> Any:
    """Read a CSV file (compressed as its name says) to a pandas.DataFrame.

    Parameters
    ----------
    path : str
    key : str
        The dotted scenario key, named in errors.
    **options
        Of ``pandas.read_csv``.

    Raises
    ------
    MissingSourceError
        If there is no such file.
    MeaningError
        If it cannot be read as CSV.
    """
    import pandas as pd

    place = checked(path, key)
    try:
        return pd.read_csv(place, low_memory=False, **options)
    except (ValueError, OSError, EOFError) as error:  # pandas' parser errors are ValueErrors
        raise MeaningError(key, f"{path} cannot be read as CSV: {first_line(error)}") from None


def read_parquet(path: str, key: str) -> Any:
    """Read a Parquet file to a pandas.DataFrame; see `read_csv`."""
    import pandas as pd

    place = checked(path, key)
    try:
        return pd.read_parquet(place)
    except (ValueError, OSError) as error:  # pyarrow's errors are ValueErrors and OSErrors
        raise MeaningError(key, f"{path} cannot be read as Parquet: {first_line(error)}") from None


def numeric_table(frame: Any, path: str, y: str, x: list[str] | None, request: Request) -> Table:
    """Make a table of a file's columns.

    Parameters
    ----------
    frame : pandas.DataFrame
    path : str
        Where it came from.
    y : str
        Name of the column of labels.
    x : list of str or None
        Features; None: every other column that holds numbers, except the one that the partition goes by.
    request : Request

    Raises
    ------
    MeaningError
        If a column is not there, is text, or has missing or infinite values; if there are no
        features or no rows.
    """
    from pandas.api.types import is_numeric_dtype

    if not len(frame):
        raise MeaningError("data.source.path", f"{path} has no rows")
    frame = frame.rename(columns=str)
    require(frame.columns, y, "data.source.y")
    if x is None:
        x = [
            name
            for name in frame.columns
            if name not in (y, request.held_by) and is_numeric_dtype(frame[name].dtype)
        ]
    if not x:
        raise MeaningError("data.source.x", "there must be at least one column of numbers beside y")
    for name in x:
        require(frame.columns, name, "data.source.x")
    if y in x:
        raise MeaningError("data.source.x", f"y ({y!r}) cannot be a feature as well")
    return Table(
        X=numeric(frame, x, "data.source.x"),
        y=numeric(frame, [y], "data.source.y")[:, 0],
        names=tuple(x),
        columns=frame,
        notes={"columns": list(x), **fingerprint(path)},
    )
