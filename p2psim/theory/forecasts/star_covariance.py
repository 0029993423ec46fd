"""Covariance of the star's model, walking forwards: it needs the noise, and gives what `star_dual` does not.

With S = E zzᵀ by blocks, Z_i = (S_LL + S_Li + S_iL + S_ii)/4 and m̄_i = (m_L + m_i)/2, an answer of owner i makes, in
expectation, S_LL into a²Z_i + a(m̄_i·e_Lᵀ + e_L·m̄_iᵀ) + e_L·e_Lᵀ, and likewise for the other blocks.
"""

from __future__ import annotations

import numpy as np

from p2psim.theory.forecasts.linear_star import LinearStar


def covariances(star: LinearStar, variances: np.ndarray) -> np.ndarray:
    """Covariance of θ_L after k = 0 … T answers, shape (T + 1, p, p).

    Parameters
    ----------
    star : LinearStar
        Of one mode: modes that do not mix still vary together, since they share the order of the answers.
    variances : ndarray, shape (T, N)
        Variance of a coordinate of the noise of an answer, if the k-th answer is owner i's.

    Raises
    ------
    ValueError
        If there is more than one mode.
    """
    if len(star.start) > 1:
        raise ValueError("covariances between modes are wanted too: make the star with together=True")
    m, _, q = star.own_shift.shape
    N, a, e_L = len(star.classes), star.decay, star.learner_shift
    own, e = star.own[:, star.classes], star.own_shift[:, star.classes]
    gamma = star.chance[star.classes]
    g1, g2 = gamma[:, None], gamma[:, None, None]
    learner, owner = star.start, np.repeat(star.start[:, None], N, axis=1)
    both = np.einsum("mq,mr->mqr", learner, learner)
    cross = np.tile(both, (1, 1, N))
    square = np.tile(both, (1, N, N))
    diagonal, eye = np.arange(N), np.eye(q)
    pulls = np.ascontiguousarray(g2 * own / 2)
    stays = (0.5 - gamma)[:, None, None] * eye
    found = [both - both]

    def outer(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return x[..., :, None] * y[..., None, :]

    for variance in variances:
        rows = square.reshape(m, N, q, N * q)
        mine = np.swapaxes(cross.reshape(m, q, N, q), 1, 2)  # S_Li
        alone = square.reshape(m, N, q, N, q)[:, diagonal, :, diagonal].swapaxes(0, 1)  # S_ii
        Z = (both[:, None] + mine + np.swapaxes(mine, -1, -2) + alone) / 4
        middle = (learner[:, None] + owner) / 2
        moved = (own @ middle[..., None])[..., 0]
        MZ = own @ Z
        noise = (variance * star.noise_steps**2)[:, None, None] * eye
        new_alone = MZ @ np.swapaxes(own, -1, -2) + outer(moved, e) + outer(e, moved) + outer(e, e) + noise
        new_mine = (
            a * np.swapaxes(MZ, -1, -2)
            + a * outer(middle, e)
            + outer(np.broadcast_to(e_L[:, None], e.shape), moved + e)
        )
        # When another owner answers, z_L comes from it and z_i stays.
        others = a * cross / 2 + a * np.einsum("l,mlqr->mqr", gamma, rows) / 2
        others += e_L[..., None] * owner.reshape(m, 1, N * q)
        without = np.swapaxes(others.reshape(m, q, N, q), 1, 2) - g2 * (
            a * (mine + alone) / 2 + outer(np.broadcast_to(e_L[:, None], e.shape), owner)
        )
        half = pulls @ (cross[:, None] + rows) + stays @ rows
        half += (g1 * e)[..., None] * owner.reshape(m, 1, 1, N * q)
        half = half.reshape(m, N * q, N * q)
        square = half + np.swapaxes(half, 1, 2)
        square.reshape(m, N, q, N, q)[:, diagonal, :, diagonal] = (
            g2 * new_alone + (1 - g2) * alone
        ).swapaxes(0, 1)
        shifted = outer(middle, np.broadcast_to(e_L[:, None], e.shape))
        new_both = a**2 * Z + a * (shifted + np.swapaxes(shifted, -1, -2)) + outer(e_L, e_L)[:, None]
        both = np.einsum("i,miqr->mqr", gamma, new_both)
        cross = np.swapaxes(g2 * new_mine + without, 1, 2).reshape(m, q, N * q)
        learner = a * np.einsum("i,miq->mq", gamma, middle) + e_L
        owner = g1 * (moved + e) + (1 - g1) * owner
        found.append(both - outer(learner, learner))
    return np.array(found)[:, 0]
