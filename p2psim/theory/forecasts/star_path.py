"""What the linear star reaches after every number of answers, what noise adds to it, and its expected models.

First and second moments are exact. Noise does not move expected models, which need no second moments.

`Dual` walks backwards: V_k(z) = zᵀQz + 2qᵀz + c is the expected f(θ_L) − f* after k answers from z, without noise,

    V_{k+1}(z) = Σ_i γ_i·V_k(z after owner i's answer),    V_0(z) = z_LᵀHz_L.

An answer touches the blocks L and i alone, so a step is one block-diagonal product, 2N²p³ flops; `star_lanczos` has
few steps where answers contract. Noise that owner i
adds k answers before the end costs γ_i·tr([Q_k]_ii·Cov ξ_i) in expectation: one pass gives E[f] at every k, and each
owner's share of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2psim.theory.forecasts.linear_star import LinearStar
from p2psim.theory.forecasts.star_lanczos import contracts, short_walk

#: Parts of V_k, in the order in which they are made one vector.
_PARTS = ("both", "cross", "own", "others", "learner", "owner", "constant")


@dataclass(frozen=True)
class Path:
    """The noiseless star after k = 0 … T answers, and what noise would add.

    Attributes
    ----------
    expected : ndarray, shape (T + 1,)
        E[f(θ_L,k)] − f* without noise.
    mean : ndarray, shape (T + 1, p)
        E[θ_L,k] − θ*; noise does not move it.
    mean_excess : ndarray, shape (T + 1,)
        f(E[θ_L,k]) − f*.
    gain : ndarray, shape (T, N)
        What noise of variance 1 a coordinate, in every answer of owner i that is the s-th from the end, s = 0 … T − 1,
        adds to E[f(θ_L)].
    limit : ndarray, shape (p,)
        Limit of the mean; NaN where the star is not stable in the mean.
    limit_excess : float
        f there less f*.
    """

    expected: np.ndarray
    mean: np.ndarray
    mean_excess: np.ndarray
    gain: np.ndarray
    limit: np.ndarray
    limit_excess: float


def path(star: LinearStar, steps: int, exact: bool = False) -> Path:
    """Walk backwards and forwards once.

    Parameters
    ----------
    star : LinearStar
    steps : int
        T.
    exact : bool
        Step by step, never by `star_lanczos`.

    Raises
    ------
    FloatingPointError
        If a moment is not finite: the star is unstable.
    """
    with np.errstate(over="raise", invalid="raise"):
        if star.own.shape[1] * star.own.shape[2] == 1:
            walked = (*_walk_alike(star, steps), mean_path(star, steps))
        else:
            short = None if exact else short_walk(star, steps)
            walked = short or (*_walk(star, steps), mean_path(star, steps))
    expected, traces, means = walked
    gain = traces[:, star.classes] * star.chance[star.classes] * star.noise_steps**2
    limit = mean_limit(star)
    mean, at_limit = means.reshape(steps + 1, -1) @ star.basis.T, limit.reshape(-1) @ star.basis.T
    of_mean = np.einsum("kmq,mqr,kmr->k", means, star.weight, means)
    of_limit = float(np.einsum("mq,mqr,mr->", limit, star.weight, limit))
    return Path(expected, mean, of_mean, gain, at_limit, of_limit)


def _walk(star: LinearStar, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """V_k at the start, k = 0 … T, and the traces of Q_ii, k = 0 … T − 1."""
    dual = Dual(star)
    expected, traces = np.empty(steps + 1), np.empty((steps, len(star.members)))
    for k in range(steps):
        expected[k], traces[k] = dual.value(), dual.traces()
        dual.step()
    expected[steps] = dual.value()
    return expected, traces


def _walk_alike(star: LinearStar, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """`_walk` for owners all alike with p modes: V_k is seven numbers a mode, and a step one matrix.

    So all V_k come by doubling: with v_0 … v_{j−1} known, the next j are these times the j-th power.
    """
    m, d = len(star.start), len(_PARTS)
    matrix = np.empty((m, d, d))
    for column in range(d):
        dual = _of_numbers(star, np.repeat(np.eye(d)[column][None], m, axis=0))
        dual.step()
        matrix[:, :, column] = _numbers(dual)
    rows, power = _numbers(Dual(star))[None], matrix
    while len(rows) <= steps:
        rows = np.concatenate([rows, np.einsum("mij,kmj->kmi", power, rows)])
        power = power @ power
    rows = rows[: steps + 1]
    both, cross, own, others, learner, owner, constant = np.moveaxis(rows, 2, 0)
    z, n = star.start[:, 0], star.members[0]
    square = both + 2 * n * cross + n * own + n * (n - 1) * others
    expected = (square * z**2 + 2 * (learner + n * owner) * z + constant).sum(axis=1)
    return expected, own[:-1].sum(axis=1)[:, None]


def _numbers(dual: Dual) -> np.ndarray:
    m = len(dual.constant)
    return np.concatenate([getattr(dual, name).reshape(m, 1) for name in _PARTS], axis=1)


def _of_numbers(star: LinearStar, numbers: np.ndarray) -> Dual:
    dual = Dual(star)
    for name, values in zip(_PARTS, numbers.T, strict=True):
        setattr(dual, name, values.reshape(getattr(dual, name).shape).copy())
    return dual


def mean_path(star: LinearStar, steps: int) -> np.ndarray:
    """E[z_L] along the coordinates of the modes, shape (T + 1, m, q)."""
    learner = star.start
    owner = np.repeat(learner[:, None], len(star.members), axis=1)
    means = [learner]
    share, gamma = star.members * star.chance, star.chance[:, None]
    for _ in range(steps):
        middle = (learner[:, None] + owner) / 2
        learner = star.decay * np.einsum("g,mgq->mq", share, middle) + star.learner_shift
        owner = gamma * ((star.own @ middle[..., None])[..., 0] + star.own_shift) + (1 - gamma) * owner
        means.append(learner)
    return np.array(means)


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
    if not (contracts(star) or _mean_is_stable(star)):
        return np.full((m, q), np.nan)
    return np.asarray(np.linalg.solve(system, right[..., None])[..., 0])


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
        return np.asarray(np.einsum("mgqq->g", self.own))

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
