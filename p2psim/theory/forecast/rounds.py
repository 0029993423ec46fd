"""One round of the synchronous star (W Algorithms 1 and 2) as a random affine map, for owners with affine answers.

W is Wu, Farokhi, Smith, Kaafar, "The Value of Collaboration in Convex Machine Learning with Differential Privacy". A
round moves θ against

    ∇g(θ) + Σ_l (n_l/n)·(Y_l/v_l)·(2(A_l·θ − b_l) + w_l),

Y_l one if owner l answers in time, with probability q_l, independently of all else; v_l makes up for those who do not,
as `p2psim.theory.forecast.answering` says. Where all answer, noise and direction share eigenvectors, and coordinates
along them do not mix: p modes of one coordinate. Else there is one mode of p.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2psim.theory.forecast.answering import Reweight, answering
from p2psim.theory.forecast.local_model import Quadratic

#: Variances of multipliers below this, relative to the largest, are of rounding.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class Rounds:
    """The map, in m modes of q coordinates, m·q = p.

    Attributes
    ----------
    basis : ndarray, shape (p, p)
        Orthogonal; its columns are the coordinates that modes are made of.
    drift : ndarray, shape (m, q, q)
        D: the expected direction at z = θ − θ* is D z + d.
    push : ndarray, shape (m, q)
        d.
    start : ndarray, shape (m, q)
        First z.
    weight : ndarray, shape (m, q, q)
        Blocks of H.
    scatter : ndarray, shape (m, q, G·q)
        G_l side by side, symmetric: by how much the direction varies with who answers. Chance is made of G variables
        without correlation, of mean 0 and variance 1.
    scatter_push : ndarray, shape (G, m, q)
        g_l.
    noise_factors : ndarray, shape (N,)
        By what the variance of a coordinate of owner l's noise is multiplied in the direction.
    """

    basis: np.ndarray
    drift: np.ndarray
    push: np.ndarray
    start: np.ndarray
    weight: np.ndarray
    scatter: np.ndarray
    scatter_push: np.ndarray
    noise_factors: np.ndarray

    def scattered(self, cov: np.ndarray) -> np.ndarray:
        """Σ_l G_l·X·G_lᵀ of each X, shape (J, m, q, q)."""
        J, m, q, _ = cov.shape
        G = len(self.scatter_push)
        if G == 0:
            return np.zeros_like(cov)
        each = (cov @ self.scatter).reshape(J, m, q, G, q)
        found: np.ndarray = self.scatter @ np.swapaxes(each, 2, 3).reshape(J, m, G * q, q)
        return found

    def thrown(self, z: np.ndarray) -> np.ndarray:
        """Σ_l (G_l·z + g_l)(G_l·z + g_l)ᵀ, shape (m, q, q)."""
        m, q = z.shape
        each = self.scatter.reshape(m, q, len(self.scatter_push), q)
        away = np.einsum("mqgr,mr->gmq", each, z) + self.scatter_push
        return np.einsum("gmq,gmr->mqr", away, away)


def rounds(
    statistics: Quadratic,
    present: np.ndarray | None = None,
    reweight: Reweight = "none",
    start: np.ndarray | None = None,
) -> Rounds:
    """Map of a round.

    Parameters
    ----------
    statistics : Quadratic
    present : ndarray, shape (N,), optional
        q_l in (0, 1], the probability that owner l answers in a round; 1 when left out.
    reweight : {"none", "known", "answered"}
        What answers are divided by: 1, q_l, or the share of the records of those who answer in the round.
    start : ndarray, shape (p,), optional
        θ[1]; zero, as in W, when left out.

    Raises
    ------
    ValueError
        If a probability is not in (0, 1].
    """
    N, p = statistics.moment.shape
    chance = np.ones(N) if present is None else np.asarray(present, dtype=float)
    moments = answering(chance, statistics.shares, reweight)
    optimum = statistics.optimum
    # ∇ of owner l's part is 2·share·(A_l z + A_l θ* − b_l).
    turn = 2 * statistics.shares[:, None, None] * statistics.gram
    away = turn @ optimum - 2 * statistics.shares[:, None] * statistics.moment
    drift = 2 * statistics.l2 * np.eye(p) + np.tensordot(moments.mean, turn, 1)
    push = 2 * statistics.l2 * optimum + moments.mean @ away
    begin = (np.zeros(p) if start is None else np.asarray(start, dtype=float)) - optimum
    noise_factors = statistics.shares**2 * moments.square
    if (chance < 1).any():
        first, covariance = _together(np.column_stack([turn.reshape(N, -1), away]), moments.covariance)
        mixed = _uncorrelated(covariance)
        wide = np.swapaxes(np.tensordot(mixed, turn[first], 1), 0, 1).reshape(1, p, -1)
        thrown = (mixed @ away[first])[:, None]
        return Rounds(
            np.eye(p),
            drift[None],
            push[None],
            begin[None],
            statistics.hessian[None],
            np.ascontiguousarray(wide),
            thrown,
            noise_factors,
        )
    values, basis = np.linalg.eigh(drift)
    weight = np.diagonal(basis.T @ statistics.hessian @ basis)
    return Rounds(
        basis,
        values[:, None, None],
        (push @ basis)[:, None],
        (begin @ basis)[:, None],
        weight[:, None, None],
        np.zeros((p, 1, 0)),
        np.zeros((0, p, 1)),
        noise_factors,
    )


def _together(alike: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One of each kind of owners who are alike, shape (G,), and the covariance of the kinds' sums, shape (G, G).

    Owners whose rows are the same enter by the sum of their multipliers alone.
    """
    _, first, kinds = np.unique(alike, axis=0, return_index=True, return_inverse=True)
    kinds = kinds.reshape(-1)
    if first.size == kinds.size:
        return np.arange(kinds.size), covariance
    order = np.argsort(kinds, kind="stable")
    begins = np.searchsorted(kinds[order], np.arange(first.size))
    by_kind = np.add.reduceat(covariance[order], begins, axis=0)
    return first, np.add.reduceat(by_kind[:, order], begins, axis=1)


def _uncorrelated(covariance: np.ndarray) -> np.ndarray:
    """Rows R with RᵀR the covariance, shape (G, N): combinations of owners, less those without variance."""
    if not (covariance - np.diag(np.diagonal(covariance))).any():
        rows: np.ndarray = np.sqrt(covariance)
    else:
        values, vectors = np.linalg.eigh(covariance)
        rows = np.sqrt(np.where(values > _ROUNDING * values[-1], values, 0.0))[:, None] * vectors.T
    return rows[rows.any(axis=1)]
