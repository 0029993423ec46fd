"""Synchronous rounds (W Algorithms 1 and 2) as random affine maps, and moments of the model and of its running average.

Owners' answers are taken to be affine. W is Wu, Farokhi, Smith, Kaafar, "The Value of Collaboration in Convex Machine
Learning with Differential Privacy". A round moves θ against

    ∇g(θ) + Σ_l (n_l/n)·(Y_l/v_l)·(2(A_l·θ − b_l) + w_l),

Y_l is one if owner l answers in time, with probability q_l, independently of all else; v_l makes up for those who do
not; `answering` gives first and second moments of the multipliers Y_l/v_l. Where all answer, noise and direction share
eigenvectors, and coordinates along them do not mix: p modes of one coordinate. Else there is one mode of p.

`walk` gives first and second moments of a model that moves in rounds, and of its running average. With z = θ − θ*,
round k makes

    z' = z − s_k·(D z + d + Σ_l B_l·(G_l z + g_l) + noise),    z̄' = a_k·z̄ + (1 − a_k)·(z or z'),

D, d the expected direction and B_l independent of everything before, of mean 0 and variance 1. So, with m = E z and
M = I − s_k·D,

    m' = M m − s_k·d,
    Cov z' = M (Cov z) Mᵀ + s_k² (Σ_l G_l (Cov z) G_lᵀ + Σ_l (G_l m + g_l)(G_l m + g_l)ᵀ + noise),
    Cov(z', z̄) = M Cov(z, z̄).

The covariance is linear in what feeds it: each source (chance, and the noise of owners with the same history of
variances) has a covariance of its own, and they add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from p2psim.theory.forecasts.linear_star import Quadratic
from p2psim.theory.forecasts.statistics import alike_rows

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
        return np.asarray(self.scatter @ np.swapaxes(each, 2, 3).reshape(J, m, G * q, q))

    def thrown(self, z: np.ndarray) -> np.ndarray:
        """Σ_l (G_l·z + g_l)(G_l·z + g_l)ᵀ, shape (m, q, q)."""
        m, q = z.shape
        each = self.scatter.reshape(m, q, len(self.scatter_push), q)
        away = np.einsum("mqgr,mr->gmq", each, z) + self.scatter_push
        return np.einsum("gmq,gmr->mqr", away, away)


def rounds(statistics: Quadratic, present: np.ndarray | None = None, reweight: Reweight = "none") -> Rounds:
    """Map of a round, from a first model of zero, as in W.

    Parameters
    ----------
    statistics : Quadratic
    present : ndarray, shape (N,), optional
        q_l in (0, 1], the probability that owner l answers in a round; 1 when left out.
    reweight : {"none", "known", "answered"}
        What answers are divided by: 1, q_l, or the share of the records of those who answer in the round.

    Raises
    ------
    ValueError
        If a probability is not in (0, 1].
    """
    N, p = statistics.moment.shape
    chance = np.ones(N) if present is None else np.asarray(present, dtype=float)
    optimum = statistics.optimum
    # ∇ of owner l's part is 2·share·(A_l z + A_l θ* − b_l).
    turn = 2 * statistics.shares[:, None, None] * statistics.gram
    away = turn @ optimum - 2 * statistics.shares[:, None] * statistics.moment
    # Owners that are alike enter by the sum of their multipliers alone.
    kinds, first = alike_rows(np.column_stack([turn.reshape(N, -1), away, chance, statistics.shares]))
    moments = answering(chance[first], statistics.shares[first], reweight, np.bincount(kinds))
    mean = moments.mean[kinds]
    drift = 2 * statistics.l2 * np.eye(p) + np.tensordot(mean, turn, 1)
    push = 2 * statistics.l2 * optimum + mean @ away
    begin = 0.0 - optimum  # no negative zero
    noise_factors = statistics.shares**2 * moments.square[kinds]
    if (chance < 1).any():
        basis, modes = np.eye(p), 1
        mixed = _uncorrelated(moments.covariance)
        wide = np.swapaxes(np.tensordot(mixed, turn[first], 1), 0, 1).reshape(1, p, -1)
        scatter, scatter_push = np.ascontiguousarray(wide), (mixed @ away[first])[:, None]
        maps = drift[None], statistics.hessian[None]
    else:
        values, basis = np.linalg.eigh(drift)
        weight = np.diagonal(basis.T @ statistics.hessian @ basis)
        push, begin, modes = push @ basis, begin @ basis, p
        scatter, scatter_push = np.zeros((p, 1, 0)), np.zeros((0, p, 1))
        maps = values[:, None, None], weight[:, None, None]
    push, begin = push.reshape(modes, -1), begin.reshape(modes, -1)
    return Rounds(basis, maps[0], push, begin, maps[1], scatter, scatter_push, noise_factors)


def _uncorrelated(covariance: np.ndarray) -> np.ndarray:
    """Rows R with RᵀR the covariance, shape (G, N): combinations of owners, less those without variance."""
    if not (covariance - np.diag(np.diagonal(covariance))).any():
        rows: np.ndarray = np.sqrt(np.maximum(covariance, 0.0))
    else:
        values, vectors = np.linalg.eigh(covariance)
        rows = np.sqrt(np.where(values > _ROUNDING * values[-1], values, 0.0))[:, None] * vectors.T
    return rows[rows.any(axis=1)]


#: What makes up for missing answers: nothing, the known chance to answer, or the share of the records that answered.
Reweight = Literal["none", "known", "answered"]

#: Width of a trapezoid, in ln t. The error of the rule is of the order of exp(−π²/width): 4e-22.
_WIDTH = 0.2
#: exp(−45) = 3e-20 is no more.
_NOTHING = 45.0


@dataclass(frozen=True)
class AnswerMoments:
    """Of the multipliers Y_l/v_l of W's sum Σ_l (n_l/n)·Q̄_l: Y_l is one if owner l answers, else 0.

    Attributes
    ----------
    mean : ndarray, shape (K,)
        Of an owner of each kind.
    covariance : ndarray, shape (K, K)
        Of the sums over all owners of a kind.
    square : ndarray, shape (K,)
        Second moment of an owner of each kind, by which the variance of an answer's noise is multiplied.
    """

    mean: np.ndarray
    covariance: np.ndarray
    square: np.ndarray


def answering(
    present: np.ndarray, shares: np.ndarray, reweight: Reweight, members: np.ndarray | None = None
) -> AnswerMoments:
    """Moments where owners answer independently of each other.

    Parameters
    ----------
    present : ndarray, shape (K,)
        Chance q_l in (0, 1] that an owner of each kind answers in a round.
    shares : ndarray, shape (K,)
        n_l/n > 0 of such an owner.
    reweight : {"none", "known", "answered"}
        v_l is 1, q_l, or S = Σ Y_l·n_l/n of the round (no answers at all are a sum of 0).
    members : ndarray of int, shape (K,), optional
        Owners of each kind; one of each when left out.

    Raises
    ------
    ValueError
        If a probability is not in (0, 1].
    """
    q = np.asarray(present, dtype=float)
    count = np.ones(q.size) if members is None else members
    if not ((q > 0) & (q <= 1)).all():
        raise ValueError(f"probabilities to answer must be above 0 and at most 1, got {q}")
    if reweight == "none" or (q == 1).all():
        return AnswerMoments(q, np.diag(count * (q * (1 - q))), q)
    if reweight == "known":
        return AnswerMoments(np.ones_like(q), np.diag(count * ((1 - q) / q)), 1 / q)
    return _by_answered(q, np.asarray(shares, dtype=float), count)


def _by_answered(q: np.ndarray, shares: np.ndarray, count: np.ndarray) -> AnswerMoments:
    """E[Y_l/S] = ∫ E[Y_l·exp(−tS)] dt and E[Y_l·Y_m/S²] = ∫ t·E[Y_l·Y_m·exp(−tS)] dt over t > 0.

    Expectations are products over owners. With x = ln t the trapezoidal rule converges exponentially, since the
    integrands are entire in t and bounded where Re t > 0.
    """
    x = np.arange(-_NOTHING, np.log(_NOTHING / shares.min()), _WIDTH)
    t = np.exp(x)
    gone = np.exp(-np.outer(t, shares))
    # 1 − q + q·exp(−t·share), and what of it is the answering of an owner.
    each = 1 - q + q * gone
    own = np.divide(q * gone, each, out=np.ones_like(each), where=each > 0)
    logarithms = np.where(each > 0, np.log(np.maximum(each, np.finfo(float).tiny)), -np.inf)
    together = np.exp((count * logarithms).sum(axis=1))
    mean = _WIDTH * (t * together) @ own
    weight = _WIDTH * t**2 * together
    square = weight @ own
    covariance = np.outer(count, count) * ((own * weight[:, None]).T @ own - np.outer(mean, mean))
    # An owner answers together with itself, and with the others of its kind.
    alone, others = square - mean**2, np.diagonal(covariance) / count**2
    np.fill_diagonal(covariance, count * (alone + (count - 1) * others))
    return AnswerMoments(mean, covariance, square)


@dataclass(frozen=True)
class ModelMoments:
    """Of one model, after r = 0 … R rounds.

    Attributes
    ----------
    mean : ndarray, shape (R + 1, p)
        E z.
    spread : ndarray, shape (R + 1, J)
        tr(H·Cov z), source by source: what each adds to E[f] − f*.
    variances : ndarray, shape (R + 1, J, p)
        Variance of each coordinate of z, source by source.
    """

    mean: np.ndarray
    spread: np.ndarray
    variances: np.ndarray


def walk(
    star: Rounds, steps: np.ndarray, kept: np.ndarray, average_new: bool, noise: np.ndarray
) -> tuple[ModelMoments, ModelMoments]:
    """Moments of the model and of its average.

    Parameters
    ----------
    star : Rounds
    steps : ndarray, shape (R,)
        s_k.
    kept : ndarray, shape (R,)
        a_k in [0, 1].
    average_new : bool
        Whether what enters the average is the model after the round; else the one before it.
    noise : ndarray, shape (R, J − 1)
        Variance of a coordinate of the noise of each source but the first, which is chance.

    Raises
    ------
    FloatingPointError
        If a moment is not finite: the steps are too long.
    """
    J = noise.shape[1] + 1
    m, q = star.drift.shape[:2]
    eye = np.eye(q)
    z = star.start
    average = z
    cov = np.zeros((J, m, q, q))  # of z
    cross = np.zeros_like(cov)  # of z with z̄
    cov_average = np.zeros_like(cov)
    models, averages = [_recorded(star, z, cov)], [_recorded(star, z, cov)]
    with np.errstate(over="ignore", invalid="ignore"):
        for k, (s, a) in enumerate(zip(steps, kept, strict=True)):
            pull = eye - s * star.drift
            moved = pull @ cov
            fed = star.scattered(cov)
            fed[0] += star.thrown(z)
            fed[1:] += noise[k][:, None, None, None] * eye
            new = moved @ np.swapaxes(pull, -1, -2) + s**2 * fed
            next_z = (pull @ z[..., None])[..., 0] - s * star.push
            with_old = pull @ cross  # Cov(z', z̄)
            entering, entering_cov = (next_z, new) if average_new else (z, cov)
            met = with_old if average_new else cross
            both = a * (1 - a) * met
            cov_average = a**2 * cov_average + both + np.swapaxes(both, -1, -2) + (1 - a) ** 2 * entering_cov
            cross = a * with_old + (1 - a) * (new if average_new else moved)
            average = a * average + (1 - a) * entering
            z, cov = next_z, new
            models.append(_recorded(star, z, cov))
            averages.append(_recorded(star, average, cov_average))
    return _moments(models), _moments(averages)


def _recorded(star: Rounds, mean: np.ndarray, cov: np.ndarray) -> tuple[np.ndarray, ...]:
    """A row of `ModelMoments`, turned back from modes to coordinates."""
    # Columns of the basis, mode by mode.
    columns = star.basis.reshape(len(star.basis), *star.drift.shape[:2])
    return (
        star.basis @ mean.reshape(-1),
        np.einsum("jmqr,mrq->j", cov, star.weight),
        np.einsum("pmq,jmqr,pmr->jp", columns, cov, columns),
    )


def _moments(rows: list[tuple[np.ndarray, ...]]) -> ModelMoments:
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    if not all(np.isfinite(column).all() for column in columns):
        raise FloatingPointError("moments overflow: the steps are too long for these records")
    return ModelMoments(*columns)
