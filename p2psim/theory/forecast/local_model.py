"""A quadratic model of any smooth fitness near its minimiser: what forecasts need of a loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np


class Quadratic(Protocol):
    """What a linear star is made of; `Statistics` are one, exactly, and `LocalModel` another."""

    @property
    def shares(self) -> np.ndarray:
        """n_i/n, shape (N,)."""

    @property
    def gram(self) -> np.ndarray:
        """A_i: an owner answers 2(A_iθ − b_i), shape (N, p, p)."""

    @property
    def moment(self) -> np.ndarray:
        """b_i, shape (N, p)."""

    @property
    def l2(self) -> float:
        """Weight of g."""

    @property
    def optimum(self) -> np.ndarray:
        """θ*, shape (p,)."""

    @property
    def hessian(self) -> np.ndarray:
        """H: f(θ) − f(θ*) is (θ − θ*)ᵀH(θ − θ*), shape (p, p)."""


@dataclass(frozen=True)
class LocalModel:
    """Owners whose answers are taken to be affine, and a fitness that is taken to be quadratic.

    Exact for squared loss where neither clipping nor the box acts. Else an approximation: answers are expanded at the
    model where those that owners really give, clipped ones, balance; that is θ* where no gradient is clipped there.

    Attributes
    ----------
    records : ndarray, shape (N,)
        n_i.
    gram : ndarray, shape (N, p, p)
        A_i, half the Jacobian of owner i's answer.
    moment : ndarray, shape (N, p)
        b_i, so that 2(A_iθ − b_i) is its answer where it is expanded.
    l2 : float
    optimum : ndarray, shape (p,)
        θ* of f.
    hessian : ndarray, shape (p, p)
        H, half the Hessian of f at θ*, without clipping.
    minimum : float
        f(θ*).
    isolated : ndarray, shape (N,)
        ψ of what each owner reaches alone, without noise.
    """

    records: np.ndarray
    gram: np.ndarray
    moment: np.ndarray
    l2: float
    optimum: np.ndarray
    hessian: np.ndarray
    minimum: float
    isolated: np.ndarray

    @cached_property
    def shares(self) -> np.ndarray:
        """n_i/n, shape (N,)."""
        return self.records / self.records.sum()

    def alike(self, owners: int) -> LocalModel:
        """As many owners of equal size, each with the second moments of all records together."""

        def repeated(values: np.ndarray) -> np.ndarray:
            mean = np.tensordot(self.shares, values, 1)
            return np.broadcast_to(mean, (owners, *mean.shape))

        return LocalModel(
            np.full(owners, self.records.mean()),
            repeated(self.gram),
            repeated(self.moment),
            self.l2,
            self.optimum,
            self.hessian,
            self.minimum,
            np.full(owners, self.isolated.mean()),
        )

    def among(self, members: np.ndarray) -> LocalModel:
        """Some of the owners, by their numbers, on the fitness of all."""
        return replace(
            self,
            records=self.records[members],
            gram=self.gram[members],
            moment=self.moment[members],
            isolated=self.isolated[members],
        )

    def diagonal(self) -> LocalModel:
        """With what owners' A_i have off the eigenvectors of H left out: a cheaper model, to search with."""
        _, basis = np.linalg.eigh(self.hessian)
        own = np.einsum("pj,ipq,qj->ij", basis, self.gram, basis)
        return LocalModel(
            self.records,
            np.einsum("pj,ij,qj->ipq", basis, own, basis),
            # The answer at θ* stays what it is.
            self.moment
            + np.einsum("pj,ij,qj,q->ip", basis, own, basis, self.optimum)
            - self.gram @ self.optimum,
            self.l2,
            self.optimum,
            self.hessian,
            self.minimum,
            self.isolated,
        )
