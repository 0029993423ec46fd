"""Partitions: who holds which rows. A new one is one class here or in a file of its own, registered below.

Rows are divided by a column, by numbers of records, or among owners of unlike labels or sizes. Benchmarks of federated
learning make owners unlike by shards of sorted labels (McMahan, Moore, Ramage, Hampson, Agüera y Arcas,
"Communication-efficient learning of deep networks from decentralized data", AISTATS 2017, section 3) and by Dirichlet
shares, of which two are in use: of each label among owners (Yurochkin, Agarwal, Ghosh, Greenewald, Hoang, Khazaeni,
"Bayesian nonparametric federated learning of neural networks", ICML 2019, section 4), and of each owner among labels
(Hsu, Qi, Brown, "Measuring the effects of non-identical data distribution for federated visual classification", 2019).
"""

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.distributions import Quantity, sample
from p2psim.core.errors import MeaningError
from p2psim.core.options import BY_NAME, Count, Few, Positive
from p2psim.core.part_types import AnyOf
from p2psim.core.registry import register_all
from p2psim.data.classes import Column, owners_of
from p2psim.data.records import GivesOwners

#: The rows of each owner.
Owners = list[np.ndarray]


class Partition(GivesOwners):
    """Base of all partitions: who holds which rows.

    A partition of your own is a subclass with a ``kind``, its own keys, and ``split``.

    Attributes
    ----------
    kind : str
        The name, as ``kind: Literal["geometric"] = "geometric"``.
    agents : int or None
        How many owners there are, where the partition has such a key; None leaves it to the topology.
    """

    part_kind: ClassVar[str] = "partition"

    # Subclasses declare it with a Literal.
    kind: Any

    @abstractmethod
    def split(
        self, labels: np.ndarray, agents: int | None, column: Column | None, random: np.random.Generator
    ) -> tuple[Owners, tuple[str, ...]]:
        """Divide rows among owners.

        Parameters
        ----------
        labels : ndarray of float64, shape (rows,)
            y of the rows that can be held.
        agents : int or None
            Number of owners that the network asks for; `number_of` gives the one that all agree on.
        column : Column or None
            The column that `divides_by` names.
        random : numpy.random.Generator
            The only source of random numbers.

        Returns
        -------
        owners : list of ndarray of int64
            The rows of each owner, at least one; no row is in two of them.
        labels : tuple of str
            Names of the owners; ``numbered`` where nothing names them.

        Raises
        ------
        MeaningError
            If there are too few rows, an owner would have none, or the number of owners is not the network's.
        """

    @property
    def divides_by(self) -> str | None:
        """Name of the column that names each row's owner, which is never a feature; None where none does."""
        return None


def check_agents(given: int, agents: int | None, key: str) -> None:
    """Raise if the data gives another number of owners than the network has.

    Raises
    ------
    MeaningError
    """
    if agents is not None and given != agents:
        raise MeaningError(key, f"gives {given} owners, but network.topology asks for {agents}")


def number_of(given: int | None, agents: int | None) -> int:
    """Number of owners, said by the partition or by the network.

    Raises
    ------
    MeaningError
        If both say it and differ, or none does.
    """
    if given is not None:
        check_agents(given, agents, "data.partition.agents")
    if (number := given or agents) is None:
        what = "is missing: give a number here, or in network.topology.agents"
        raise MeaningError("data.partition.agents", what)
    return number


def numbered(owners: int) -> tuple[str, ...]:
    """Names of owners that nothing names: 0 … N − 1."""
    return tuple(map(str, range(owners)))


def cut(order: np.ndarray, sizes: np.ndarray) -> Owners:
    """Give the first rows of an order to the first owner, the next to the second, in these numbers, shape (N,)."""
    return np.split(order[: sizes.sum()], np.cumsum(sizes)[:-1])


def check_division(owners: Owners, labels: tuple[str, ...], rows: int, agents: int | None, kind: str) -> None:
    """Raise unless a partition gives each owner rows of its own.

    Raises
    ------
    MeaningError
    """
    check_agents(len(owners), agents, key := "data.partition")
    if len(set(labels)) != len(labels) or len(labels) != len(owners):
        raise MeaningError(key, f"{kind} must give {len(owners)} owners different names, got {labels}")
    if not owners or any(not held.size for held in owners):
        raise MeaningError(key, f"{kind} leaves an owner without a record")
    held = np.concatenate(owners)
    if held.dtype.kind not in "iu" or held.min() < 0 or held.max() >= rows or np.bincount(held).max() > 1:
        raise MeaningError(key, f"{kind} must give each of {rows} rows, 0 … {rows - 1}, to one owner at most")


