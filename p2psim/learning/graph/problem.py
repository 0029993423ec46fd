"""The objective Q_L that agents on a graph minimise together, and how they update their models.

Q_L adds the agents' own losses and a term that pulls the models of neighbours together (B, equation 2).
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from p2psim.core.compiled import njit, unwritten
from p2psim.learning.batches import GradientRule, Sampling, record_norms
from p2psim.learning.losses import Loss


class Objective(NamedTuple):
    """What of `GraphProblem` kernels need beside records: the graph, λ_i, and μ·D_ii·c_i."""

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    degrees: np.ndarray
    ridge: np.ndarray
    pull: np.ndarray


@njit()
def objective_parts(graph, theta, local):  # type: ignore[no-untyped-def]
    """½ Σ_{i<j} W_ij‖θ_i − θ_j‖² and Σ_i μD_ii·c_i·(mean loss + λ_i‖θ_i‖²), afresh; ``graph`` is an `Objective`."""
    indptr, indices, weights, _, ridge, pull = graph
    smooth = fit = 0.0
    for i in range(indptr.size - 1):
        own = 0.0
        for a in range(theta.shape[1]):
            own += theta[i, a] * theta[i, a]
        fit += pull[i] * (local[i] + ridge[i] * own)
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if j > i:
                s = 0.0
                for a in range(theta.shape[1]):
                    s += (theta[i, a] - theta[j, a]) ** 2
                smooth += 0.5 * weights[e] * s
    return smooth, fit


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
        from scipy.sparse import csr_array

        # Column j of the matrix of places has those in the rows of its neighbours i, in the order of j's row.
        kind = np.int32 if self.indices.size < 2**31 else np.int64
        places = np.arange(self.indices.size, dtype=kind), self.indices, self.indptr
        return np.asarray(csr_array(places, shape=(self.agents,) * 2).tocsc().data)

    @cached_property
    def pull(self) -> np.ndarray:
        """μ·D_ii·c_i, the weight of each agent's own loss, shape (n,)."""
        return self.mu * self.degrees * self.confidence

    @cached_property
    def alpha(self) -> np.ndarray:
        """α_i = 1/(1 + μ·c_i·L_i^loc), shape (n,)."""
        return 1.0 / (1.0 + self.mu * self.confidence * self.smoothness)

    def norms(self, order: int) -> np.ndarray:
        """‖x‖ of each record, of order 1 or 2."""
        return self._l1_norms if order == 1 else self._l2_norms

    @cached_property
    def _l1_norms(self) -> np.ndarray:
        return record_norms(self.X, 1)

    @cached_property
    def _l2_norms(self) -> np.ndarray:
        return record_norms(self.X, 2)

    def largest_gradients(self, order: int) -> np.ndarray:
        """Largest norm, of order 1 or 2, that each record's gradient can reach at any model, shape (records,)."""
        return self.loss.slope_bound * self.norms(order)

    @property
    def bytes_of_data(self) -> int:
        """Size of the records."""
        return self.X.nbytes + self.y.nbytes + self.test_X.nbytes

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
        """Mean loss of each agent's records without regulariser, shape (n, p) to (n,); 0 without records."""
        return _means(self.loss.values(self.scores(theta), self.y), self.offsets)

    def objective(self, theta: np.ndarray) -> float:
        """Q_L at Θ, shape (n, p)."""
        return float(sum(objective_parts(self.for_kernel, unwritten(theta), self.mean_losses(theta))))

    @cached_property
    def for_kernel(self) -> Objective:
        """The arrays that kernels take."""
        return Objective(self.indptr, self.indices, self.weights, self.degrees, self.ridge, self.pull)

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


@dataclass(frozen=True)
class GraphRule(GradientRule):
    """How an agent updates its model; see `GradientRule` for its gradient.

    Attributes
    ----------
    anchored : bool
        Whether an update that makes no release pulls towards the agent's anchor, not only averages.
    """

    anchored: bool = False


@dataclass(frozen=True)
class GraphTask:
    """What agents on a graph learn, how, and from where.

    Attributes
    ----------
    problem : GraphProblem
    rule : GraphRule
    start : ndarray, shape (n, p)
        The agents' first models, which their neighbours know.
    anchor : ndarray, shape (n, p), optional
        What updates without a release pull towards, until the agent's first release; the start when left out.
    sampling : Sampling, optional
        How the records of each release are drawn; all take part when left out.
    """

    problem: GraphProblem
    rule: GraphRule
    start: np.ndarray
    anchor: np.ndarray | None = None
    sampling: Sampling | None = None

    def anchors(self) -> np.ndarray:
        """The anchors at first, to be written to."""
        return np.array(self.start if self.anchor is None else self.anchor, dtype=np.float64, order="C")
