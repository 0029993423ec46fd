"""Gossip averaging along a run: expected distance from consensus, drift of the mean, and rates of contraction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from p2psim.theory.forecasts import gossip as moments
from p2psim.theory.forecasts.gossip import Apply, Averaging, centred, commits

#: What rounding may move, relative to the size of models.
_ROUNDING = 1e-13

#: Agents up to which r is found: a map of n² numbers, near the identity.
_MOST = 200

#: `commits` or `exchanges`.
MomentRecursion = Callable[[Averaging, np.ndarray, Apply], Iterator[np.ndarray]]


@dataclass(frozen=True)
class AveragingPath:
    """What n agents know after k = 0 … K steps; x̄ their mean then, x̄₀ at first, of expected models.

    Attributes
    ----------
    spread : ndarray, shape (K + 1,)
        E Σ_i ‖x_i − x̄‖², which is n times what is recorded as consensus_distance.
    drift : ndarray, shape (K + 1,)
        E‖x̄ − x̄₀‖².
    bias : ndarray, shape (K + 1,)
        ‖E x̄ − x̄₀‖.
    """

    spread: np.ndarray
    drift: np.ndarray
    bias: np.ndarray

    def __getitem__(self, steps: np.ndarray) -> AveragingPath:
        return AveragingPath(self.spread[steps], self.drift[steps], self.bias[steps])

    def mixed(self, chances: np.ndarray) -> AveragingPath:
        """After numbers of steps that are random, of these distributions, shape (moments, K + 1).

        Bias mixes as the norm of the mean of what points in different directions: an upper bound.
        """
        return AveragingPath(chances @ self.spread, chances @ self.drift, chances @ self.bias)


def averaging_path(
    step: Averaging,
    start: np.ndarray,
    steps: int,
    noise: np.ndarray | None = None,
    walk: MomentRecursion = commits,
) -> AveragingPath:
    """Walk once.

    Parameters
    ----------
    step : Averaging
    start : ndarray, shape (n, p)
        Expected first models.
    steps : int
        K.
    noise : ndarray, shape (n, n), optional
        Covariance between the agents' noise of one coordinate of their first models, alike in all coordinates; none
        when left out.
    walk : callable
        `commits` or `exchanges`.
    """
    p = start.shape[1]
    # W·1 = 1, so what all have in common may be taken off.
    x = start - start.mean(axis=0)
    M = x @ x.T
    if noise is not None:
        M += p * noise
    spread, drift, bias = np.empty((3, steps + 1))
    walks = (
        walk(step, centred(M), moments.spread),
        walk(step, M, moments.square),
        walk(step, x, moments.mean),
    )
    for k, (apart, squares, mean) in enumerate(islice(zip(*walks, strict=True), steps + 1)):
        spread[k], drift[k] = np.trace(apart), squares.mean()
        bias[k] = np.linalg.norm(mean.mean(axis=0))
    # Rounding alone moves a mean that is kept, and brings squares below 0.
    size = float(np.trace(M)) / len(start)
    drift[drift < _ROUNDING * size] = 0.0
    bias[bias < _ROUNDING * np.sqrt(size)] = 0.0
    return AveragingPath(np.maximum(spread, 0.0), drift, bias)


@dataclass(frozen=True)
class Contraction:
    """Factors an exchange that leads to a commit.

    Attributes
    ----------
    mean : float
        λ₂(E[W]): by which E x comes closer to consensus in its slowest mode.
    square : float
        r, the spectral radius of E[W ⊗ W] off consensus: by which E‖x − x̄‖² falls. λ₂² ≤ r; and r ≤ λ₂ where all W are
        symmetric projections, as in push-pull without loss. NaN of more than 200 agents, and where it is not found.
    """

    mean: float
    square: float


def contraction(step: Averaging, agents: int) -> Contraction:
    """λ₂ and r.

    Parameters
    ----------
    step : Averaging
    agents : int
        n ≥ 2.
    """
    n = agents
    C = np.eye(n) - 1 / n
    mean = C @ step.mean(C)
    symmetric = np.abs(mean - mean.T).max() <= _ROUNDING
    slowest = float(np.abs(np.linalg.eigvalsh(mean) if symmetric else np.linalg.eigvals(mean)).max())
    return Contraction(slowest, _radius(lambda M: moments.spread(step, M), n) if n <= _MOST else np.nan)


def _radius(apply: Callable[[np.ndarray], np.ndarray], n: int) -> float:
    """Spectral radius of a map of matrices that keeps positive ones positive: a real eigenvalue is as large."""
    if n <= 3:  # too small for Lanczos
        basis = np.eye(n * n).reshape(n * n, n, n)
        full = np.array([apply(one).ravel() for one in basis]).T
        return float(np.abs(np.linalg.eigvals(full)).max())
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs

    operator = LinearOperator(
        (n * n, n * n), matvec=lambda flat: apply(flat.reshape(n, n)).ravel(), dtype=np.float64
    )
    # Near the identity, which is inside the cone, but no eigenvector where all agents are alike.
    first = np.diag(1 + np.arange(n) / n)
    try:
        found = eigs(
            operator, k=1, which="LM", v0=centred(first).ravel(), return_eigenvectors=False, tol=1e-12
        )
    except ArpackNoConvergence:
        return np.nan
    return float(np.abs(found[0]))
