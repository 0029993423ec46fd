"""One wake of coordinate descent on a graph (B, section 3) as a random linear map, for squared loss.

With z = Θ − Θ∘, Θ∘ where all agents' updates rest, agent i wakes with probability γ_i, independently of the past, and

    z_i ← z_i − a_i·(K z)_i + s_i·η,    all else stays,    a_i = α_i/D_ii,    s_i = −α_i·μ·c_i,

K the Hessian of what updates descend: blocks K_ii = D_ii·I + μ·D_ii·c_i·∇²L_i and K_ij = −W_ij·I. Every agent's
neighbours know its newest model: no delay and no loss is in it. Without clipping Θ∘ is Θ*, and K the Hessian H of Q_L.

Second moments walk backwards or forwards by two maps, each the other's adjoint: with A_i = I − a_i·E_i·K, E_i the
projector on block i,

    dual: Q ← Σ γ_i·A_iᵀQA_i,    primal: S ← Σ γ_i·A_i·S·A_iᵀ.

A wake touches one block row, so either is one product with K and terms that are cheap beside it.

`dense_where_full` makes sparse matrices dense where they are full enough.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

#: Share by which the largest eigenvalue is taken larger than its estimate.
_CLOSE = 1e-3

#: Numbers of a product that are computed at once.
_COLUMNS = 200_000

#: From this share of all links on blocks of all pairs are added, not of neighbours alone.
_FULL = 0.15


@dataclass(frozen=True)
class LinearDescent:
    """Maps of all agents.

    Attributes
    ----------
    chance : ndarray, shape (n,)
        γ_i > 0, of sum one.
    step : ndarray, shape (n,)
        a_i = α_i/D_ii > 0.
    noise_step : ndarray, shape (n,)
        |s_i| = α_i·μ·c_i ≥ 0, by which noise of a coordinate of a gradient is multiplied.
    weights : csr_array, shape (n, n)
        W, symmetric, without diagonal.
    blocks : ndarray, shape (n, p, p)
        K_ii, symmetric.
    objective : ndarray, shape (n, p, p)
        H_ii of Q_L; the same as ``blocks`` without clipping. H_ij = K_ij.
    start : ndarray, shape (n, p)
        First models less Θ∘.
    offset : ndarray, shape (n, p)
        Θ∘ − Θ*; zero without clipping.
    start_covariance : ndarray, shape (n, n)
        Between the agents' noise of one coordinate of their first models, alike in all coordinates.

    Raises
    ------
    ValueError
        If chances are not positive or do not add up to one, or a step is not positive.
    """

    chance: np.ndarray
    step: np.ndarray
    noise_step: np.ndarray
    weights: Any
    blocks: np.ndarray
    objective: np.ndarray
    start: np.ndarray
    offset: np.ndarray
    start_covariance: np.ndarray

    def __post_init__(self) -> None:
        if not ((self.chance > 0).all() and abs(self.chance.sum() - 1) < 1e-9):
            raise ValueError(f"chances must be positive and add up to one, got {self.chance}")
        if not ((self.step > 0).all() and np.isfinite(self.step).all()):
            raise ValueError(f"steps must be positive and finite, got {self.step}")

    @property
    def agents(self) -> int:
        """Number n of agents."""
        return len(self.start)

    @property
    def size(self) -> int:
        """Length n·p of the state."""
        return self.start.size

    @cached_property
    def _links(self) -> Any:
        return dense_where_full(self.weights)

    def _times(self, blocks: np.ndarray, right: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """(diag(blocks) − W ⊗ I)·right, shape (…, n·p, m)."""
        n, p = self.start.shape
        shape = right.shape[:-2]
        out = np.empty(right.shape) if out is None else out  # in rows, for views of it
        np.matmul(blocks, right.reshape(*shape, n, p, -1), out=out.reshape(*shape, n, p, -1))
        rows, flat = right.reshape(*shape, n, -1), out.reshape(*shape, n, -1)
        # Few columns at once: large new arrays take longer than what is computed.
        width = max(1, _COLUMNS // n)
        for place in np.ndindex(shape):
            for first in range(0, rows.shape[-1], width):
                some = np.s_[:, first : first + width]
                flat[place][some] -= self._links @ rows[place][some]
        return out

    def curve(self, right: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """K·right, shape (…, n·p, m)."""
        return self._times(self.blocks, right, out)

    @cached_property
    def matrix(self) -> np.ndarray:
        """K, shape (n·p, n·p)."""
        return self.curve(np.eye(self.size))

    @cached_property
    def hessian(self) -> np.ndarray:
        """H, shape (n·p, n·p)."""
        return self._times(self.objective, np.eye(self.size))

    @cached_property
    def degrees(self) -> np.ndarray:
        """D_ii, shape (n,)."""
        return np.asarray(self.weights.sum(axis=1)).ravel()

    @cached_property
    def _near(self) -> tuple[np.ndarray, np.ndarray]:
        """Neighbours of each agent and their weights, shape (n, most); filled up with itself, of weight zero."""
        counts = np.diff(self.weights.indptr)
        places = np.arange(counts.max()) < counts[:, None]
        near = np.repeat(np.arange(self.agents)[:, None], counts.max(), axis=1)
        weights = np.zeros(near.shape)
        near[places], weights[places] = self.weights.indices, self.weights.data
        return near, weights

    def near_sums(self, rows: np.ndarray, agents: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Σ_j W_ij·X_bj for some pairs of b and i, shape (…, n, p, m) by b to (pairs, p, m)."""
        near, weights = self._near[0][agents], self._near[1][agents]
        around = X[rows[:, None], near].reshape(*near.shape, -1)
        return np.asarray((weights[:, None, :] @ around)[:, 0].reshape(len(rows), *X.shape[2:]))

    def gaps(self, away: np.ndarray) -> np.ndarray:
        """Half of vᵀ·H·v of each column v, shape (…, n, p, m) to (…, m)."""
        flat = away.reshape(*away.shape[:-3], self.size, -1)
        return np.asarray(np.einsum("...sm,...sm->...m", flat, self._times(self.objective, flat)) / 2)

    def gap(self, away: np.ndarray) -> float:
        """Q_L − Q_L* at Θ* + away, shape (n, p)."""
        return float(self.gaps(away[:, :, None])[0])

    def traces(self, matrix: np.ndarray) -> np.ndarray:
        """Traces of the diagonal blocks, shape (n,)."""
        return np.asarray(matrix.diagonal().reshape(self.start.shape).sum(axis=1))

    def dual(self, Q: np.ndarray) -> np.ndarray:
        """Σ γ_i·A_iᵀQA_i, shape (…, n·p, n·p), of symmetric Q."""
        return np.asarray(Q - self.dual_change(Q))

    def dual_change(
        self, Q: np.ndarray, out: np.ndarray | None = None, spare: np.ndarray | None = None
    ) -> np.ndarray:
        """Q less its dual: KX + (KX)ᵀ, with X of `half_change`.

        In ``out`` and by way of ``spare``, arrays like Q, where these are given.
        """
        out, spare = (np.empty_like(Q) if array is None else array for array in (out, spare))
        moved = self.curve(self.half_change(Q, out, spare), spare)
        return np.add(moved, np.swapaxes(moved, -1, -2), out=out)

    def half_change(self, Q: np.ndarray, out: np.ndarray, spare: np.ndarray) -> np.ndarray:
        """X = GQ − ½BK, G = diag(γ_i·a_i) and B = diag(γ_i·a_i²·Q_ii), in ``out``, by way of ``spare``."""
        n, p = self.start.shape
        rate, each, whole = self.chance * self.step, np.arange(n), (*Q.shape[:-2], n, p, n, p)
        halves = (rate * self.step / 2)[:, None, None] * np.einsum("...ipiq->...ipq", Q.reshape(whole))
        X, W = out.reshape(whole), self._full_weights
        np.multiply(rate[:, None, None, None], Q.reshape(whole), out=X)
        if self.weights.nnz < _FULL * W.size:
            # BK has B_iK_ii on its diagonal, and −W_ij·B_i elsewhere.
            i, j = W.nonzero()
            X[..., each, :, each, :] -= np.moveaxis(halves @ self.blocks, -3, 0)
            X[..., i, :, j, :] += np.moveaxis(W[i, j][:, None, None] * halves[..., i, :, :], -3, 0)
        else:
            np.matmul(halves, self.matrix.reshape(n, p, -1), out=spare.reshape(*Q.shape[:-2], n, p, -1))
            out -= spare
        return out

    @cached_property
    def _full_weights(self) -> np.ndarray:
        return np.asarray(self.weights.toarray())

    def primal(self, S: np.ndarray) -> np.ndarray:
        """Σ γ_i·A_i·S·A_iᵀ, shape (n·p, n·p), of symmetric S."""
        return np.asarray(S - self.primal_change(S))

    def primal_change(
        self, S: np.ndarray, out: np.ndarray | None = None, spare: np.ndarray | None = None
    ) -> np.ndarray:
        """S less its primal: GKS + (GKS)ᵀ − diag(γ_i·a_i²·[KSK]_ii); see `dual_change`."""
        n, p = self.start.shape
        out = np.empty_like(S) if out is None else out
        rate = self.chance * self.step
        pulled = self.curve(S, spare).reshape(n, p, n, p)
        each = np.arange(n)
        # [KSK]_ii = (KS)_i:·K_:i. Made symmetric: what rounding leaves of asymmetry would grow from step to step.
        twice = pulled[each, :, each, :] @ self.blocks - np.einsum("ij,ipjq->ipq", self._full_weights, pulled)
        twice = (twice + np.swapaxes(twice, 1, 2)) / 2
        pulled *= rate[:, None, None, None]
        flat = pulled.reshape(S.shape)
        np.add(flat, flat.T, out=out)
        out.reshape(n, p, n, p)[each, :, each, :] -= (rate * self.step)[:, None, None] * twice
        return out

    def mean(self, z: np.ndarray) -> np.ndarray:
        """E[z] after a wake, shape (n, p): (I − GK)z."""
        moved = self.curve(z.reshape(-1, 1)).reshape(z.shape)
        return np.asarray(z - (self.chance * self.step)[:, None] * moved)

    @cached_property
    def spread(self) -> float:
        """Width w: the eigenvalues of both maps lie between 1 − w and 1; infinite where they may not.

        In the coordinates K^{1/2}z the map A_i is the symmetric I − P_i, P_i = a_i·K^{1/2}E_iK^{1/2}, of eigenvalues in
        [0, 1] if a_i·λ_max(K_ii) ≤ 1. Then Σγ_i(I − P_i)⊗(I − P_i) ≥ I − S⊗I − I⊗S, S = Σγ_iP_i. The eigenvalues of S
        are those of GK, at most the largest sum of the norms of the blocks in one of its rows. The largest is looked
        for by Lanczos's method, which comes close to it from below, and is taken a little larger.
        """
        from scipy.sparse.linalg import LinearOperator, eigsh

        peaks = np.linalg.eigvalsh(self.blocks)[:, -1]
        if (self.step * peaks > 1 + 1e-12).any():
            return np.inf
        rates = self.chance * self.step
        roots = np.repeat(np.sqrt(rates), self.start.shape[1])

        def times(z: np.ndarray) -> np.ndarray:
            return np.asarray(roots * self.curve((roots * z.ravel())[:, None])[:, 0])

        S = LinearOperator((self.size, self.size), matvec=times, dtype=float)
        first = np.random.default_rng(0).normal(size=self.size)
        largest = eigsh(S, 1, which="LA", v0=first, tol=_CLOSE / 10, return_eigenvectors=False)[0]
        return min(1.0, 2 * float((rates * (peaks + self.degrees)).max()), 2 * float(largest) * (1 + _CLOSE))


