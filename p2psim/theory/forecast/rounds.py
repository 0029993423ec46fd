"""One round of the synchronous star (W Algorithms 1 and 2) as a random affine map, for squared loss.

W is Wu, Farokhi, Smith, Kaafar, "The Value of Collaboration in Convex Machine Learning with Differential Privacy". A
round moves θ against

    ∇g(θ) + Σ_l (n_l/n)·(Y_l/v_l)·(2(A_l·θ − b_l) + w_l),

Y_l one if owner l answers in time, with probability q_l, independently of all else. v_l is 1, or q_l where answers are
weighted by the inverse of how often they come. Where all answer, noise and H share eigenvectors, and coordinates along
them do not mix: p modes of one coordinate. Else there is one mode of p.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2psim.theory.forecast.local_model import Quadratic


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
        G_l side by side, of the owners that may be missing: by how much an answer's gradient varies with its coming.
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
        """Σ_l G_l·X·G_lᵀ of each X, shape (J, m, q, q); G_l are symmetric."""
        J, m, q, _ = cov.shape
        owners = len(self.scatter_push)
        if owners == 0:
            return np.zeros_like(cov)
        each = (cov @ self.scatter).reshape(J, m, q, owners, q)
        found: np.ndarray = self.scatter @ np.swapaxes(each, 2, 3).reshape(J, m, owners * q, q)
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
    reweighted: bool = False,
    start: np.ndarray | None = None,
) -> Rounds:
    """Map of a round.

    Parameters
    ----------
    statistics : Quadratic
    present : ndarray, shape (N,), optional
        q_l in (0, 1]; 1 when left out.
    reweighted : bool
        Whether answers are divided by q_l.
    start : ndarray, shape (p,), optional
        θ[1]; zero, as in W, when left out.

    Raises
    ------
    ValueError
        If a probability is not in (0, 1].
    """
    N, p = statistics.moment.shape
    chance = np.ones(N) if present is None else np.asarray(present, dtype=float)
    if not ((chance > 0) & (chance <= 1)).all():
        raise ValueError(f"probabilities to answer must be above 0 and at most 1, got {chance}")
    divided = chance if reweighted else np.ones(N)
    optimum = statistics.optimum
    # ∇ of owner l's part is 2·share·(A_l z + A_l θ* − b_l).
    turn = 2 * statistics.shares[:, None, None] * statistics.gram
    away = turn @ optimum - 2 * statistics.shares[:, None] * statistics.moment
    mean = chance / divided
    drift = 2 * statistics.l2 * np.eye(p) + np.tensordot(mean, turn, 1)
    push = 2 * statistics.l2 * optimum + mean @ away
    missing = np.flatnonzero(chance < 1)
    deviation = np.sqrt(chance * (1 - chance)) / divided
    begin = (np.zeros(p) if start is None else np.asarray(start, dtype=float)) - optimum
    noise_factors = statistics.shares**2 * chance / divided**2
    if len(missing):
        wide = np.swapaxes(deviation[missing, None, None] * turn[missing], 0, 1).reshape(1, p, -1)
        thrown = (deviation[missing, None] * away[missing])[:, None]
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
