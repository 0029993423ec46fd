"""Gossip averaging (Boyd, Ghosh, Prabhakar, Shah 2006) as random matrices: exact E‖x − x̄‖², drift of the mean, rates.

On waking, agent i turns to a neighbour j with probability π_ij, Σ π_ij = 1, independently of the past; a message from
either to the other is lost with probability ℓ_ij. Who hears a model takes the mean of it and its own, x ← W x with

    W = I + ½·e_a(e_b − e_a)ᵀ        where a hears b,
    W = I − ½·(e_i − e_j)(e_i − e_j)ᵀ    where both hear the other's model from before (push-pull).

With M = E xxᵀ, summed over the coordinates of a model, R_ab the probability that a hears b, G = ½(R − diag(R·1)), and
S_ij that both hear each other,

    E WMWᵀ = M + GM + MGᵀ + diag(¼ Σ_b R_ab(M_aa − M_ab − M_ba + M_bb)),
    E WMWᵀ = M − ½(LM + ML) + ¼·Laplacian(S_ij·(M_ii − M_ij − M_ji + M_jj)),    L the Laplacian of S + Sᵀ:

E[W ⊗ W] applied to M in a time of n·links, never formed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

Mode = Literal["push", "pull", "push-pull"]


class Part(Protocol):
    """Something that can happen to all models."""

    def mean(self, x: np.ndarray) -> np.ndarray:
        """E Wx times the probability that it happens, shape (n, p)."""

    def square(self, M: np.ndarray) -> np.ndarray:
        """E WMWᵀ times the probability that it happens, shape (n, n)."""


#: What becomes of a moment of the models.
Apply = Callable[[Part, np.ndarray], np.ndarray]


class Hears:
    """Someone hears another and takes the mean.

    Parameters
    ----------
    chance : csr_array, shape (n, n)
        R_ab, the probability that a hears b; not all of one need be in it.
    """

    def __init__(self, chance: Any):
        self.total = float(chance.sum())
        self._rows = np.asarray(chance.sum(axis=1)).ravel()
        self._chance = _dense_where_full(chance)

    def mean(self, x: np.ndarray) -> np.ndarray:
        """E Wx times the probability that it happens, shape (n, p)."""
        return np.asarray(self.total * x + (self._chance @ x - self._rows[:, None] * x) / 2)

    def square(self, M: np.ndarray) -> np.ndarray:
        """E WMWᵀ times the probability that it happens, shape (n, n)."""
        heard = self._chance @ M
        back = (self._chance @ M.T).T
        moment = (self.total - self._rows[:, None] / 2 - self._rows / 2) * M + heard / 2 + back / 2
        own = M.diagonal()
        # Σ_b R_ab·M_ab and Σ_b R_ab·M_ba are on the diagonals.
        pull = self._rows * own - heard.diagonal() - back.diagonal() + self._chance @ own
        moment[np.diag_indices(len(M))] += pull / 4
        return np.asarray(moment)


class Meet:
    """Two agents take the mean of their models.

    Parameters
    ----------
    chance : csr_array, shape (n, n)
        S_ij, the probability that i and j meet after i's wake.
    """

    def __init__(self, chance: Any):
        self.total = float(chance.sum())
        both = (chance + chance.T).tocoo()
        self._ends, self._weight, self._shape = (both.row, both.col), both.data, both.shape
        self._degrees = np.asarray(both.sum(axis=1)).ravel()
        self._both = _dense_where_full(both.tocsr())

    def mean(self, x: np.ndarray) -> np.ndarray:
        """E Wx times the probability that it happens, shape (n, p)."""
        return np.asarray(self.total * x - (self._degrees[:, None] * x - self._both @ x) / 2)

    def square(self, M: np.ndarray) -> np.ndarray:
        """E WMWᵀ times the probability that it happens, shape (n, n)."""
        pulled = self._degrees[:, None] * M - self._both @ M
        back = self._degrees * M - (self._both @ M.T).T
        moment = self.total * M - (pulled + back) / 2
        own, (i, j) = M.diagonal(), self._ends
        # Each pair is there twice, in both directions, and S + Sᵀ counts it whole each time.
        apart = self._weight * (own[i] + own[j] - M[i, j] - M[j, i]) / 4
        moment[i, j] -= apart
        moment[np.diag_indices(len(M))] += np.bincount(i, apart, minlength=len(M))
        return np.asarray(moment)


@dataclass(frozen=True)
class GossipStep:
    """What an exchange does, given that it leads to a commit at all.

    Attributes
    ----------
    once : Hears or None
        Exchanges that end with one commit.
    first : Hears or None
        What of ``twice`` its first commit, that of the agent that woke, does; None in other modes than push-pull.
    twice : Meet or None
        Exchanges of two commits.
    effective : float
        Probability that an exchange leads to a commit.
    """

    once: Hears | None
    first: Hears | None
    twice: Meet | None
    effective: float

    @property
    def commits(self) -> float:
        """Expected commits of such an exchange."""
        return 1.0 + (self.twice.total if self.twice is not None else 0.0)

    def square(self, M: np.ndarray) -> np.ndarray:
        """E WMWᵀ of an exchange that leads to a commit, shape (n, n)."""
        return np.asarray(sum(part.square(M) for part in (self.once, self.twice) if part is not None))

    def mean(self, x: np.ndarray) -> np.ndarray:
        """E Wx of an exchange that leads to a commit, shape (n, p)."""
        return np.asarray(sum(part.mean(x) for part in (self.once, self.twice) if part is not None))


def averaging(mode: Mode, chance: Any, loss: float | np.ndarray = 0.0) -> GossipStep:
    """What exchanges do.

    Parameters
    ----------
    mode : {"push", "pull", "push-pull"}
        push: j hears i; pull: i asks, and hears j; push-pull: both.
    chance : csr_array, shape (n, n)
        π_ij, of sum one.
    loss : float or ndarray, shape (n, n)
        ℓ_ij in [0, 1].

    Raises
    ------
    ValueError
        If chances do not add up to one, or nothing can arrive.
    """
    from scipy.sparse import coo_array

    if abs(chance.sum() - 1) > 1e-9:
        raise ValueError(f"chances must add up to one, got {chance.sum()}")
    pairs = chance.tocoo()
    lost = np.broadcast_to(np.asarray(loss, dtype=float), chance.shape)
    there, back = 1 - lost[pairs.row, pairs.col], 1 - lost[pairs.col, pairs.row]
    arrives, answered = pairs.data * there, pairs.data * there * back
    effective = float((answered if mode == "pull" else arrives).sum())
    if effective <= 0:
        raise ValueError("all messages are lost: nothing happens")
    i, j = pairs.row, pairs.col

    def matrix(values: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> Any:
        return coo_array((values / effective, (rows, columns)), shape=chance.shape).tocsr()

    if mode != "push-pull":
        hears = matrix(answered, i, j) if mode == "pull" else matrix(arrives, j, i)
        return GossipStep(Hears(hears), None, None, effective)
    alone, both = arrives - answered, matrix(answered, i, j)
    once = Hears(matrix(alone, j, i)) if alone.any() else None
    return GossipStep(once, Hears(both), Meet(both), effective)


def partner_chances(links: Any, chance: np.ndarray, by_weight: bool = False) -> Any:
    """π_ij: agent i wakes with probability γ_i, and turns to a neighbour uniformly or by W_ij/D_ii.

    Parameters
    ----------
    links : csr_array, shape (n, n)
        W.
    chance : ndarray, shape (n,)
        γ_i.
    by_weight : bool
    """
    from scipy.sparse import csr_array

    weights = links.data if by_weight else np.ones(links.nnz)
    links_used = csr_array((weights, links.indices, links.indptr), shape=links.shape)
    scale = np.repeat(chance / np.asarray(links_used.sum(axis=1)).ravel(), np.diff(links_used.indptr))
    return csr_array((weights * scale, links.indices, links.indptr), shape=links.shape)


def commits(step: GossipStep, start: np.ndarray, apply: Apply) -> Iterator[np.ndarray]:
    """A moment of the models after 0, 1, 2 … commits, without end.

    An exchange of two commits is seen in between: with F_k that of runs whose k-th commit ends an exchange,
    F_k = once(F_{k−1}) + twice(F_{k−2}), and in all F_k + first(F_{k−1}).

    Parameters
    ----------
    step : GossipStep
    start : ndarray
    apply : callable
        `mean`, `square` or `spread`, of the models' moment that ``start`` is.
    """
    before, now, nothing = np.zeros_like(start), start, np.zeros_like(start)
    yield start
    while True:
        between = nothing if step.first is None else apply(step.first, now)
        once = nothing if step.once is None else apply(step.once, now)
        twice = nothing if step.twice is None else apply(step.twice, before)
        before, now = now, once + twice
        yield now + between


def exchanges(step: GossipStep, start: np.ndarray, apply: Apply) -> Iterator[np.ndarray]:
    """A moment after 0, 1, 2 … exchanges that led to commits, without end; parameters as in `commits`."""
    now = start
    while True:
        yield now
        now = apply(step, now)


def mean(part: Part, x: np.ndarray) -> np.ndarray:
    """E x after what a part does, shape (n, p)."""
    return part.mean(x)


def square(part: Part, M: np.ndarray) -> np.ndarray:
    """E xxᵀ, shape (n, n)."""
    return part.square(M)


def spread(part: Part, M: np.ndarray) -> np.ndarray:
    """E of (x − x̄)(x − x̄)ᵀ, shape (n, n): W·1 = 1, so with C = I − 11ᵀ/n that is CWC·C = CW·C, and needs no more."""
    return centred(part.square(M))


def centred(M: np.ndarray) -> np.ndarray:
    """CMC with C = I − 11ᵀ/n: what is left when everybody's mean is taken off."""
    return np.asarray(M - M.mean(axis=0) - M.mean(axis=1)[:, None] + M.mean())


