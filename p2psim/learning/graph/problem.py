"""The objective Q_L that agents on a graph minimise together, and the base classes of replays on a graph.

Q_L adds the agents' own losses and a term that pulls the models of neighbours together (B, equation 2). The base
classes hold the agents' own models, the violations of claimed gradient bounds, and the current value of Q_L.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from p2psim.core.errors import SimulationError
from p2psim.learning.batches import Sampling
from p2psim.learning.graph import kernel
from p2psim.learning.graph.kernel import objective_parts
from p2psim.learning.losses import Loss
from p2psim.learning.owner_kernel import UNKNOWN, evaluate_all


@dataclass(frozen=True)
class GraphProblem:
    """Q_L(Θ) = ½ Σ_{i<j} W_ij‖θ_i − θ_j‖² + μ Σ_i D_ii·c_i·L_i(θ_i) (B, equation 2).

    L_i(θ) = (1/m_i) Σ ℓ(θᵀx, y) + λ_i‖θ‖², D_ii = Σ_j W_ij.

    Attributes
    ----------
    loss : Loss
        Of bounded curvature.
    mu : float
        Positive.
    X : ndarray, shape (records, p)
        Agent by agent; with the intercept's column where there is one.
    y : ndarray, shape (records,)
    offsets : ndarray of int64, shape (n + 1,)
        Agent i holds rows offsets[i] to offsets[i + 1].
    ridge : ndarray, shape (n,)
        λ_i.
    confidence : ndarray, shape (n,)
        c_i in (0, 1].
    smoothness : ndarray, shape (n,)
        L_i^loc, a bound on the Hessian of L_i.
    indptr, indices, weights : ndarray
        The graph, as compressed rows; symmetric.
    test_X, test_y, test_offsets : ndarray
        Records held out; offsets all zero when there are none.
    """

    loss: Loss
    mu: float
    X: np.ndarray
    y: np.ndarray
    offsets: np.ndarray
    ridge: np.ndarray
    confidence: np.ndarray
    smoothness: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    test_X: np.ndarray
    test_y: np.ndarray
    test_offsets: np.ndarray

    @property
    def agents(self) -> int:
        """Number n of agents."""
        return self.offsets.size - 1

    @property
    def dimension(self) -> int:
        """Length p of a model."""
        return self.X.shape[1]

    @cached_property
    def digest(self) -> str:
        """Hash of all that Q_L depends on."""
        made = hashlib.blake2b(f"{self.loss!r} {self.mu!r} {self.X.shape}".encode(), digest_size=16)
        parts = (self.X, self.y, self.offsets, self.ridge, self.confidence, self.smoothness)
        for array in (*parts, self.indptr, self.indices, self.weights):
            made.update(np.ascontiguousarray(array).data)
        return made.hexdigest()

    @cached_property
    def records(self) -> np.ndarray:
        """m_i, shape (n,)."""
        return np.diff(self.offsets)

    @cached_property
    def degrees(self) -> np.ndarray:
        """D_ii, shape (n,)."""
        return np.add.reduceat(self.weights, self.indptr[:-1])

    @cached_property
    def reverse(self) -> np.ndarray:
        """For the place of j in i's row of the graph, the place of i in j's row: shape (directed edges,)."""
        rows = np.repeat(np.arange(self.agents), np.diff(self.indptr))
        reverse = np.empty(self.indices.size, np.int64)
        # In the order of (j, i) the edges (i, j) stand where (j, i) stand in their own order.
        reverse[np.lexsort((rows, self.indices))] = np.arange(self.indices.size)
        return reverse

    @cached_property
    def pull(self) -> np.ndarray:
        """μ·D_ii·c_i, the weight of each agent's own loss, shape (n,)."""
        return self.mu * self.degrees * self.confidence

    @cached_property
    def alpha(self) -> np.ndarray:
        """α_i = 1/(1 + μ·c_i·L_i^loc), shape (n,)."""
        return 1.0 / (1.0 + self.mu * self.confidence * self.smoothness)

    @cached_property
    def l1_norms(self) -> np.ndarray:
        """‖x‖₁ of each record."""
        return np.abs(self.X).sum(axis=1)

    @cached_property
    def l2_norms(self) -> np.ndarray:
        """‖x‖₂ of each record."""
        return np.sqrt(np.einsum("rp,rp->r", self.X, self.X))

    def norms(self, order: int) -> np.ndarray:
        """‖x‖ of each record, of order 1 or 2."""
        return self.l1_norms if order == 1 else self.l2_norms

    @property
    def lipschitz(self) -> np.ndarray:
        """Block Lipschitz constants D_ii(1 + μ·c_i·L_i^loc) of Q_L, shape (n,)."""
        return self.degrees * (1.0 + self.mu * self.confidence * self.smoothness)

    @property
    def strong_convexity(self) -> float:
        """Lower bound μ·min_i D_ii·c_i·2λ_i on the strong convexity of Q_L."""
        return float((self.pull * 2 * self.ridge).min())

    @property
    def contraction(self) -> float:
        """C = 1 − σ/(n·L_max), by which an update shrinks the expected gap at least (B, Proposition 1)."""
        return 1.0 - self.strong_convexity / (self.agents * float(self.lipschitz.max()))

    def scores(self, theta: np.ndarray) -> np.ndarray:
        """θ_iᵀx of each record, shape (n, p) to (records,)."""
        return np.einsum("rp,rp->r", self.X, theta[self._owner])

    @cached_property
    def _owner(self) -> np.ndarray:
        return np.repeat(np.arange(self.agents), self.records)

    def mean_losses(self, theta: np.ndarray) -> np.ndarray:
        """Mean loss of each agent's records without regulariser, shape (n, p) to (n,)."""
        return self.mean_by_agent(self.loss.values(self.scores(theta), self.y))

    def mean_by_agent(self, values: np.ndarray) -> np.ndarray:
        """Mean of a number a record over each agent's records, shape (records,) to (n,); 0 without records."""
        return _means(values, self.offsets)

    def objective(self, theta: np.ndarray) -> float:
        """Q_L at Θ, shape (n, p)."""
        parts = kernel.objective_parts(
            self.indptr, self.indices, self.weights, theta, self.mean_losses(theta), self.ridge, self.pull
        )
        return float(sum(parts))

    def neighbour_means(self, theta: np.ndarray) -> np.ndarray:
        """Σ_j (W_ij/D_ii)·θ_j of each agent, shape (n, p)."""
        return (self._matrix @ theta) / self.degrees[:, None]

    @cached_property
    def parts(self) -> np.ndarray:
        """For each agent the number of the part of the graph that it is linked with, from 0, shape (n,)."""
        from scipy.sparse.csgraph import connected_components

        labels: np.ndarray = connected_components(self._matrix, directed=False)[1]
        return labels

    @cached_property
    def _matrix(self):  # type: ignore[no-untyped-def]
        """W, as SciPy's sparse rows."""
        from scipy.sparse import csr_array

        n = self.agents
        return csr_array((self.weights, self.indices.astype(np.int64), self.indptr), shape=(n, n))

    def test_accuracy(self, theta: np.ndarray) -> np.ndarray:
        """Share of each agent's held-out records whose class its model tells, shape (n,); NaN without such records.

        A score of 0 tells no class: a guess would be right half of the time.
        """
        return _means((1 + np.sign(self._test_scores(theta) * self.test_y)) / 2, self.test_offsets, np.nan)

    def test_rmse(self, theta: np.ndarray) -> np.ndarray:
        """Root of the mean squared error on each agent's held-out records, shape (n,); NaN without such records."""
        return np.sqrt(_means((self._test_scores(theta) - self.test_y) ** 2, self.test_offsets, np.nan))

    def _test_scores(self, theta: np.ndarray) -> np.ndarray:
        owner = np.repeat(np.arange(self.agents), np.diff(self.test_offsets))
        return np.einsum("tp,tp->t", self.test_X, theta[owner])


