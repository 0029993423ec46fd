"""Releases to account for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from p2psim.core.options import derived
from p2psim.privacy.accounting.noises import Noise

#: Smaller losses count as this one, so that their squares are numbers. Rounded up, an account stays true.
LEAST = 1e-100


@dataclass(frozen=True, eq=False)
class Charges:
    """Releases of N agents, agent by agent; equal to others with the same noises and arrays.

    Attributes
    ----------
    noises : tuple of Noise
    kind : ndarray of int, shape (releases,)
        Place of each release's noise in `noises`.
    loss : ndarray, shape (releases,)
        Sensitivity by scale of each; infinite where nothing is guaranteed.
    offsets : ndarray of int64, shape (N + 1,)
        Agent i's are those from offsets[i] to offsets[i + 1].
    count : ndarray, shape (releases,), optional
        How many equal releases each stands for; one when left out.

    Raises
    ------
    ValueError
        If a loss is negative or not a number, a count is below 1, or the shapes do not fit.
    """

    noises: tuple[Noise, ...]
    kind: np.ndarray
    loss: np.ndarray
    offsets: np.ndarray
    count: np.ndarray | None = None

    def __post_init__(self) -> None:
        if not (self.loss >= 0).all():
            raise ValueError(f"losses must not be negative, got {self.loss[~(self.loss >= 0)][0]}")
        sizes, counts = {self.kind.shape, self.loss.shape}, self.count
        if counts is not None:
            if not (counts >= 1).all():
                raise ValueError(f"a release is counted at least once, got {counts[~(counts >= 1)][0]}")
            sizes.add(counts.shape)
        if len(sizes) > 1 or self.offsets[0] != 0 or self.offsets[-1] != self.loss.size:
            raise ValueError("kinds, losses, counts and offsets do not fit")

    @classmethod
    def of(cls, noise: Noise, losses: ArrayLike, counts: ArrayLike | None = None) -> Charges:
        """Charges of one agent whose releases have the same noise, each made once or ``counts`` times."""
        loss = np.atleast_1d(np.asarray(losses, dtype=float))
        count = None if counts is None else np.atleast_1d(np.asarray(counts, dtype=float))
        return cls((noise,), np.zeros(loss.size, np.int8), loss, np.array([0, loss.size]), count)

    def costing(self, loss: np.ndarray) -> Charges:
        """The same releases with other losses, and all that is known of them whatever they cost."""
        if not (loss >= 0).all() or loss.shape != self.loss.shape:
            return replace(self, loss=loss)
        return derived(self, ("_are_spread", "made", "owners"), loss=loss)

    @property
    def agents(self) -> int:
        """Number N of agents."""
        return self.offsets.size - 1

    @property
    def are_single(self) -> bool:
        """Whether each agent has one at most, none of them smaller than `LEAST`: nothing can be put together."""
        return self._are_spread and bool(self.loss.min(initial=np.inf) >= LEAST)

    @cached_property
    def _are_spread(self) -> bool:
        return self.offsets.size > self.loss.size and bool((self.offsets[1:] - self.offsets[:-1]).max() <= 1)

    @property
    def counts(self) -> np.ndarray:
        """How many releases each stands for, shape (releases,)."""
        return np.ones(self.loss.size) if self.count is None else self.count

    @cached_property
    def content(self) -> tuple[object, ...]:
        """What tells these charges from others."""
        arrays = self.kind, self.loss, self.offsets, self.counts
        return self.noises, self.kind.dtype.char, *(array.tobytes() for array in arrays)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Charges) and self.content == other.content

    def __hash__(self) -> int:
        return hash(self.content)

    @cached_property
    def made(self) -> np.ndarray:
        """How many releases those of each agent stand for in all, shape (N,), as int64."""
        return np.bincount(self.owners, self.counts, minlength=self.agents).astype(np.int64)

    @property
    def used(self) -> tuple[Noise, ...]:
        """Noises that some release has."""
        return tuple(self.noises[k] for k in self._kinds())

    def _kinds(self) -> Sequence[int]:
        """Places of the noises that some release has; of one noise without a look at each release."""
        return range(min(1, self.kind.size)) if len(self.noises) == 1 else np.unique(self.kind).tolist()

    @cached_property
    def owners(self) -> np.ndarray:
        """Agent of each release, shape (releases,)."""
        return np.repeat(np.arange(self.agents), self.offsets[1:] - self.offsets[:-1])

    def each(self, measure: Callable[..., np.ndarray], *values: np.ndarray) -> np.ndarray:
        """A number of each release, by a function of its noise, its loss and further values of its own; (releases,)."""
        measured = np.empty(self.loss.size)
        if len(self.noises) == 1 and measured.size:
            measured[:] = measure(self.noises[0], self.loss, *values)
            return measured
        for k in self._kinds():
            mine = self.kind == k
            measured[mine] = measure(self.noises[k], self.loss[mine], *(value[mine] for value in values))
        return measured

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sum of each agent's values (…, releases) over all that they stand for, in extended precision: (…, N)."""
        total = np.zeros((*values.shape[:-1], self.agents))
        some = self.offsets[1:] > self.offsets[:-1]
        if values.size:
            wide = values.astype(np.longdouble)
            if self.count is not None:
                wide *= self.count
            with np.errstate(over="ignore"):
                total[..., some] = np.add.reduceat(wide, self.offsets[:-1][some], axis=-1)
        return total

    def pick(self, agents: np.ndarray) -> Charges:
        """Those of some agents, given by a mask or by rising numbers."""
        wanted = np.zeros(self.agents, bool)
        wanted[agents] = True
        return self._rows(wanted[self.owners], np.diff(self.offsets)[wanted])

    def prefixes(self, lengths: Sequence[int]) -> Charges:
        """Charges of an agent for each length, which made only so many of the releases of this only agent."""
        return self._rows(np.concatenate([np.arange(length) for length in lengths]), lengths)

    def _rows(self, rows: np.ndarray, sizes: ArrayLike) -> Charges:
        """Some releases, by a mask or by their places, of agents that made so many."""
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        return Charges(self.noises, self.kind[rows], self.loss[rows], offsets, self.counts[rows])

    def plus(self, more: Charges) -> Charges:
        """With further releases of the same agents, after those of each."""
        agents = np.concatenate([self.owners, more.owners])
        order = np.argsort(agents, kind="stable")
        kind = np.concatenate([self.kind, more.kind + len(self.noises)])
        loss, counts = np.concatenate([self.loss, more.loss]), np.concatenate([self.counts, more.counts])
        noises, offsets = (*self.noises, *more.noises), self.offsets + more.offsets
        return Charges(noises, kind[order], loss[order], offsets, counts[order])

    @cached_property
    def condensed(self) -> tuple[Charges, np.ndarray]:
        """Charges of the agents that differ, whatever their order, and the place among them of each of the N.

        Equal releases are one with a count; those without a loss are left out.
        """
        owner, kind, loss, count = self.owners, self.kind, np.maximum(self.loss, LEAST), self.counts
        if not self.loss.all():
            some = self.loss > 0
            owner, kind, loss, count = owner[some], kind[some], loss[some], count[some]
        # Where each agent has one at most, there is nothing to put together.
        if not (owner[1:] > owner[:-1]).all():
            same = owner[1:] == owner[:-1]
            later = (kind[1:] > kind[:-1]) | ((kind[1:] == kind[:-1]) & (loss[1:] >= loss[:-1]))
            # Equal releases mostly come one after the other: a sort takes much longer than this look.
            if (same & ~later).any():
                order = np.lexsort((loss, kind, owner))
                owner, kind, loss, count = owner[order], kind[order], loss[order], count[order]
            fresh = (owner[1:] != owner[:-1]) | (kind[1:] != kind[:-1]) | (loss[1:] != loss[:-1])
            first = np.flatnonzero(np.append(True, fresh))
            count = np.add.reduceat(count, first)
            owner, kind, loss = owner[first], kind[first], loss[first]
        offsets = np.searchsorted(owner, np.arange(self.agents + 1))
        known: dict[tuple[bytes, ...], int] = {}
        places, different = np.empty(self.agents, np.int64), list[int]()
        for agent, (first_row, end) in enumerate(pairwise(offsets.tolist())):
            rows = slice(first_row, end)
            key = kind[rows].tobytes(), loss[rows].tobytes(), count[rows].tobytes()
            places[agent] = place = known.setdefault(key, len(known))
            if place == len(different):
                different.append(agent)
        every = Charges(self.noises, kind, loss, offsets, count)
        few = every if len(different) == self.agents else every.pick(np.array(different, np.int64))
        return few, places
