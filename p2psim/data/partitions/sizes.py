"""Partitions by numbers of records."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from p2psim.data.labels import Column
from p2psim.data.partitions.base import Partition, check_agents, cut, number_of, numbered
from p2psim.errors import MeaningError
from p2psim.options import Count, Few

Sizes = Annotated[list[Count], Field(min_length=1)]


class Contiguous(Partition):
    """The first rows are the first owner's, the next the second's."""

    kind: Literal["contiguous"] = "contiguous"
    sizes: Sizes = Field(description="records of each owner; rows that are left are nobody's")

    def split(
        self, labels: np.ndarray, agents: int | None, column: Column | None, random: np.random.Generator
    ) -> tuple[list[np.ndarray], tuple[str, ...]]:
        """Cut the rows as they stand."""
        sizes = _checked(self.sizes, labels.size, agents)
        return cut(np.arange(labels.size), sizes), numbered(len(sizes))


class OfSizes(Partition):
    """Rows drawn at random, without return."""

    kind: Literal["sizes"] = "sizes"
    sizes: Sizes = Field(description="records of each owner; rows that are left are nobody's")

    def split(
        self, labels: np.ndarray, agents: int | None, column: Column | None, random: np.random.Generator
    ) -> tuple[list[np.ndarray], tuple[str, ...]]:
        """Cut the rows in a random order."""
        sizes = _checked(self.sizes, labels.size, agents)
        return cut(random.permutation(labels.size), sizes), numbered(len(sizes))


class Equal(Partition):
    """Consecutive rows, the same number each."""

    kind: Literal["equal"] = "equal"
    agents: Few | None = Field(None, description="number of owners; left out, the topology's")
    records: Count | None = Field(
        None,
        description="records of each owner; left out, all rows are given out, sizes differ by one at most",
    )

    def split(
        self, labels: np.ndarray, agents: int | None, column: Column | None, random: np.random.Generator
    ) -> tuple[list[np.ndarray], tuple[str, ...]]:
        """Cut the rows as they stand."""
        number, rows = number_of(self.agents, agents), labels.size
        if self.records is None:
            sizes = np.full(number, rows // number)
            sizes[: rows % number] += 1
        else:
            sizes = np.full(number, self.records)
        key = "data.partition.agents" if self.records is None else "data.partition.records"
        if not sizes.all():
            raise MeaningError(key, f"{number} owners cannot all have one of {rows} rows")
        _check_total(sizes, rows, key)
        return cut(np.arange(rows), sizes), numbered(number)


def _checked(sizes: list[int], rows: int, agents: int | None) -> np.ndarray:
    check_agents(len(sizes), agents, "data.partition.sizes")
    _check_total(made := np.array(sizes), rows, "data.partition.sizes")
    return made


def _check_total(sizes: np.ndarray, rows: int, key: str) -> None:
    if sizes.sum() > rows:
        raise MeaningError(key, f"asks for {sizes.sum()} records, but {rows} rows are there to be held")
