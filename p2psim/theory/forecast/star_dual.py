"""Exact first and second moments of the linear star, for every number of answers.

`Dual` walks backwards: V_k(z) = zᵀQz + 2qᵀz + c is the expected f(θ_L) − f* after k answers from z, without noise,

    V_{k+1}(z) = Σ_i γ_i·V_k(z after owner i's answer),    V_0(z) = z_LᵀHz_L.

An answer touches the blocks L and i alone, so a step is one block-diagonal product, 2N²p³ flops. Noise that owner i
adds k answers before the end costs γ_i·tr([Q_k]_ii·Cov ξ_i) in expectation: one pass gives E[f] at every k, and each
owner's share of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from p2psim.theory.forecast.linear_star import LinearStar


class Dual:
    """Quadratic, linear and constant part of V_k, by classes of owners.

    Attributes
    ----------
    both : ndarray, shape (m, q, q)
        Block Q_LL.
    cross : ndarray, shape (m, q, G·q)
        Blocks Q_Lg.
    own : ndarray, shape (m, G, q, q)
        Block Q_ii of an owner of each class.
    others : ndarray, shape (m, G·q, G·q)
        Blocks Q_ij of two different owners; 0 where a class has but one.
    learner, owner : ndarray, shape (m, q) and (m, G, q)
        Blocks of q.
    constant : ndarray, shape (m,)
        Constant part of each mode.
    """

    def __init__(self, star: LinearStar):
        m, G, q = star.own_shift.shape
        self._star = star
        self.both = star.weight.copy()
        self.cross = np.zeros((m, q, G * q))
        self.own = np.zeros((m, G, q, q))
        self.others = np.zeros((m, G * q, G * q))
        self.learner, self.owner, self.constant = np.zeros((m, q)), np.zeros((m, G, q)), np.zeros(m)
        gamma, eye = star.chance, np.eye(q)
        transposed = np.swapaxes(star.own, -1, -2)
        # What makes of Q_i: half of what it is after an answer of any owner; with its transpose, all of it.
        self._halves = gamma[:, None, None] * transposed / 2 + (0.5 - gamma)[:, None, None] * eye
        # (Σ_h n_h·γ_h·M_hᵀ·Q_h,:) as one product.
        counted = (star.members * gamma)[:, None, None] * transposed
        self._summed = np.ascontiguousarray(np.swapaxes(counted, 1, 2).reshape(m, q, G * q))
        self._transposed = transposed
        self._alone = np.flatnonzero(star.members == 1)
        # All owners answer with the learner's shift and their own.
        self._pull = (star.members * gamma)[:, None] * star.own_shift

    def value(self) -> float:
        """V_k at the star's start."""
        star, (m, G, q) = self._star, self.owner.shape
        z, n = star.start, star.members
        same = np.einsum("mgqgr->mgqr", self.others.reshape(m, G, q, G, q))
        alone = self.both + np.einsum("g,mgqr->mqr", n, self.own - same)
        linear = self.learner + np.einsum("g,mgq->mq", n, self.owner)
        every = (n[:, None] * z[:, None]).reshape(m, G * q, 1)
        pairs = self.others @ every + 2 * np.swapaxes(self.cross, 1, 2) @ z[..., None]
        return float(
            np.einsum("mq,mqr,mr->", z, alone, z)
            + np.sum(every * pairs)
            + 2 * np.sum(linear * z)
            + self.constant.sum()
        )

    def traces(self) -> np.ndarray:
        """Tr Q_ii of an owner of each class, shape (G,)."""
        traces: np.ndarray = np.einsum("mgqq->g", self.own)
        return traces

    def step(self) -> None:
        """From V_k to V_{k+1}."""
        star, a = self._star, self._star.decay
        m, G, q = self.owner.shape
        gamma, n = star.chance, star.members
        rows = self.others.reshape(m, G, q, G * q)
        cross = np.swapaxes(self.cross.reshape(m, q, G, q), 1, 2)  # Q_Lg
        back = np.swapaxes(cross, -1, -2)  # Q_gL
        same = np.einsum("mgqgr->mgqr", self.others.reshape(m, G, q, G, q))
        M, Mt = star.own, self._transposed
        e_L, e = star.learner_shift, star.own_shift

        left = a * self.both[:, None] + Mt @ back  # first block column of B_iᵀQ
        right = a * cross + Mt @ self.own  # second
        S = a * left + right @ M
        own_row = a * cross + Mt @ same  # what meets another owner of the same class
        shifted = self.both @ e_L[..., None]
        inner_L = shifted[:, None, :, 0] + (cross @ e[..., None])[..., 0]
        inner_i = (back @ e_L[:, None, :, None])[..., 0] + (self.own @ e[..., None])[..., 0]
        u = a * (inner_L + self.learner[:, None]) + (Mt @ (inner_i + self.owner)[..., None])[..., 0]
        met = (back @ e_L[:, None, :, None])[..., 0]  # an answer of another owner, as this one feels it
        same_met = met + (same @ e[..., None])[..., 0]
        pulled = (self.others @ self._pull.reshape(m, G * q)[..., None]).reshape(m, G, q)

        self.constant = self.constant + np.einsum(
            "g,mgq->m",
            n * gamma,
            e_L[:, None] * (inner_L + 2 * self.learner[:, None]) + e * (inner_i + 2 * self.owner),
        )
        g1, g2 = gamma[:, None], gamma[:, None, None]
        self.learner = np.einsum("g,mgq->mq", n * gamma / 2, u)
        self.owner = g1 * u / 2 + (1 - g1) * self.owner + met + pulled - g1 * same_met
        new_cross = (
            g2 * S / 4
            + np.swapaxes((a * self.cross + self._summed @ self.others).reshape(m, q, G, q), 1, 2) / 2
            - g2 * own_row / 2
        )
        # Another owner answers, or this one does, or neither: half of it, and the rest is its transpose.
        half = self._halves @ rows
        half += (gamma * a / 2)[:, None, None] * self.cross[:, None]
        half = half.reshape(m, G * q, G * q)
        np.add(half, np.swapaxes(half, 1, 2), out=self.others)
        self.others.reshape(m, G, q, G, q)[:, self._alone, :, self._alone] = 0.0
        self.cross = np.swapaxes(new_cross, 1, 2).reshape(m, q, G * q)
        self.own = g2 * S / 4 + (1 - g2) * self.own
        self.both = np.einsum("g,mgqr->mqr", n * gamma / 4, S)


def growth(star: LinearStar, most: int = 100_000, tolerance: float = 1e-10) -> float:
    """By how much an answer multiplies second moments in the long run: mean-square stable below 1.

    Largest eigenvalue of the map of Q, by power iteration; that map keeps positive matrices positive, so its largest
    eigenvalue is real and the iteration from H > 0 finds it.

    Parameters
    ----------
    star : LinearStar
    most : int
        Most iterations.
    tolerance : float
        Relative change at which the iteration ends.
    """
    dual: Any = Dual(star)
    before = 0.0
    for _ in range(most):
        size = float(np.einsum("mqq->", dual.both) + np.sum(star.members * dual.traces()))
        for name in ("both", "cross", "own", "others"):
            setattr(dual, name, getattr(dual, name) / size)
        if abs(size - before) <= tolerance * size:
            break
        before = size
        dual.step()
        dual.learner, dual.owner = np.zeros_like(dual.learner), np.zeros_like(dual.owner)
    return size
