"""Expected models of the linear star: noise does not move them, and they need no second moments."""

from __future__ import annotations

import numpy as np

from p2psim.theory.forecast.linear_star import LinearStar


def mean_path(star: LinearStar, steps: int) -> np.ndarray:
    """E[z_L] along the coordinates of the modes, shape (T + 1, m, q)."""
    learner = star.start
    owner = np.repeat(learner[:, None], len(star.members), axis=1)
    found = [learner]
    share, gamma = star.members * star.chance, star.chance[:, None]
    for _ in range(steps):
        middle = (learner[:, None] + owner) / 2
        learner = star.decay * np.einsum("g,mgq->mq", share, middle) + star.learner_shift
        owner = gamma * ((star.own @ middle[..., None])[..., 0] + star.own_shift) + (1 - gamma) * owner
        found.append(learner)
    return np.array(found)


def mean_limit(star: LinearStar) -> np.ndarray:
    """Fixed point of the mean, shape (m, q); NaN where the mean does not tend to it.

    θ̄_i = (I − M_i/2)⁻¹(z_L + e_i)/2 at rest, and z_L = a·Σγ_i·θ̄_i + e_L.
    """
    m, _, q = star.own_shift.shape
    share = star.members * star.chance
    inverse = np.linalg.inv(np.eye(q) - star.own / 2) / 2
    system = np.eye(q) - star.decay * np.einsum("g,mgqr->mqr", share, inverse)
    pushed = (inverse @ star.own_shift[..., None])[..., 0]
    right = star.decay * np.einsum("g,mgq->mq", share, pushed) + star.learner_shift
    if not _mean_is_stable(star):
        return np.full((m, q), np.nan)
    limit: np.ndarray = np.linalg.solve(system, right[..., None])[..., 0]
    return limit


def _mean_is_stable(star: LinearStar) -> bool:
    m, G, q = star.own_shift.shape
    size = (G + 1) * q
    for mode in range(m):
        move = np.zeros((size, size))
        for g in range(G):
            here, gamma = slice((g + 1) * q, (g + 2) * q), star.chance[g]
            move[:q, :q] += star.members[g] * gamma * star.decay / 2 * np.eye(q)
            move[:q, here] = star.members[g] * gamma * star.decay / 2 * np.eye(q)
            move[here, :q] = gamma * star.own[mode, g] / 2
            move[here, here] = gamma * star.own[mode, g] / 2 + (1 - gamma) * np.eye(q)
        if np.abs(np.linalg.eigvals(move)).max() >= 1:
            return False
    return True
