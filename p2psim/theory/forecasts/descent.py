"""One wake of coordinate descent on a graph (B, section 3) as a random linear map, for squared loss.

With z = Θ − Θ∘, Θ∘ where all agents' updates rest, agent i wakes with probability γ_i, independently of the past, and

    z_i ← z_i − a_i·(K z)_i + s_i·η,    all else stays,    a_i = α_i/D_ii,    s_i = −α_i·μ·c_i,

K the Hessian of what updates descend: blocks K_ii = D_ii·I + μ·D_ii·c_i·∇²L_i and K_ij = −W_ij·I. Every agent's
neighbours know its newest model: no delay and no loss is in it. Without clipping Θ∘ is Θ*, and K the Hessian H of Q_L.

Second moments walk backwards or forwards by two maps, each the other's adjoint: with A_i = I − a_i·E_i·K, E_i the
projector on block i,

    dual: Q ← Σ γ_i·A_iᵀQA_i,    primal: S ← Σ γ_i·A_i·S·A_iᵀ.

A wake touches one block row, so either is one product with K and terms that are cheap beside it. Powers of the maps are
sums of Chebyshev polynomials of them: see `p2psim.theory.forecasts.descent_path`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from p2psim.core.compiled import njit, unwritten

#: Share by which the largest eigenvalue is taken larger than its estimate.
_CLOSE = 1e-3

#: Size of the state below which all steps are fast; and iterations of a method of Lanczos.
_FEW, _TRIES = 20, 100

#: Numbers of a row of models that are added up at once: those of all agents stay in a cache.
_COLUMNS = 512
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
    def links(self) -> tuple[np.ndarray, ...]:
        """W as compressed rows, for kernels: where each begins, whose weights they are, and these."""
        W = self.weights
        return (
            unwritten(W.indptr.astype(np.int64)),
            unwritten(W.indices.astype(np.int64)),
            unwritten(1.0 * W.data),
        )

    def _times(self, blocks: np.ndarray, right: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """(diag(blocks) − W ⊗ I)·right, shape (…, n·p, m)."""
        n, p = self.start.shape
        out = np.empty(right.shape) if out is None else out  # in rows, for views of it
        right = np.ascontiguousarray(right)
        np.matmul(
            blocks, right.reshape(*right.shape[:-2], n, p, -1), out=out.reshape(*right.shape[:-2], n, p, -1)
        )
        shape = -1, n, right.shape[-1] * p
        _less_neighbours(*self.links, unwritten(right.reshape(shape)), out.reshape(shape))
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
        """Σ γ_i·A_iᵀQA_i, shape (…, n·p, n·p), of symmetric Q: Q less KX + (KX)ᵀ, with X of `half_change`."""
        X = self.half_change(Q, np.empty_like(Q), np.empty_like(Q))
        moved = self.curve(X)
        return np.asarray(Q - moved - np.swapaxes(moved, -1, -2))

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
        """Σ γ_i·A_i·S·A_iᵀ, shape (n·p, n·p), of symmetric S: S less GKS + (GKS)ᵀ − diag(γ_i·a_i²·[KSK]_ii)."""
        n, p = self.start.shape
        rate, pulled, each = self.chance * self.step, self.curve(S), np.arange(n)
        twice = self.curve(np.ascontiguousarray(pulled.T)).reshape(n, p, n, p)[each, :, each, :]
        moved = np.repeat(rate, p)[:, None] * pulled
        result = np.asarray(S - moved - moved.T)
        result.reshape(n, p, n, p)[each, :, each, :] += (rate * self.step)[:, None, None] * twice
        return result

    def mean(self, z: np.ndarray) -> np.ndarray:
        """E[z] after a wake, shape (n, p): (I − GK)z."""
        return np.asarray(
            z - (self.chance * self.step)[:, None] * (self._sparse @ z.ravel()).reshape(z.shape)
        )

    @cached_property
    def _sparse(self) -> Any:
        """K as a sparse matrix, which is faster for single vectors."""
        from scipy.sparse import block_diag, csr_array, eye_array, kron

        own = block_diag([csr_array(block) for block in self.blocks], format="csr")
        return csr_array(own - kron(self.weights, eye_array(self.start.shape[1]), format="csr"))

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

    @cached_property
    def least(self) -> float:
        """A number a ≥ 0: the eigenvalues of both maps are at most 1 − a.

        With P_i as of `spread`, P_i⊗P_i ≤ ½(P_i²⊗I + I⊗P_i²), since (P_i⊗I − I⊗P_i)² ≥ 0. So the map is at most
        I − S⊗I − I⊗S, S = Σγ_i(P_i − ½P_i²), and a is twice the least eigenvalue of S: that of RᵀKR with blocks
        R_iR_iᵀ = γ_i(a_i·I − ½a_i²·K_ii). Lanczos's method comes close to it from above; it is taken a little smaller.
        """
        from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

        n, p = self.start.shape
        if not np.isfinite(self.spread) or self.size < _FEW:
            return 0.0
        rates, steps = (self.chance * self.step)[:, None, None], self.step[:, None, None]
        roots = np.linalg.cholesky(rates * (np.eye(p) - steps * self.blocks / 2))

        def times(z: np.ndarray) -> np.ndarray:
            right = (roots @ z.reshape(n, p, 1)).reshape(-1, 1)
            return np.asarray((np.swapaxes(roots, 1, 2) @ self.curve(right).reshape(n, p, 1)).ravel())

        S = LinearOperator((self.size, self.size), matvec=times, dtype=float)
        first = np.random.default_rng(1).normal(size=self.size)
        try:
            (least,) = eigsh(
                S, 1, which="SA", v0=first, tol=_CLOSE, maxiter=_TRIES, return_eigenvectors=False
            )
        except ArpackError:
            return 0.0
        return max(0.0, 2 * float(least) * (1 - 10 * _CLOSE))


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


def refuse_infinite(diagonal: np.ndarray) -> None:
    """Refuse a walk that has grown too far.

    Raises
    ------
    FloatingPointError
    """
    if not np.isfinite(diagonal).all():
        raise FloatingPointError("second moments grow beyond all numbers")


@njit()
def _less_neighbours(starts, others, weights, right, out):  # type: ignore[no-untyped-def]
    """Take Σ_j W_ij·right_j from out_i, of all matrices (matrices, n, columns); four neighbours at once."""
    columns = right.shape[2]
    for b in range(right.shape[0]):
        for first in range(0, columns, _COLUMNS):
            last = min(first + _COLUMNS, columns)
            for i in range(right.shape[1]):
                row, e, end = out[b, i, first:last], starts[i], starts[i + 1]
                while e + 4 <= end:
                    u, v, w, x = weights[e], weights[e + 1], weights[e + 2], weights[e + 3]
                    at_u, at_v = right[b, others[e], first:last], right[b, others[e + 1], first:last]
                    at_w, at_x = right[b, others[e + 2], first:last], right[b, others[e + 3], first:last]
                    for c in range(last - first):
                        row[c] -= u * at_u[c] + v * at_v[c] + w * at_w[c] + x * at_x[c]
                    e += 4
                while e < end:
                    u, at_u = weights[e], right[b, others[e], first:last]
                    for c in range(last - first):
                        row[c] -= u * at_u[c]
                    e += 1
