"""First and second moments of a model that moves in rounds, and of its running average.

With z = θ − θ*, round k makes

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

import numpy as np

from p2psim.theory.forecast.rounds import Rounds


@dataclass(frozen=True)
class Moments:
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
    star: Rounds,
    steps: np.ndarray,
    kept: np.ndarray,
    average_new: bool,
    noise: np.ndarray,
) -> tuple[Moments, Moments]:
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
    R, J = len(steps), noise.shape[1] + 1
    m, q = star.drift.shape[:2]
    eye = np.eye(q)
    z = star.start
    average = z
    cov = np.zeros((J, m, q, q))  # of z
    cross = np.zeros_like(cov)  # of z with z̄
    cov_average = np.zeros_like(cov)
    found = [_Record(star, R, J) for _ in range(2)]
    for record in found:
        record.put(0, z, cov)
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
            found[0].put(k + 1, z, cov)
            found[1].put(k + 1, average, cov_average)
    return found[0].made(), found[1].made()


class _Record:
    """Moments as they come, turned back from modes to coordinates."""

    def __init__(self, star: Rounds, rounds: int, sources: int):
        self._star = star
        p = len(star.basis)
        self._mean = np.empty((rounds + 1, p))
        self._spread = np.empty((rounds + 1, sources))
        self._variances = np.empty((rounds + 1, sources, p))
        m, q = star.drift.shape[:2]
        # Columns of the basis, mode by mode.
        self._columns = star.basis.reshape(p, m, q)

    def put(self, row: int, mean: np.ndarray, cov: np.ndarray) -> None:
        self._mean[row] = self._star.basis @ mean.reshape(-1)
        self._spread[row] = np.einsum("jmqr,mrq->j", cov, self._star.weight)
        self._variances[row] = np.einsum("pmq,jmqr,pmr->jp", self._columns, cov, self._columns)

    def made(self) -> Moments:
        for values in (self._mean, self._spread, self._variances):
            if not np.isfinite(values).all():
                raise FloatingPointError("moments overflow: the steps are too long for these records")
        return Moments(self._mean, self._spread, self._variances)
