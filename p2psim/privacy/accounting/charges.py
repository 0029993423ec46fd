"""Releases to account for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from p2psim.privacy.accounting.noises import Noise


@dataclass(frozen=True)
class Charges:
    """Releases of N agents, agent by agent.

    Attributes
    ----------
    noises : tuple of Noise
    kind : ndarray of int8, shape (releases,)
        Place of each release's noise in `noises`.
    loss : ndarray, shape (releases,)
        Sensitivity by scale of each; infinite where nothing is guaranteed.
    offsets : ndarray of int64, shape (N + 1,)
        Agent i's are those from offsets[i] to offsets[i + 1].

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
            raise ValueError(f"losses must not be negative, got {self.loss[~(self.loss >= 0)][0]}")
        if self.kind.shape != self.loss.shape or self.offsets[0] != 0 or self.offsets[-1] != self.loss.size:
            raise ValueError("kinds, losses and offsets do not fit")

    @classmethod
    def of(cls, noise: Noise, losses: Sequence[float] | np.ndarray) -> Charges:
        """Charges of one agent whose releases have the same noise."""
        loss = np.atleast_1d(np.asarray(losses, dtype=float))
        return cls((noise,), np.zeros(loss.size, np.int8), loss, np.array([0, loss.size]))

    @property
    def agents(self) -> int:
        """N."""
        return self.offsets.size - 1

    @property
    def used(self) -> tuple[Noise, ...]:
        """Noises that some release has."""
        return tuple(self.noises[k] for k in np.unique(self.kind))

    def each(self, measure: Callable[[Noise, np.ndarray], np.ndarray]) -> np.ndarray:
        """A number of each release, by a function of its noise and losses; shape (releases,)."""
        found = np.empty(self.loss.size)
        for k in np.unique(self.kind):
            mine = self.kind == k
            found[mine] = measure(self.noises[k], self.loss[mine])
        return found

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sum of each agent's values (…, releases), in extended precision: shape (…, N)."""
        total = np.zeros((*values.shape[:-1], self.agents))
        some = np.diff(self.offsets) > 0
        if some.any():
            wide = values.astype(np.longdouble)
            total[..., some] = np.add.reduceat(wide, self.offsets[:-1][some], axis=-1)
        return total

    def alone(self, agent: int) -> Charges:
        """Those of one agent."""
        rows = slice(int(self.offsets[agent]), int(self.offsets[agent + 1]))
        return Charges(self.noises, self.kind[rows], self.loss[rows], np.array([0, rows.stop - rows.start]))

    def distinct(self) -> tuple[list[int], np.ndarray]:
        """Agents whose releases differ, whatever their order, and for each agent its place among them."""
        seen: dict[bytes, int] = {}
        places = np.empty(self.agents, np.int64)
        first: list[int] = []
        for agent in range(self.agents):
            rows = slice(int(self.offsets[agent]), int(self.offsets[agent + 1]))
            order = np.lexsort((self.loss[rows], self.kind[rows]))
            key = self.kind[rows][order].tobytes() + self.loss[rows][order].tobytes()
            if key not in seen:
                seen[key] = len(first)
                first.append(agent)
            places[agent] = seen[key]
        return first, places