#: What rounding may move, relative to the size of models.
_ROUNDING = 1e-13

#: Agents up to which r is found: a map of n² numbers, near the identity.
_MOST = 200

#: `commits` or `exchanges`.
Walk = Callable[[GossipStep, np.ndarray, Apply], Iterator[np.ndarray]]


class AveragingPath(NamedTuple):
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

    def mixed(self, chances: np.ndarray) -> AveragingPath:
        """After numbers of steps that are random, of these distributions, shape (moments, K + 1).

        Bias mixes as the norm of the mean of what points in different directions: an upper bound.
        """
        return AveragingPath(*(chances @ part for part in self))


def averaging_path(
    step: GossipStep, start: np.ndarray, steps: int, noise: np.ndarray | None = None, walk: Walk = commits
) -> AveragingPath:
    """Walk once.

    Parameters
    ----------
    step : GossipStep
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
    distance, drift, bias = np.empty((3, steps + 1))
    walks = walk(step, centred(M), spread), walk(step, M, square), walk(step, x, mean)
    for k, (centred_square, squares, means) in enumerate(islice(zip(*walks, strict=True), steps + 1)):
        distance[k], drift[k] = np.trace(centred_square), squares.mean()
        bias[k] = np.linalg.norm(means.mean(axis=0))
    # Rounding alone moves a mean that is kept, and brings squares below 0.
    size = float(np.trace(M)) / len(start)
    drift[drift < _ROUNDING * size] = 0.0
    bias[bias < _ROUNDING * np.sqrt(size)] = 0.0
    return AveragingPath(np.maximum(distance, 0.0), drift, bias)


class ContractionRates(NamedTuple):
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


def contraction(step: GossipStep, agents: int) -> ContractionRates:
    """λ₂ and r.

    Parameters
    ----------
    step : GossipStep
    agents : int
        n ≥ 2.
    """
    n = agents
    C = np.eye(n) - 1 / n
    of_mean = C @ step.mean(C)
    symmetric = np.abs(of_mean - of_mean.T).max() <= _ROUNDING
    slowest = float(np.abs(np.linalg.eigvalsh(of_mean) if symmetric else np.linalg.eigvals(of_mean)).max())
    return ContractionRates(slowest, _radius(lambda M: spread(step, M), n) if n <= _MOST else np.nan)


def _radius(apply: Callable[[np.ndarray], np.ndarray], n: int) -> float:
    """Spectral radius of a map of matrices that keeps positive ones positive: a real eigenvalue is as large."""
    if n <= 3:  # too small for Lanczos
        basis = np.eye(n * n).reshape(n * n, n, n)
        full = np.array([apply(matrix).ravel() for matrix in basis]).T
        return float(np.abs(np.linalg.eigvals(full)).max())
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs

    operator = LinearOperator(
        (n * n, n * n), matvec=lambda flat: apply(flat.reshape(n, n)).ravel(), dtype=np.float64
    )
    # Near the identity, which is inside the cone, but no eigenvector where all agents are alike.
    first = np.diag(1 + np.arange(n) / n)
    try:
        start = centred(first).ravel()
        largest = eigs(operator, k=1, which="LM", v0=start, return_eigenvectors=False, tol=1e-12)
    except ArpackNoConvergence:
        return np.nan
    return float(np.abs(largest[0]))


#: From this share of all entries on a dense product takes less time.
_DENSE = 0.1


def _dense_where_full(matrix: Any) -> Any:
    """A square csr_array, or the same as an ndarray where at least a tenth of its entries are given."""
    n = matrix.shape[0]
    return matrix.toarray() if matrix.nnz >= _DENSE * n * n else matrix
