"""What a partition is, and what partitions share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.core.options import Options
from p2psim.data.labels import Column


class Partition(Options):
    """Base of all partitions: who holds which rows.

    A partition of your own is a subclass with a ``kind``, keys of its own, and ``split``.

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
    ) -> tuple[list[np.ndarray], tuple[str, ...]]:
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
    number = given or agents
    if number is None:
        raise MeaningError("data.partition.agents", "say how many owners there are, here or in the topology")
    return number


def numbered(owners: int) -> tuple[str, ...]:
    """Names of owners that nothing names: 0 … N − 1."""
    return tuple(map(str, range(owners)))


def cut(order: np.ndarray, sizes: np.ndarray) -> list[np.ndarray]:
    """Give the first rows of an order to the first owner, the next to the second, in these numbers, shape (N,)."""
    return np.split(order[: sizes.sum()], np.cumsum(sizes)[:-1])


def check_division(
    owners: list[np.ndarray], labels: tuple[str, ...], rows: int, agents: int | None, kind: str
) -> None:
    """Raise unless a partition gives each owner rows of its own.

    Raises
    ------
    MeaningError
    """
    key = "data.partition"
    check_agents(len(owners), agents, key)
    if len(set(labels)) != len(labels) or len(labels) != len(owners):
        raise MeaningError(key, f"{kind} must give {len(owners)} owners different names, got {labels}")
    if not owners or any(not held.size for held in owners):
        raise MeaningError(key, f"{kind} leaves an owner without a record")
    held = np.concatenate(owners)
    if held.dtype.kind not in "iu" or held.min() < 0 or held.max() >= rows or np.bincount(held).max() > 1:
        raise MeaningError(key, f"{kind} must give each of {rows} rows, 0 … {rows - 1}, to one owner at most")
