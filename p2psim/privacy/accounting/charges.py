"""Charges: the releases that accountants add up, agent by agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from p2psim.privacy.accounting.noises import Noise

#: Smaller losses are taken for this one, so that their squares are numbers; rounded up, an account stays sound.
LEAST = 1e-100


@dataclass(frozen=True)
class Charges:
    """Releases of N agents, sorted by agent.

    Attributes
    ----------
    noises : tuple of Noise
        All that occur.
    kind : ndarray of int64, shape (releases,)
        Place of each release's noise in `noises`.
    loss : ndarray of float, shape (releases,)
        Sensitivity by scale of each release; 0 tells nothing, infinity guarantees nothing.
    offsets : ndarray of int64, shape (N + 1,)
        Agent i's releases are offsets[i]:offsets[i + 1].

    Raises
    ------
    ValueError
        If a loss is negative or not a number, or the shapes do not fit.
    """

    noises: tuple[Noise, ...]
    kind: np.ndarray
    loss: np.ndarray
    offsets: np.ndarray

    def __post_init__(self) -> None:
        if not (self.loss >= 0).all():
            raise ValueError(f"losses are not negative, got {self.loss[~(self.loss >= 0)][0]}")
        if self.kind.shape != self.loss.shape or self.offsets[0] != 0 or self.offsets[-1] != self.loss.size:
            raise ValueError(
                f"{self.loss.size} losses, {self.kind.size} kinds and offsets up to {self.offsets[-1]} do not fit"
            )

    @property
    def agents(self) -> int:
        """N."""
        return self.offsets.size - 1

    @cached_property
    def lists(self) -> Lists:
        """The different lists that agents have, without what tells nothing."""
        return _lists(self)


@dataclass(frozen=True)
class Lists:
    """Different multisets of releases: equal releases are one entry with a count, equal agents one list.

    Attributes
    ----------
    noises : tuple of Noise
    kind : ndarray of int64, shape (entries,)
    loss : ndarray of float, shape (entries,)
        Finite, and at least `LEAST`.
    count : ndarray of float, shape (entries,)
        Releases that an entry stands for.
    offsets : ndarray of int64, shape (lists + 1,)
    void : ndarray of bool, shape (lists,)
        Whether a release of the list, which is not among its entries, guarantees nothing.
    place : ndarray of int64, shape (N,)
        List of each agent.
    """

    noises: tuple[Noise, ...]
    kind: np.ndarray
    loss: np.ndarray
    count: np.ndarray
    offsets: np.ndarray
    void: np.ndarray
    place: np.ndarray

    @property
    def lists(self) -> Lists:
        """Itself, so that accountants take it as they take charges."""
        return self

    @property
    def agents(self) -> int:
        """N."""
        return self.place.size

    @property
    def size(self) -> int:
        """How many lists there are."""
        return self.offsets.size - 1

    @cached_property
    def owner(self) -> np.ndarray:
        """List of each entry, shape (entries,)."""
        return np.repeat(np.arange(self.size), np.diff(self.offsets))

    def total(self, values: np.ndarray) -> np.ndarray:
        """Sum of values (…, entries) over the releases of each list, shape (…, lists), in extended precision."""
        result = np.zeros((*values.shape[:-1], self.size))
        some = np.diff(self.offsets) > 0
        if some.any():
            weighted = values.astype(np.longdouble) * self.count
            with np.errstate(over="ignore"):
                result[..., some] = np.add.reduceat(weighted, self.offsets[:-1][some], axis=-1)
        return result

    def select(self, wanted: np.ndarray) -> Lists:
        """The lists of a mask, in order; places are their own numbers."""
        entries = np.repeat(wanted, np.diff(self.offsets))
        lengths = np.diff(self.offsets)[wanted]
        return Lists(
            self.noises,
            self.kind[entries],
            self.loss[entries],
            self.count[entries],
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            self.void[wanted],
            np.arange(lengths.size),
        )

    def masks(self) -> list[tuple[int, np.ndarray]]:
        """For each noise that occurs its number and the mask of its entries."""
        return [(int(number), self.kind == number) for number in np.unique(self.kind)]


def _lists(charges: Charges) -> Lists:
    agent = np.repeat(np.arange(charges.agents), np.diff(charges.offsets))
    void = np.zeros(charges.agents, bool)
    void[agent[np.isinf(charges.loss)]] = True
    told = (charges.loss > 0) & np.isfinite(charges.loss)
    order = np.lexsort((charges.loss[told], charges.kind[told], agent[told]))
    agent, kind, loss = (
        agent[told][order],
        charges.kind[told][order],
        np.maximum(charges.loss[told][order], LEAST),
    )
    changes = np.ones(agent.size, bool)
    changes[1:] = (np.diff(agent) != 0) | (np.diff(kind) != 0) | (np.diff(loss) != 0)
    first = np.flatnonzero(changes)
    count = np.diff(np.concatenate([first, [agent.size]]))
    agent, kind, loss = agent[first], kind[first], loss[first]
    offsets = np.searchsorted(agent, np.arange(charges.agents + 1))
    known: dict[tuple[bytes, bytes, bytes, bool], int] = {}
    place = np.empty(charges.agents, np.int64)
    kept = []
    for i in range(charges.agents):
        own = slice(offsets[i], offsets[i + 1])
        key = (kind[own].tobytes(), loss[own].tobytes(), count[own].tobytes(), bool(void[i]))
        place[i] = known.setdefault(key, len(known))
        if len(known) > len(kept):
            kept.append(i)
    wanted = np.zeros(charges.agents, bool)
    wanted[kept] = True
    every = Lists(charges.noises, kind, loss, count.astype(float), offsets, void, place)
    different = every.select(wanted)
    return replace(different, place=place)


def one_agent(noises: Noise | Sequence[Noise], losses: Sequence[float] | np.ndarray) -> Charges:
    """Charges of one agent.

    Parameters
    ----------
    noises : Noise or sequence of Noise
        That of every release, or that of each.
    losses : array of float, shape (releases,)
    """
    loss = np.asarray(losses, dtype=float).reshape(-1)
    ends = np.array([0, loss.size], np.int64)
    if not isinstance(noises, Sequence):
        return Charges((noises,), np.zeros(loss.size, np.int64), loss, ends)
    if len(noises) != loss.size:
        raise ValueError(f"{len(noises)} noises for {loss.size} losses")
    different = list(dict.fromkeys(noises))
    return Charges(tuple(different), np.array([different.index(one) for one in noises], np.int64), loss, ends)


def repeated(noise: Noise, loss: float, count: int, before: Charges | None = None) -> Lists:
    """List of one agent that makes so many equal releases, none of which is written out.

    Parameters
    ----------
    noise : Noise
    loss : float
        Positive and finite.
    count : int
        At least 1.
    before : Charges, optional
        Of one agent: what it released besides.
    """
    once = one_agent(noise, [loss])
    lists = (once if before is None else joined(before, once)).lists
    repeats = (lists.kind == lists.noises.index(noise)) & (lists.loss == max(loss, LEAST))
    return replace(lists, count=lists.count + np.where(repeats, count - 1.0, 0.0))


def of_agents(noise: Noise, losses: np.ndarray, offsets: np.ndarray) -> Charges:
    """Charges of several agents by one noise.

    Parameters
    ----------
    noise : Noise
    losses : ndarray, shape (releases,)
        Sorted by agent.
    offsets : ndarray of int64, shape (N + 1,)
    """
    loss = np.asarray(losses, dtype=float)
    return Charges((noise,), np.zeros(loss.size, np.int64), loss, np.asarray(offsets, np.int64))


def joined(*parts: Charges) -> Charges:
    """Charges of the same agents, one part after the other.

    Raises
    ------
    ValueError
        If the parts have different numbers of agents.
    """
    if len({part.agents for part in parts}) != 1:
        raise ValueError("charges of different numbers of agents cannot be joined")
    different = list(dict.fromkeys(noise for part in parts for noise in part.noises))
    agent = np.concatenate([np.repeat(np.arange(part.agents), np.diff(part.offsets)) for part in parts])
    order = np.argsort(agent, kind="stable")
    kind = np.concatenate(
        [np.array([different.index(one) for one in part.noises], np.int64)[part.kind] for part in parts]
    )
    loss = np.concatenate([part.loss for part in parts])
    offsets = np.searchsorted(agent[order], np.arange(parts[0].agents + 1))
    return Charges(tuple(different), kind[order], loss[order], offsets)
