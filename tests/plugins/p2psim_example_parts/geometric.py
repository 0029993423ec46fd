"""A partition: few owners with many records, many with few."""

from typing import Literal

import numpy as np
from pydantic import Field

import p2psim
from p2psim.core.errors import MeaningError
from p2psim.data.classes import Column
from p2psim.data.partitions import cut, number_of, numbered, proportional


@p2psim.register
class Geometric(p2psim.Partition):
    """All rows, in random order; each owner has a given share of what the owner before it has, and one at least."""

    kind: Literal["geometric"] = "geometric"
    agents: int | None = Field(None, ge=1, description="number of owners; left out, the topology's")
    ratio: float = Field(0.5, gt=0, le=1, description="records of an owner over those of the owner before it")

    def split(
        self, labels: np.ndarray, agents: int | None, column: Column | None, random: np.random.Generator
    ) -> tuple[list[np.ndarray], tuple[str, ...]]:
        """Cut the rows in a random order."""
        number, rows = number_of(self.agents, agents), labels.size
        if number > rows:
            raise MeaningError("data.partition.agents", f"{number} owners cannot all have one of {rows} rows")
        sizes = proportional(rows, self.ratio ** np.arange(number))
        return cut(random.permutation(rows), sizes), numbered(number)
