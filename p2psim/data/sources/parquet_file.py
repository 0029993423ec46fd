"""A Parquet file of the user's."""

from typing import ClassVar, Literal

from pydantic import Field

from p2psim.data.records import Request, Table
from p2psim.data.sources.base import DataSource
from p2psim.data.sources.files import numeric_table
from p2psim.data.table_file import read_parquet
from p2psim.paths import DataPath


class ParquetFile(DataSource):
    """A Parquet file: one row a record, numbers without gaps."""

    about: ClassVar[str] = "your own Parquet file; y and x are columns"
    citation: ClassVar[str] = "yours"
    licence: ClassVar[str] = "yours"
    needs: ClassVar[str] = "path: the file"
    generated: ClassVar[bool] = False

    kind: Literal["parquet"] = "parquet"
    path: DataPath = Field(description="the file; a relative path starts from the scenario's folder")
    y: str = Field(description="column of labels")
    x: list[str] | None = Field(
        None,
        description="columns of features; left out, all others of numbers but the partition's, and what is no feature "
        "is named in a warning",
    )

    def load(self, request: Request) -> Table:
        """Read the file; see `numeric_table` for what is refused."""
        return numeric_table(read_parquet(self.path, "data.source.path"), self.y, self.x, request)
