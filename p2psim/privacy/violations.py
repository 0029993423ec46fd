"""Releases at which a record's gradient exceeded the bound that was claimed: there the guarantee does not hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Violations:
    """What was seen of the records of each agent, whether they took part in a release or not.

    Attributes
    ----------
    counts : ndarray of int, shape (N,)
        Releases at which a record exceeded the bound.
    steps : ndarray of int, shape (N,)
        Commits of all agents before the first of them; −1 for none.
    sizes : ndarray, shape (N,)
        Norm of the longest gradient at them, over the bound; 0 for none.
    """

    counts: np.ndarray
    steps: np.ndarray
    sizes: np.ndarray

    @classmethod
    def none(cls, agents: int) -> Violations:
        """Where nobody exceeded anything."""
        return cls(np.zeros(agents, np.int64), np.full(agents, -1), np.zeros(agents))

    @property
    def found(self) -> np.ndarray:
        """Whether an agent's records exceeded the bound, shape (N,)."""
        return self.counts > 0

    def after_start(self, sizes: np.ndarray) -> Violations:
        """With those of a release before the first event; ``sizes`` are the longest gradients over the bound, or 0."""
        broken = sizes > 0
        return Violations(
            self.counts + broken, np.where(broken, 0, self.steps), np.maximum(self.sizes, sizes)
        )