def linear_descent(
    weights: Any,
    pull: np.ndarray,
    alpha: np.ndarray,
    curvature: np.ndarray,
    start: np.ndarray,
    optimum: np.ndarray,
    chance: np.ndarray | None = None,
    jacobian: np.ndarray | None = None,
    rest: np.ndarray | None = None,
    start_covariance: np.ndarray | None = None,
) -> LinearDescent:
    """Maps of coordinate descent.

    Parameters
    ----------
    weights : csr_array, shape (n, n)
        W.
    pull : ndarray, shape (n,)
        μ·D_ii·c_i.
    alpha : ndarray, shape (n,)
        α_i in (0, 1).
    curvature : ndarray, shape (n, p, p)
        ∇²L_i, regulariser included: 2·XᵀX/m_i + 2λ_i·I for the squared loss.
    start, optimum : ndarray, shape (n, p)
        Θ(0) and Θ*.
    chance : ndarray, shape (n,), optional
        γ_i; equal when left out.
    jacobian : ndarray, shape (n, p, p), optional
        Of what agents release of ∇L_i, where clipping makes it another than ∇²L_i.
    rest : ndarray, shape (n, p), optional
        Θ∘; Θ* when left out.
    start_covariance : ndarray, shape (n, n), optional
        Of the noise of the first models; none when left out.
    """
    n, p = start.shape
    degrees = np.asarray(weights.sum(axis=1)).ravel()
    ties = degrees[:, None, None] * np.eye(p)
    at = optimum if rest is None else rest
    objective = ties + pull[:, None, None] * curvature
    return LinearDescent(
        chance=np.full(n, 1 / n) if chance is None else np.asarray(chance, dtype=float),
        step=alpha / degrees,
        noise_step=alpha * pull / degrees,
        weights=weights,
        blocks=objective if jacobian is None else ties + pull[:, None, None] * jacobian,
        objective=objective,
        start=start - at,
        offset=at - optimum,
        start_covariance=np.zeros((n, n)) if start_covariance is None else start_covariance,
    )


#: From this share of all entries on a dense product takes less time.
_DENSE = 0.1


def dense_where_full(matrix: Any) -> Any:
    """A square csr_array, or the same as an ndarray where at least a tenth of its entries are given."""
    n = matrix.shape[0]
    return matrix.toarray() if matrix.nnz >= _DENSE * n * n else matrix
