"""Who holds which rows, and which group an owner is in."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from p2psim.data.columns import require
from p2psim.data.labels import first_row, owners_of
from p2psim.data.uneven import Dirichlet, Shards, Unbalanced, divide
from p2psim.errors import MeaningError
from p2psim.options import BY_NAME, Count, Few, Options

Sizes = Annotated[list[Count], Field(min_length=1)]


class Contiguous(Options):
    """The first rows are the first owner's, the next the second's."""

    kind: Literal["contiguous"] = "contiguous"
    sizes: Sizes = Field(description="records of each owner; rows that are left are nobody's")


class OfSizes(Options):
    """Rows drawn at random, without return."""

    kind: Literal["sizes"] = "sizes"
    sizes: Sizes = Field(description="records of each owner; rows that are left are nobody's")


class Equal(Options):
    """Consecutive rows, the same number each."""

    kind: Literal["equal"] = "equal"
    agents: Few | None = Field(None, description="number of owners; left out, the topology's")
    records: Count | None = Field(
        None,
        description="records of each owner; left out, all rows are given out, sizes differ by one at most",
    )


class ByColumn(Options):
    """An owner for every value of a column."""

    kind: Literal["column"] = "column"
    column: str = Field(
        description="name of the column; its values are the labels of the owners, as written; floating-point numbers "
        "are rounded to six places"
    )


AnyPartition = Contiguous | OfSizes | Equal | ByColumn | Shards | Dirichlet | Unbalanced
Partition = Annotated[AnyPartition, Field(discriminator="kind"), BY_NAME]


class Groups(Options):
    """Owners grouped by their number of records."""

    by: Literal["records"] = Field("records", description="what decides")
    cut: Annotated[list[Count], Field(min_length=1)] = Field(
        description="ascending; who has exactly so many is above"
    )
    names: list[str] = Field(description="one name more than there are cuts, from the smallest owners on")
    merge: bool = Field(
        False, description="the owners of a group act as one larger owner, called as the group (F, Remark 2)"
    )

    @model_validator(mode="after")
    def _fits(self) -> "Groups":
        if sorted(set(self.cut)) != self.cut:
            raise ValueError(f"cut: must ascend, got {self.cut}")
        if len(self.names) != len(self.cut) + 1 or len(set(self.names)) != len(self.names):
            raise ValueError(f"names: {len(self.cut) + 1} different names are needed, got {self.names}")
        return self


def group_of(groups: Groups, records: np.ndarray) -> tuple[str, ...]:
    """Group of each owner.

    Parameters
    ----------
    groups : Groups
    records : ndarray of int, shape (N,)
        Number of records of each owner.
    """
    return tuple(groups.names[place] for place in np.searchsorted(groups.cut, records, side="right"))


def check_agents(given: int, agents: int | None, key: str) -> None:
    """Raise if the data gives another number of owners than the network has.

    Raises
    ------
    MeaningError
    """
    if agents is not None and given != agents:
        raise MeaningError(key, f"gives {given} owners, but network.topology asks for {agents}")


def split(
    partition: AnyPartition,
    labels: np.ndarray,
    agents: int | None,
    column: Any,
    random: np.random.Generator,
    first: Callable[[np.ndarray], str] = first_row,
) -> tuple[list[np.ndarray], tuple[str, ...]]:
    """Divide rows among owners.

    Parameters
    ----------
    partition : Partition
    labels : ndarray, shape (rows,)
        y of the rows that can be held.
    agents : int or None
        Number of owners that the network asks for.
    column : array_like, shape (rows,), or None
        Values of the column, for `ByColumn`.
    random : numpy.random.Generator
    first : callable
        Place of the first row that a mask of these rows marks, for errors.

    Returns
    -------
    owners : list of ndarray of int64
        The rows of each owner; no row is in two of them.
    labels : tuple of str

    Raises
    ------
    MeaningError
        If there are too few rows, an owner would have none, or the number of owners is not the network's.
    """
    rows = labels.size
    if isinstance(partition, ByColumn):
        of_row, names = owners_of(column, "data.partition.column", first)
        check_agents(len(names), agents, "data.partition.column")
        order = np.argsort(of_row, kind="stable")
        return _cut(order, np.bincount(of_row, minlength=len(names))), names
    if isinstance(partition, Shards | Dirichlet | Unbalanced):
        number = _number(partition.agents, agents)
        return divide(partition, labels, number, random), _numbered(number)
    if isinstance(partition, Equal):
        number = _number(partition.agents, agents)
        if partition.records is None:
            sizes = np.full(number, rows // number)
            sizes[: rows % number] += 1
        else:
            sizes = np.full(number, partition.records)
        key = "data.partition.agents" if partition.records is None else "data.partition.records"
        if not sizes.all():
            raise MeaningError(key, f"{number} owners cannot all have one of {rows} rows")
    else:
        key = "data.partition.sizes"
        sizes = np.array(partition.sizes)
        check_agents(len(sizes), agents, key)
    if sizes.sum() > rows:
        raise MeaningError(key, f"asks for {sizes.sum()} records, but {rows} rows are there to be held")
    order = random.permutation(rows) if isinstance(partition, OfSizes) else np.arange(rows)
    return _cut(order, sizes), _numbered(len(sizes))


def _number(given: int | None, agents: int | None) -> int:
    """Number of owners, said by the partition or by the network."""
    if given is not None:
        check_agents(given, agents, "data.partition.agents")
    number = given or agents
    if number is None:
        raise MeaningError("data.partition.agents", "say how many owners there are, here or in the topology")
    return number


def _numbered(owners: int) -> tuple[str, ...]:
    return tuple(map(str, range(owners)))


def _cut(order: np.ndarray, sizes: np.ndarray) -> list[np.ndarray]:
    return np.split(order[: sizes.sum()], np.cumsum(sizes)[:-1])


def column_for(partition: AnyPartition, columns: Any) -> Any:
    """Values that `split` needs, or None.

    Raises
    ------
    MeaningError
        If there is no such column.
    """
    if not isinstance(partition, ByColumn):
        return None
    require(columns, partition.column, "data.partition.column")
    import pandas as pd

    column = columns[partition.column]
    return column if isinstance(column, pd.Categorical) else np.asarray(column)
