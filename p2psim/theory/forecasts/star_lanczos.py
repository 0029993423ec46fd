"""The walk of `star_path` in few steps, by Lanczos's method, where answers contract and owners' maps are symmetric.

With M_i = U_iΛ_iU_iᵀ, 0 < Λ_i ≤ 1 and 0 < a ≤ 1, an answer of owner i is symmetric in the coordinates

    y_L = z_L/√a,    y_i = Λ_i^{−½}U_iᵀz_i:

it is A_i = ½V_iV_iᵀ on the blocks L and i, with V_iᵀ = (√a·I, U_iΛ_i^{½}), and has eigenvalues between 0 and 1. So is
the map of quadratic forms, Q ← Σγ_iA_iQA_i. Lanczos's method applies it l times, and gives orthonormal forms
F_1 … F_l and a tridiagonal matrix J of that size with

    Q_k ≈ ‖Q_0‖·Σ_j (Jᵏ)_{j1}·F_j,

as close as a polynomial of degree l comes to xᵏ at the eigenvalues of the map. For 86 owners 32 steps give what 1,000
answers need. The error is absolute, of rounding of Q_0: what has shrunk far below it is only known to be small.

Shifts enter by the mean y_t, which a walk forwards gives: E after K answers is Q_K at the start plus the sum over
k < K of 2·u_k·y_{K−1−k} + w_k, with u = Σγ_iA_iQe_i and w = Σγ_i·e_iᵀQe_i, both linear in Q. All coordinates of a class
of n owners are multiplied by √n, so that the inner product of forms is that of their blocks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from p2psim.theory.forecasts.linear_star import LinearStar

#: Smallest eigenvalue of an owner's map: coordinates are divided by its root.
_LEAST = 1e-2

#: Forms are left out once their weights in all powers are below this.
_LEFT_OUT = 1e-16

#: Largest eigenvalue of J. What would grow has no part in the forms that are walked, but rounding gives it one.
_MOST = 1 + 1e-9

#: Fewest answers for which this is used.
_FEWEST = 100

#: What has shrunk by more than this is walked step by step.
_SHRUNK = 1e-4


class _Form(NamedTuple):
    """Blocks of a quadratic form: LL, L with each class, an owner with itself, and two different owners."""

    both: np.ndarray
    cross: np.ndarray
    own: np.ndarray
    others: np.ndarray


def contracts(star: LinearStar) -> bool:
    """Whether all owners' maps are symmetric, with eigenvalues in (0, 1), and a is in (0, 1].

    Then the mean tends to a limit: the only vector that all answers leave as it is, is zero.
    """
    if not (0 < star.decay <= 1 and np.array_equal(star.own, np.swapaxes(star.own, -1, -2))):
        return False
    eigenvalues = np.linalg.eigvalsh(star.own)
    return bool(eigenvalues.min() >= _LEAST and eigenvalues.max() < 1)


def short_walk(star: LinearStar, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """V_k at the start, k = 0 … T, traces of Q_ii, k = 0 … T − 1, and E[z_L]; None where this is not the way.

    Parameters
    ----------
    star : LinearStar
    steps : int
        T.
    """
    if steps < _FEWEST or not contracts(star):
        return None
    space = _Symmetric(star)
    forms = _lanczos(space, steps)
    if forms is None:
        return None
    size, roots, vectors, values = forms
    value, free, pushes, traces = (np.array([row[i] for row in values]) for i in range(4))
    # By eigenvectors of J: what does not depend on the mean, and the rest as a recursion.
    weight = size * vectors[0]
    value, free, pushes = vectors.T @ value, vectors.T @ free, 2 * vectors.T @ pushes
    added, means, y = np.zeros(len(roots)), np.empty((steps + 1, *star.start.shape)), space.start
    expected, alone = np.empty(steps + 1), weight * value
    for k in range(steps + 1):
        expected[k] = alone.sum() + weight @ added
        means[k] = y[0] * space.root
        added = roots * added + pushes @ np.concatenate([y[0].ravel(), y[1].ravel()]) + free
        alone = alone * roots
        y = space.mean(*y)
    if not expected.min() > _SHRUNK * np.abs(expected).max():
        return None
    powers = roots ** np.arange(steps)[:, None]
    return expected, (powers * weight) @ (vectors.T @ traces), means


def _lanczos(
    space: _Symmetric, steps: int
) -> tuple[float, np.ndarray, np.ndarray, list[tuple[float, float, np.ndarray, np.ndarray]]] | None:
    """‖Q_0‖, eigenvalues and eigenvectors of J, and the values of each form; None if too many would be needed."""
    now, before = space.first, None
    size = np.sqrt(space.product(now, now))
    now = _Form(*(part / size for part in now))
    diagonal, beside, values = list[float](), list[float](), []
    some = np.unique(np.geomspace(1, steps, 40).astype(int))[:, None]
    while len(diagonal) < steps // 2:
        values.append(space.values(now))
        following = space.step(now)
        diagonal.append(space.product(now, following))
        for part, old in zip(following, now, strict=True):
            part -= diagonal[-1] * old
        if before is not None:
            for part, old in zip(following, before, strict=True):
                part -= beside[-1] * old
        rest = float(np.sqrt(space.product(following, following)))
        if len(diagonal) % 4 == 0 or rest < _LEFT_OUT:
            J = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
            roots, vectors = np.linalg.eigh(J)
            if np.abs(roots).max() > _MOST:
                return None
            last = (roots**some * vectors[0]) @ vectors[-1]
            if rest < _LEFT_OUT or np.abs(last).max() < _LEFT_OUT:
                return size, roots, vectors, values
        beside.append(rest)
        for part in following:
            part /= rest
        before, now = now, following
    return None


class _Symmetric:
    """The star in the coordinates in which answers are symmetric.

    Attributes
    ----------
    first : _Form
        Q_0.
    start : tuple of ndarray
        y of the learner and of the classes at the start, shape (m, q) and (m, G·q).
    root : float
        √a.
    """

    def __init__(self, star: LinearStar):
        m, G, q = star.own_shift.shape
        self._shape = m, G, q
        eigenvalues, basis = np.linalg.eigh(star.own)
        self.root = float(np.sqrt(star.decay))
        self._gamma, self._owners, self._eigenvalues = star.chance, star.members, eigenvalues
        self._many = np.sqrt(star.members)
        self._out = basis * np.sqrt(eigenvalues)[..., None, :]  # UΛ^½
        self._in = np.ascontiguousarray(np.swapaxes(self._out, -1, -2))
        gamma, many = star.chance[:, None, None], self._many[:, None, None]
        # Between the learner and each class.
        self._pull = self._flat(gamma * many * self.root / 2 * self._out)
        kept = 0.5 - star.chance[:, None] + star.chance[:, None] * eigenvalues / 2
        flat = kept.reshape(m, G * q)
        self._kept = flat[:, :, None] + flat[:, None, :]
        self._stay = (kept + 0.5).reshape(m, G * q)
        # Where a class has but one owner, no two of them differ.
        self._alone = np.flatnonzero(star.members == 1)
        self._blocks(self._kept)[:, self._alone, :, self._alone] = 0.0
        self._both = np.repeat(star.chance, q), np.repeat(self._many, q)
        start = self._many[:, None] * self._owner(np.repeat(star.start[:, None], G, axis=1))
        self.start = star.start / self.root, start.reshape(m, G * q)
        self._shifts = star.learner_shift / self.root, self._owner(star.own_shift)
        zero = np.zeros((m, G * q, G * q))
        self.first = _Form(star.decay * star.weight, zero[:, :q], np.zeros((m, G, q, q)), zero)

    def _flat(self, blocks: np.ndarray) -> np.ndarray:
        """(m, G, q, q) side by side, (m, q, G·q)."""
        m, G, q = self._shape
        return np.ascontiguousarray(np.swapaxes(blocks, 1, 2).reshape(m, q, G * q))

    def _blocks(self, matrix: np.ndarray) -> np.ndarray:
        m, G, q = self._shape
        return matrix.reshape(m, G, q, G, q)

    def _same(self, form: _Form) -> np.ndarray:
        """Blocks of two owners of one class, (m, G, q, q)."""
        return np.einsum("mgqgr->mgqr", self._blocks(form.others)) / self._owners[:, None, None]

    def _crossed(self, form: _Form) -> np.ndarray:
        """Blocks of the learner with one owner of each class, (m, G, q, q)."""
        m, G, q = self._shape
        return np.swapaxes(form.cross.reshape(m, q, G, q), 1, 2) / self._many[:, None, None]

    def _owner(self, vectors: np.ndarray) -> np.ndarray:
        """Λ^{−½}Uᵀ times (m, G, q)."""
        return np.asarray((self._in @ vectors[..., None])[..., 0] / self._eigenvalues)

    def product(self, one: _Form, other: _Form) -> float:
        """Inner product of two forms of all owners."""
        total = np.vdot(one.both, other.both) + 2 * np.vdot(one.cross, other.cross)
        total += np.vdot(one.others, other.others)
        if self._alone.size < self._owners.size:
            total -= np.einsum("g,mgqr,mgqr->", self._owners, self._same(one), self._same(other))
        return float(total + np.einsum("g,mgqr,mgqr->", self._owners, one.own, other.own))

    def step(self, form: _Form) -> _Form:
        """Σγ_iA_iQA_i."""
        gamma, (chances, many) = self._gamma[:, None, None], self._both
        turned = self.root * (self._crossed(form) @ self._in)
        S = self.root**2 * form.both[:, None] + turned + np.swapaxes(turned, -1, -2)
        S += self._out @ form.own @ self._in  # V_iᵀQV_i
        answered = self.root * (S @ self._out / 4 - self._out @ self._same(form) / 2)
        cross = self._flat(gamma * answered) * many
        cross += self.root**2 / 2 * (1 - chances) * form.cross
        cross += self._pull @ form.others
        others = self._kept * form.others
        pairs = ((self._pull, form.cross), (form.cross, self._pull))
        left, right = (np.concatenate(pair, axis=1) for pair in pairs)
        others += np.swapaxes(left, 1, 2) @ right
        self._blocks(others)[:, self._alone, :, self._alone] = 0.0
        return _Form(
            np.einsum("g,mgqr->mqr", self._owners * self._gamma * self.root**2 / 4, S),
            cross,
            (1 - gamma) * form.own + gamma / 4 * (self._in @ S @ self._out),
            others,
        )

    def mean(self, learner: np.ndarray, owners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """E[y] after an answer."""
        shift = self._gamma[:, None] * self._many[:, None] * self._shifts[1]
        moved = self.root**2 / 2 * learner + (self._pull @ owners[..., None])[..., 0] + self._shifts[0]
        pulled = (np.swapaxes(self._pull, 1, 2) @ learner[..., None])[..., 0]
        return moved, self._stay * owners + pulled + shift.reshape(owners.shape)

    def values(self, form: _Form) -> tuple[float, float, np.ndarray, np.ndarray]:
        """The form at the start, w, u, and the traces of Q_ii of each class."""
        m, G, q = self._shape
        (y, each), (e, own_shift) = self.start, self._shifts
        gamma, owners, many = self._gamma[:, None], self._owners[:, None], self._many[:, None]
        single, same, cross = each.reshape(m, G, q) / many, self._same(form), self._crossed(form)
        drift = (gamma * many * own_shift).reshape(m, G * q)
        met_start, met_drift = np.moveaxis(form.others @ np.stack([each, drift], axis=-1), -1, 0)
        value = np.einsum("mq,mqr,mr->", y, form.both, y) + np.sum(each * met_start)
        value += 2 * np.einsum("mq,mqa,ma->", y, form.cross, each)
        value += np.einsum("g,mgq,mgqr,mgr->", self._owners, single, form.own - same, single)
        # Qe_i at the learner, at owner i, and at each other owner.
        met = np.einsum("mgqr,mq->mgr", cross, e)
        at_learner = (form.both @ e[..., None])[:, None, :, 0] + (cross @ own_shift[..., None])[..., 0]
        at_owner = met + (form.own @ own_shift[..., None])[..., 0]
        free = np.sum(owners * gamma * (e[:, None] * at_learner + own_shift * at_owner))
        answer = self.root * at_learner + (self._out @ at_owner[..., None])[..., 0]  # V_iᵀQe_i
        learner = self.root / 2 * np.sum(owners * gamma * answer, axis=1)
        pushed = gamma / 2 * (self._in @ answer[..., None])[..., 0] + (1 - gamma) * met
        pushed = many * (pushed - gamma * (same @ own_shift[..., None])[..., 0]) + met_drift.reshape(m, G, q)
        traces = np.einsum("mgqq,mgq->g", form.own, 1 / self._eigenvalues)
        return float(value), float(free), np.concatenate([learner.ravel(), pushed.ravel()]), traces
