"""What the owners of a star could exchange before they run it: sums over their records, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Statistics:
    """Second moments of the owners' records, for squared loss ℓ = (θᵀx − y)² and g = l2·‖θ‖².

    Attributes
    ----------
    records : ndarray, shape (N,)
        n_i > 0.
    gram : ndarray, shape (N, p, p)
        A_i = XᵀX/n_i.
    moment : ndarray, shape (N, p)
        b_i = Xᵀy/n_i.
    energy : ndarray, shape (N,)
        yᵀy/n_i.
    l2 : float
        Positive.
    """

    records: np.ndarray
    gram: np.ndarray
    moment: np.ndarray
    energy: np.ndarray
    l2: float

    @property
    def owners(self) -> int:
        """Number N of owners."""
        return len(self.moment)

    @property
    def dimension(self) -> int:
        """Length p of a model."""
        return self.moment.shape[1]

    @cached_property
    def shares(self) -> np.ndarray:
        """n_i/n, shape (N,)."""
        return self.records / self.records.sum()

    @cached_property
    def hessian(self) -> np.ndarray:
        """H = l2·I + Σ (n_i/n)A_i, half the Hessian of f, shape (p, p)."""
        return self.l2 * np.eye(self.dimension) + np.tensordot(self.shares, self.gram, 1)

    @cached_property
    def optimum(self) -> np.ndarray:
        """θ*, the minimiser of f over all models, shape (p,)."""
        return np.linalg.solve(self.hessian, self.shares @ self.moment)

    @cached_property
    def minimum(self) -> float:
        """f(θ*)."""
        return float(self.shares @ self.energy - self.shares @ self.moment @ self.optimum)

    @cached_property
    def isolated(self) -> np.ndarray:
        """θ_i*, what each owner reaches alone without noise, shape (N, p)."""
        own = self.gram + self.l2 * np.eye(self.dimension)
        return np.linalg.solve(own, self.moment[:, :, None])[:, :, 0]

    def excess(self, theta: np.ndarray) -> np.ndarray:
        """How far f lies above f(θ*), at models of shape (…, p): (θ − θ*)ᵀH(θ − θ*)."""
        away = theta - self.optimum
        return np.einsum("...p,pq,...q->...", away, self.hessian, away)

    def alike(self, owners: int) -> Statistics:
        """As many owners of equal size, each with the second moments of all records together.

        Parameters
        ----------
        owners : int
            Each has n/N records, so that the number of records grows with it.
        """

        def repeated(values: np.ndarray) -> np.ndarray:
            mean = np.tensordot(self.shares, values, 1)
            return np.broadcast_to(mean, (owners, *mean.shape))

        records = np.full(owners, self.records.mean())
        return Statistics(records, repeated(self.gram), repeated(self.moment), repeated(self.energy), self.l2)

    def among(self, members: np.ndarray) -> Statistics:
        """Statistics of some owners, by their numbers."""
        return replace(
            self,
            records=self.records[members],
            gram=self.gram[members],
            moment=self.moment[members],
            energy=self.energy[members],
        )
