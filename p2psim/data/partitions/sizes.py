"""Partitions of one table among owners: by a column, by numbers of records, and for owners of unlike labels or sizes.

Benchmarks of federated learning make owners unlike by shards of sorted labels (McMahan, Moore, Ramage, Hampson, Agüera
y Arcas, "Communication-efficient learning of deep networks from decentralized data", AISTATS 2017, section 3) and by
Dirichlet shares of each label (Hsu, Qi, Brown, "Measuring the effects of non-identical data distribution for federated
visual classification", 2019, section 2).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from p2psim.core.distributions import Quantity, sample
from p2psim.core.errors import MeaningError
from p2psim.core.options import Count, Few, Positive
from p2psim.data.labels import Column, owners_of
from p2psim.data.partitions.base import Partition, check_agents, cut, number_of, numbered


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


#: Different labels that Dirichlet shares are drawn for, at most.
MOST_LABELS = 1_000
#: Draws of shares until every owner has enough.
_TRIES = 1_000


class _Uneven(Partition):
    """What these partitions share: how many owners there are, and that each has a row."""

    agents: Few | None = Field(None, description="number of owners; left out, the topology's")

    def split(
        self, labels: np.ndarray, agents: int | None, column: Column | None, random: np.random.Generator
    ) -> tuple[list[np.ndarray], tuple[str, ...]]:
        """Divide all rows; those of an owner rise."""
        number = number_of(self.agents, agents)
        if labels.size < number:
            raise MeaningError(
                "data.partition.agents", f"{number} owners cannot all have one of {labels.size} rows"
            )
        found = self._divide(labels, number, random)
        return [np.sort(rows).astype(np.int64) for rows in found], numbered(number)

    @abstractmethod
    def _divide(self, labels: np.ndarray, agents: int, random: np.random.Generator) -> list[np.ndarray]:
        """Rows of each owner, in any order."""


class Shards(_Uneven):
    """Rows sorted by label, cut into shards of the same size, of which each owner gets some at random."""

    kind: Literal["shards"] = "shards"
    shards: Count = Field(2, description="shards of each owner: the fewer, the fewer labels it sees")

    def _divide(self, labels: np.ndarray, agents: int, random: np.random.Generator) -> list[np.ndarray]:
        each = self.shards
        if each * agents > labels.size:
            raise MeaningError(
                "data.partition.shards",
                f"{each} shards for each of {agents} owners are more than {labels.size} rows",
            )
        pieces = np.array_split(np.argsort(labels, kind="stable"), each * agents)
        given = random.permutation(each * agents).reshape(agents, each)
        return [np.concatenate([pieces[shard] for shard in own]) for own in given]


class Dirichlet(_Uneven):
    """The rows of each label are shared out in proportions drawn from a symmetric Dirichlet law."""

    kind: Literal["dirichlet"] = "dirichlet"
    concentration: Positive = Field(
        description="α: small, and a label is held by few; large, and by all alike"
    )
    least: Count = Field(1, description="records of each owner at least; shares are drawn anew until then")

    def _divide(self, labels: np.ndarray, agents: int, random: np.random.Generator) -> list[np.ndarray]:
        if self.least * agents > labels.size:
            raise MeaningError(
                "data.partition.least",
                f"{self.least} records for each of {agents} owners are more than {labels.size} rows",
            )
        values, of_row = np.unique(labels, return_inverse=True)
        if values.size > MOST_LABELS:
            raise MeaningError(
                "data.partition",
                f"dirichlet is for labels that are classes, up to {MOST_LABELS:,} of them; these are {values.size:,} "
                "different numbers: take shards, or unbalanced",
            )
        for _ in range(_TRIES):
            owner = np.empty(labels.size, np.int64)
            for value in range(values.size):
                rows = random.permutation(np.flatnonzero(of_row == value))
                shares = random.dirichlet(np.full(agents, self.concentration))
                cuts = np.rint(np.cumsum(shares)[:-1] * rows.size).astype(np.int64)
                for i, part in enumerate(np.split(rows, cuts)):
                    owner[part] = i
            counts = np.bincount(owner, minlength=agents)
            if counts.min() >= self.least:
                return np.split(np.argsort(owner, kind="stable"), np.cumsum(counts)[:-1])
        raise MeaningError(
            "data.partition.concentration",
            f"{_TRIES} draws left an owner with fewer than {self.least} records each time: give a larger one, or "
            "fewer owners",
        )


class Unbalanced(_Uneven):
    """Rows given out at random, in numbers proportional to draws of a random quantity; everyone gets one at least."""

    kind: Literal["unbalanced"] = "unbalanced"
    sizes: Quantity = Field(
        description="what records are proportional to, such as {lognormal: {median: 1, sigma: 1}}"
    )

    def _divide(self, labels: np.ndarray, agents: int, random: np.random.Generator) -> list[np.ndarray]:
        weights = np.atleast_1d(sample(self.sizes, random, agents))
        order = random.permutation(labels.size)
        return np.split(order, np.cumsum(proportional(labels.size, weights))[:-1])


def proportional(total: int, weights: np.ndarray) -> np.ndarray:
    """Whole numbers of at least one that add up to a total, near to proportional to weights, shape (n,).

    One each, and the rest by largest remainders of what is proportional above that.

    Parameters
    ----------
    total : int
        At least n.
    weights : ndarray, shape (n,)
        Not negative; all alike where they add up to nothing.
    """
    n = weights.size
    if not weights.sum() > 0:
        weights = np.ones(n)
    ideal = total * (weights / weights.sum())
    above = np.maximum(ideal - 1, 0.0)
    spare = total - n
    if spare and above.sum() > 0:
        above *= spare / above.sum()
    sizes = np.floor(above).astype(np.int64)
    order = np.argsort(-(above - sizes), kind="stable")
    sizes[order[: spare - sizes.sum()]] += 1
    return sizes + 1