def _means(values: np.ndarray, offsets: np.ndarray, without: float = 0.0) -> np.ndarray:
    counts = np.diff(offsets)
    sums = np.zeros(counts.size)
    held = counts > 0
    if held.any():
        sums[held] = np.add.reduceat(values, offsets[:-1][held])
    return np.where(held, sums / np.maximum(counts, 1), without)


def confidences(records: np.ndarray, without: float = 1e-3) -> np.ndarray:
    """c_i = m_i/max_j m_j, and a small constant for an agent without records (B, section 2), shape (n,)."""
    return np.where(records > 0, records / records.max(), without)


#: Q_L is summed afresh where it has fallen so far that rounding of what it was would show.
FALL = 1e3


class OwnModels:
    """Models, one an agent.

    Parameters
    ----------
    start : ndarray, shape (n, p)

    Attributes
    ----------
    theta : ndarray, shape (n, p)
        The agents' own models.
    violations : ndarray of int64, shape (n,)
        Releases at which a record of each agent, in the batch or not, exceeded the claimed bound.
    violation_steps : ndarray of int64, shape (n,)
        Commits before the first of them; −1 for none.
    violation_sizes : ndarray, shape (n,)
        Largest gradient seen at them over the bound; 0 for none.
    """

    def __init__(self, start: np.ndarray):
        self.theta = np.array(start, dtype=np.float64)
        n = len(start)
        self.violations, self.violation_steps = np.zeros(n, np.int64), np.full(n, -1)
        self.violation_sizes = np.zeros(n)

    def check(self) -> None:
        """Raise a SimulationError if a model is not finite."""
        if not np.isfinite(self.theta).all():
            agent = int(np.argmin(np.isfinite(self.theta).all(axis=1)))
            raise SimulationError(f"the model of agent {agent} is not finite")