class ByColumn(Partition):
    """One owner per value of a column."""

    kind: Literal["column"] = "column"
    column: str = Field(
        description="name of the column; its values are the labels of the owners, as written; floating-point numbers "
        "are named by their value to six places"
    )
    minimum: Count = Field(1, description="owners with fewer records take no part; nobody holds their rows")

    @property
    def divides_by(self) -> str:
        """Name of the column."""
        return self.column

    def split(
        self, labels: np.ndarray, agents: int | None, column: Column | None, random: np.random.Generator
    ) -> tuple[Owners, tuple[str, ...]]:
        """Give each row to the owner that its column names, if that owner has enough of them."""
        assert column is not None
        of_row, names = owners_of(column.values, "data.partition.column", column.first)
        sizes = np.bincount(of_row, minlength=len(names))
        owners = cut(np.argsort(of_row, kind="stable"), sizes)
        if not (kept := np.flatnonzero(sizes >= self.minimum)).size:
            raise MeaningError("data.partition.minimum", f"leaves no owner: the largest has {sizes.max()}")
        check_agents(kept.size, agents, "data.partition.column")
        return [owners[i] for i in kept], tuple(names[i] for i in kept)


class _Numbered(Partition):
    """Base of partitions whose owners nothing names."""

    def split(
        self, labels: np.ndarray, agents: int | None, column: Column | None, random: np.random.Generator
    ) -> tuple[Owners, tuple[str, ...]]:
        """Divide the rows by their number and labels."""
        owners = self._divide(labels, agents, random)
        return owners, numbered(len(owners))

    @abstractmethod
    def _divide(self, labels: np.ndarray, agents: int | None, random: np.random.Generator) -> Owners:
        """Rows of each owner."""


class _OfSizes(_Numbered):
    """Base of partitions by numbers of records, of rows in their order or at random."""

    at_random: ClassVar[bool] = False

    sizes: Annotated[list[Count], Field(min_length=1)] = Field(
        description="records of each owner; nobody holds the rows that are left"
    )

    @property
    def given_owners(self) -> tuple[str, int]:
        """One for each size."""
        return "sizes", len(self.sizes)

    def _divide(self, labels: np.ndarray, agents: int | None, random: np.random.Generator) -> Owners:
        check_agents(len(self.sizes), agents, "data.partition.sizes")
        _check_total(sizes := np.array(self.sizes), labels.size, "data.partition.sizes")
        return cut(random.permutation(labels.size) if self.at_random else np.arange(labels.size), sizes)


class Contiguous(_OfSizes):
    """The first rows are the first owner's, the next the second's."""

    kind: Literal["contiguous"] = "contiguous"


class OfSizes(_OfSizes):
    """Rows drawn at random, without return."""

    at_random: ClassVar[bool] = True
    kind: Literal["sizes"] = "sizes"


