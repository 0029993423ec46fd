"""A partition by what the data says."""

from typing import Literal

import numpy as np
from pydantic import Field

from p2psim.data.labels import Column, owners_of
from p2psim.data.partitions.base import Partition, check_agents, cut


class ByColumn(Partition):
    """An owner for every value of a column."""

    kind: Literal["column"] = "column"
    column: str = Field(
        description="name of the column; its values are the labels of the owners, as written; floating-point numbers "
        "are named by their value to six places"
    )

    @property
    def divides_by(self) -> str:
        """Name of the column."""
        return self.column

    def split(
        self, labels: np.ndarray, agents: int | None, column: Column | None, random: np.random.Generator
    ) -> tuple[list[np.ndarray], tuple[str, ...]]:
        """Give each row to the owner that its column names."""
        assert column is not None
        of_row, names = owners_of(column.values, "data.partition.column", column.first)
        check_agents(len(names), agents, "data.partition.column")
        order = np.argsort(of_row, kind="stable")
        return cut(order, np.bincount(of_row, minlength=len(names))), names