class Gradients(Protocol):
    """What a rule of updates says of gradients; see `p2psim.learning.graph.replay.GraphRule`."""

    @property
    def clip(self) -> float:
        """Norm to which each record's gradient is clipped."""

    @property
    def order(self) -> int:
        """Order of that norm."""

    @property
    def bound(self) -> float:
        """Claimed bound."""


class LearnedModels(OwnModels):
    """Models that are learned from the agents' records.

    Parameters
    ----------
    problem : GraphProblem
    rule : Gradients
    start : ndarray, shape (n, p)
        The agents' first models, which their neighbours know.
    anchor : ndarray, shape (n, p), optional
        What updates without a release pull towards, until the agent's first release; the start when left out.
    track : bool
        Keep Q_L up to date.
    sampling : Sampling, optional
        How the records of each release are drawn; all take part when left out.

    Attributes
    ----------
    local : ndarray, shape (n,)
        Mean loss of each agent's records without regulariser; kept up to date where Q_L is.
    """

    def __init__(
        self,
        problem: GraphProblem,
        rule: Gradients,
        start: np.ndarray,
        anchor: np.ndarray | None,
        track: bool,
        sampling: Sampling | None,
    ):
        super().__init__(start)
        n = len(start)
        self._problem, self._track = problem, track
        self._batch = None if sampling is None else sampling.for_kernel(problem.records)
        self._anchor = np.array(start if anchor is None else anchor, dtype=np.float64)
        self.local, self._sums = np.zeros(n), np.zeros(3)
        self._gradients, self._known = np.empty_like(self.theta), np.full(n, UNKNOWN, np.int8)
        if track:
            evaluate_all(
                problem.loss.for_kernel(), problem.X, problem.y, problem.norms(rule.order), problem.offsets,
                rule.clip, rule.bound, self.theta, self.local, self._gradients, self._known,
            )  # fmt: skip
            self._sum_afresh()

    @property
    def objective(self) -> float:
        """Q_L at the agents' own models, where it is tracked."""
        if not self._sums[2] <= FALL * abs(self._sums[:2].sum()):  # also where it was undefined meanwhile
            self._sum_afresh()
        return float(self._sums[:2].sum())

    def _sum_afresh(self) -> None:
        problem = self._problem
        self._sums[:2] = objective_parts(
            problem.indptr, problem.indices, problem.weights, self.theta,
            self.local, problem.ridge, problem.pull,
        )  # fmt: skip
        self._sums[2] = abs(self._sums[:2].sum())