class Equal(_Numbered):
    """Consecutive rows, the same number each."""

    kind: Literal["equal"] = "equal"
    agents: Few | None = Field(None, description="number of owners; left out, the topology's")
    records: Count | None = Field(
        None,
        description="records of each owner; left out, all rows are given out, sizes differ by one at most",
    )

    def _divide(self, labels: np.ndarray, agents: int | None, random: np.random.Generator) -> Owners:
        number, rows = number_of(self.agents, agents), labels.size
        if self.records is None:
            key, sizes = "data.partition.agents", np.full(number, rows // number)
            sizes[: rows % number] += 1
        else:
            key, sizes = "data.partition.records", np.full(number, self.records)
        if not sizes.all():
            raise MeaningError(key, f"{number} owners cannot all have one of {rows} rows")
        _check_total(sizes, rows, key)
        return cut(np.arange(rows), sizes)


def _check_total(sizes: np.ndarray, rows: int, key: str) -> None:
    if sizes.sum() > rows:
        raise MeaningError(key, f"asks for {sizes.sum()} records, but only {rows} rows are left for owners")


#: Different labels that Dirichlet shares are drawn for, at most.
MOST_LABELS = 1_000
#: Draws of shares until every owner has enough.
_TRIES = 1_000


class _Uneven(_Numbered):
    """What these partitions share: how many owners there are, and that each has a row."""

    agents: Few | None = Field(None, description="number of owners; left out, the topology's")

    def _divide(self, labels: np.ndarray, agents: int | None, random: np.random.Generator) -> Owners:
        number = number_of(self.agents, agents)
        if labels.size < number:
            message = f"{number} owners cannot all have one of {labels.size} rows"
            raise MeaningError("data.partition.agents", message)
        return [np.sort(rows).astype(np.int64) for rows in self._share(labels, number, random)]

    @abstractmethod
    def _share(self, labels: np.ndarray, agents: int, random: np.random.Generator) -> Owners:
        """Divide all rows; those of an owner in any order."""


class Shards(_Uneven):
    """Rows sorted by label, cut into shards of the same size, of which each owner gets some at random."""

    kind: Literal["shards"] = "shards"
    shards: Count = Field(2, description="shards of each owner: the fewer, the fewer labels it sees")

    def _share(self, labels: np.ndarray, agents: int, random: np.random.Generator) -> Owners:
        each = self.shards
        _check_each(each, "shards", "shards", agents, labels.size)
        pieces = np.array_split(np.argsort(labels, kind="stable"), each * agents)
        given = random.permutation(each * agents).reshape(agents, each)
        return [np.concatenate([pieces[shard] for shard in shards]) for shards in given]


class Dirichlet(_Uneven):
    """Rows are shared out in proportions drawn from Dirichlet distributions, so that owners hold unlike labels.

    Choices
    -------
    per: label
        the rows of each label are shared out in proportions from Dir(α, …, α) over owners, who so hold unlike numbers
        of records (Yurochkin et al. 2019)
    per: owner
        each owner draws proportions of labels from Dir(α·p), p their shares among all rows, and then that many rows of
        each; all owners hold the same number of records, up to one (Hsu, Qi, Brown 2019)
    """

    kind: Literal["dirichlet"] = "dirichlet"
    concentration: Positive = Field(
        description="α: small, and a label is held by few; large, and by all alike"
    )
    per: Literal["label", "owner"] = Field("label", description="what proportions are drawn for")
    least: Count = Field(1, description="records of each owner at least; shares are drawn anew until then")

    def _share(self, labels: np.ndarray, agents: int, random: np.random.Generator) -> Owners:
        _check_each(self.least, "least", "records", agents, labels.size)
        values, of_row = np.unique(labels, return_inverse=True)
        if values.size > MOST_LABELS:
            raise MeaningError(
                "data.partition",
                f"dirichlet is for labels that are classes, up to {MOST_LABELS:,} of them; these are {values.size:,} "
                "different numbers: take shards, or unbalanced",
            )
        if self.per == "owner":
            return self._by_owner(of_row, agents, random)
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

    def _by_owner(self, of_row: np.ndarray, agents: int, random: np.random.Generator) -> Owners:
        """Each owner draws row by row: a label in its proportions among those that are left, then a row of it.

        That is done for many rows at once: draws of labels that are used up are drawn again.
        """
        left = np.bincount(of_row)
        order = random.permutation(of_row.size)
        rows_of = [order[of_row[order] == value] for value in range(left.size)]
        prior = left / of_row.size
        owners = []
        for size in np.diff(np.linspace(0, of_row.size, agents + 1).round().astype(np.int64)):
            proportions, taken = random.dirichlet(self.concentration * prior), np.zeros_like(left)
            while (missing := size - taken.sum()) > 0:
                chances = np.where(left > taken, proportions, 0.0)
                # Whatever is left, all of whose proportions are 0 in double precision.
                if not chances.sum() > 0:
                    chances = (left - taken).astype(float)
                drawn = random.multinomial(missing, chances / chances.sum())
                taken += np.minimum(drawn, left - taken)
            # Of each label the last ones that are left.
            owners.append(np.concatenate([rows_of[k][n - taken[k] : n] for k, n in enumerate(left)]))
            left = left - taken
        return owners


class Unbalanced(_Uneven):
    """Rows given out at random, in numbers proportional to draws of a random quantity; everyone gets one at least."""

    kind: Literal["unbalanced"] = "unbalanced"
    sizes: Quantity = Field(
        description="what records are proportional to, such as {lognormal: {median: 1, sigma: 1}}"
    )

    def _share(self, labels: np.ndarray, agents: int, random: np.random.Generator) -> Owners:
        weights = np.atleast_1d(sample(self.sizes, random, agents))
        order = random.permutation(labels.size)
        return np.split(order, np.cumsum(proportional(labels.size, weights))[:-1])


def _check_each(each: int, key: str, noun: str, agents: int, rows: int) -> None:
    if each * agents > rows:
        message = f"{each} {noun} for each of {agents} owners are more than {rows} rows"
        raise MeaningError(f"data.partition.{key}", message)


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
    above = np.maximum(total * (weights / weights.sum()) - 1, 0.0)
    spare = total - n
    if spare and above.sum() > 0:
        above *= spare / above.sum()
    sizes = np.floor(above).astype(np.int64)
    order = np.argsort(-(above - sizes), kind="stable")
    sizes[order[: spare - sizes.sum()]] += 1
    return sizes + 1


register_all([Contiguous, OfSizes, Equal, ByColumn, Shards, Dirichlet, Unbalanced])

#: Any partition that is registered.
AnyPartition = Annotated[Partition, AnyOf("partition"), BY_NAME]
