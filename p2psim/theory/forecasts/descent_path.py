"""What coordinate descent reaches after every number of wakes, what noise adds, and the final error of each model.

V_k(z) = zᵀQ_kz is the expected ½zᵀHz after k wakes from z, without noise: Q_{k+1} = dual(Q_k), Q_0 = ½H. Noise that
agent i adds k wakes before the end costs γ_i·s_i²·tr[Q_k]_ii times its variance, so that one walk gives E[Q_L] at every
k and each agent's share of it.

A walk takes T steps, or about √(37·T) where the map's eigenvalues lie between 0 and 1: with T_j the Chebyshev
polynomials,

    x^k = 4^{−k} Σ_j C(2k, k + j)·T_|j|(2x − 1),    j = −k … k,

since ((1 + cos φ)/2)^k is a binomial sum of e^{ijφ}. Its coefficients are probabilities, so nothing is lost by
cancellation, and what is left out beyond |j| is at most their sum. The error is absolute, of rounding of Q_0: what
has shrunk below it is only known to be small.

`distances` gives how far each agent's model is from its optimum at the end: the covariance, walked forwards.

Allocations that know every wake make noise whose scale depends on all of an agent's releases in the run. A release of
agent i at step t takes the share w_t/S_i of its budget, w_t = ω^{−t} up to a constant and S_i = Σ w_s over the steps s
at which i wakes, of 0 … T − 1. Its variance is v_i·(S_i/w_t)^d, d = 2 for noise whose losses add up (Laplace) and 1 for
noise whose squared losses do (Gaussian). ω = 1 spreads the budget evenly, ω = C^e is B's Proposition 2 as corrected,
ω = C^{−e} as printed.

S_i and what becomes of the noise both depend on when i wakes. Split at t and at the step k that is asked for,
S_i = before + w_t + between + after: the first and the last are independent of what lies between. There, with S the
running sum, not only V = E[zᵀ(·)z] is walked but E[S·…] and E[S²·…] as well: one wake of weight w adds

    Q¹ ← dual(Q¹) + w·dual_i(Q⁰),    Q² ← dual(Q²) + 2w·dual_i(Q¹) + w²·dual_i(Q⁰).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from p2psim.theory.forecasts.descent import LinearDescent

#: Coefficients left out of a power of the map add up to less: exp(−j²/k) at j² = 37·k.
_TAIL = 37.0

#: Absolute error of a short walk, beside the largest value.
SHORT_ERROR = 1e-12

#: Wakes whose coefficients are held at once.
_BLOCK = 512


@dataclass(frozen=True)
class DescentPath:
    """Noiseless descent after k = 0 … T wakes, and what noise would add.

    Attributes
    ----------
    expected : ndarray, shape (T + 1,)
        E[Q_L] − Q_L* without noise of releases.
    start_noise : ndarray, shape (T + 1,)
        The part of it that comes from the noise of the first models.
    mean_gap : ndarray, shape (T + 1,)
        Q_L − Q_L* at the expected models, which noise does not move.
    gain : ndarray, shape (T, n)
        What noise of variance 1 a coordinate, in every release of agent i that is the s-th from the end, s = 0 … T − 1,
        adds to E[Q_L].
    error : float
        Absolute error of ``expected`` over its first value, and of ``gain`` over its largest.
    """

    expected: np.ndarray
    start_noise: np.ndarray
    mean_gap: np.ndarray
    gain: np.ndarray
    error: float


def path(model: LinearDescent, wakes: int, exact: bool = False) -> DescentPath:
    """Walk once.

    Parameters
    ----------
    model : LinearDescent
    wakes : int
        T.
    exact : bool
        Step by step, so that relative errors are of rounding too.
    """
    Q = model.hessian / 2
    degree = terms(wakes)
    short = not exact and model.spread_is_tame and 2 * degree < wakes
    powers = accumulate(range(wakes), lambda before, _: model.dual(before), initial=Q)
    walk = chebyshev(model.dual, Q, degree) if short else powers
    z, covariance, rows = model.start.ravel(), model.start_covariance, []
    n, p = model.start.shape
    for matrix in walk:
        noise = 0.0
        if covariance.any():
            noise = float(np.sum(covariance * np.einsum("iaja->ij", matrix.reshape(n, p, n, p))))
        rows.append(np.concatenate([[z @ matrix @ z, noise], model.traces(matrix)]))
    values = np.array(rows)
    if short:
        values = np.concatenate([part @ values for part in coefficients(wakes, degree)])
        np.maximum(values, 0.0, out=values)
    start_noise, traces = values[:, 1], values[:, 2:]
    linear, constant, mean_gap = _about_the_optimum(model, wakes)
    return DescentPath(
        expected=values[:, 0] + start_noise + linear + constant,
        start_noise=start_noise,
        mean_gap=mean_gap,
        gain=traces[:-1] * model.chance * model.noise_step**2,
        error=SHORT_ERROR if short else 0.0,
    )


def _about_the_optimum(model: LinearDescent, wakes: int) -> tuple[np.ndarray, float, np.ndarray]:
    """What Θ∘ ≠ Θ* adds, linear in the mean and constant, and Q_L − Q_L* at the mean."""
    d, z = model.offset.ravel(), model.start
    pushed = model.hessian @ d
    linear, gaps = np.empty(wakes + 1), np.empty(wakes + 1)
    for k in range(wakes + 1):
        linear[k] = pushed @ z.ravel()
        gaps[k] = model.gap(z + model.offset)
        z = model.mean(z)
    return linear, float(d @ pushed / 2), gaps


def chebyshev(step, first: np.ndarray, degree: int) -> Iterator[np.ndarray]:  # type: ignore[no-untyped-def]
    """A matrix under T_0 … T_degree of 2·step − 1, step a linear map."""
    before, now = first, 2 * step(first) - first
    yield before
    yield now
    for _ in range(degree - 1):
        following = 4 * step(now)
        following -= 2 * now
        following -= before
        before, now = now, following
        yield now


def terms(wakes: int) -> int:
    """Degree that is enough for all powers up to this one."""
    return int(np.ceil(np.sqrt(_TAIL * wakes))) + 2


def coefficients(wakes: int, degree: int) -> Iterator[np.ndarray]:
    """Coefficients of T_0 … T_degree in the powers 0 … wakes, in blocks of rows; each row adds up to one."""
    from scipy.stats import binom

    j = np.arange(degree + 1)
    twice = np.where(j > 0, 2.0, 1.0)
    for first in range(0, wakes + 1, _BLOCK):
        k = np.arange(first, min(first + _BLOCK, wakes + 1))[:, None]
        yield twice * binom.pmf(k + j, 2 * k, 0.5)


def distances(model: LinearDescent, variances: np.ndarray, exact: bool = False) -> np.ndarray:
    """E‖Θ_i − Θ*_i‖² after T wakes, shape (n,).

    The second moment after T wakes is Σ_k P^k·N_{T−k} over the noise N_t that the wake t adds and, as the last, the
    start: block diagonal but for the start. With the powers of P in Chebyshev polynomials (see `descent_path`) all
    terms of one degree are added up first, and Clenshaw's rule needs one step a degree.

    Parameters
    ----------
    model : LinearDescent
    variances : ndarray, shape (T, n)
        Variance of a coordinate of the noise of a release, if the wake t is agent i's.
    exact : bool
        Step by step.
    """
    T, p = len(variances), model.start.shape[1]
    added = variances * model.chance * model.noise_step**2
    z = model.start.ravel()
    first = np.outer(z, z) + np.kron(model.start_covariance, np.eye(p))
    degree = terms(T)
    if not exact and model.spread_is_tame and 2 * degree < T:
        square = _clenshaw(model, added, first, degree)
    else:
        square = first
        for noise in added:
            square = model.primal(square)
            square[np.diag_indices(model.size)] += np.repeat(noise, p)
    mean = model.start
    for _ in range(T):
        mean = model.mean(mean)
    d = model.offset
    return np.asarray(model.traces(square) + (2 * mean * d + d**2).sum(axis=1))


def _clenshaw(model: LinearDescent, added: np.ndarray, first: np.ndarray, degree: int) -> np.ndarray:
    T, p = len(added), model.start.shape[1]
    # Noise of wake t is carried on T − 1 − t times; the start T times.
    noise, start, row = np.zeros((degree + 1, model.agents)), np.zeros(degree + 1), 0
    for block in coefficients(T, degree):
        inside = min(len(block), T - row)
        noise += block[:inside].T @ added[::-1][row : row + inside]
        row += len(block)
        start = block[-1]
    after = following = np.zeros_like(first)
    for j in range(degree, 0, -1):
        now = 4 * model.primal(following) - 2 * following - after if j < degree else np.zeros_like(first)
        now += start[j] * first
        now[np.diag_indices(model.size)] += np.repeat(noise[j], p)
        after, following = following, now
    moment = 2 * model.primal(following) - following - after + start[0] * first
    moment[np.diag_indices(model.size)] += np.repeat(noise[0], p)
    return np.asarray(moment)


#: Numbers in the matrices that are walked at once.
_AT_ONCE = 4_000_000


def known_wakes_noise(
    model: LinearDescent, wakes: int, ratio: float, power: int, variances: np.ndarray, at: np.ndarray
) -> np.ndarray:
    """What noise adds to E[Q_L] at some steps of a run of exactly T wakes, by agent, shape (records, n).

    Parameters
    ----------
    model : LinearDescent
    wakes : int
        T.
    ratio : float
        ω > 0.
    power : int
        d, 1 or 2.
    variances : ndarray, shape (n,)
        v_i, variance of a coordinate of a release that takes the whole budget.
    at : ndarray of int, shape (records,)
        Steps k.

    Raises
    ------
    FloatingPointError
        If a part is not finite.
    """
    n = model.agents
    noise = np.zeros((len(at), n))
    most = int(at.max(initial=0))
    together = max(1, _AT_ONCE // ((power + 1) * model.size**2))
    with np.errstate(over="raise", invalid="raise"):
        for first in range(0, n, together):
            some = np.arange(first, min(first + together, n))
            parts = _walk(model, most, ratio, power, some)
            for i, of_agent in zip(some.tolist(), np.moveaxis(parts, 2, 0), strict=True):
                for row, k in enumerate(at.tolist()):
                    noise[row, i] = _at(k, wakes, ratio, float(model.chance[i]), of_agent[:, :k])
    return np.asarray(noise * variances * model.chance * model.noise_step**2)


def _walk(model: LinearDescent, wakes: int, ratio: float, power: int, some: np.ndarray) -> np.ndarray:
    """Traces of some agents' own blocks of Q⁰ … Q^d with r = 0 … wakes − 1 wakes between, shape (d + 1, wakes, some).

    In units of w_t: one wake more before the others makes S into (1 + S)/ω if it is the agent's, else S/ω.
    """
    size, p = model.size, model.start.shape[1]
    places = some[:, None] * p + np.arange(p)
    each = np.arange(some.size)[:, None]
    # By powers of S, then by agents.
    Q = np.zeros((power + 1, some.size, size, size))
    Q[0] = model.hessian / 2
    traces = np.empty((power + 1, wakes, some.size))
    for r in range(wakes):
        traces[:, r] = Q[:, each, places, places].sum(axis=2)
        own = _dual_of_each(model, some, Q[:power])
        Q = model.dual(Q)
        if power == 2:
            Q[2] += 2 * own[1] + own[0]
            Q[2] /= ratio**2
        Q[1] += own[0]
        Q[1] /= ratio
    return traces


def _dual_of_each(model: LinearDescent, some: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """γ_i·A_iᵀQA_i, each agent's of its own matrices, shape (powers, some, n·p, n·p)."""
    n, p = model.start.shape
    K = model.matrix.reshape(n, p, -1)[some]
    a = model.step[some, None, None]
    each = np.arange(some.size)
    rows = Q.reshape(len(Q), some.size, n, p, -1)[:, each, some]
    blocks = rows.reshape(len(Q), some.size, p, n, p)[:, each, :, some]
    # Two index arrays apart from each other come first in the result.
    blocks = np.moveaxis(blocks, 0, 1)
    half = np.swapaxes(K, 1, 2) @ (rows - (a / 2) * (blocks @ K))
    half += np.swapaxes(half, -1, -2).copy()
    return np.asarray(model.chance[some, None, None] * (Q - a * half))


def _at(k: int, T: int, ratio: float, chance: float, parts: np.ndarray) -> float:
    """Σ_t E[(S/w_t)^d·trace] over releases at t = 0 … k − 1, with ``parts`` of `_walk` for r = k − 1 − t."""
    r = np.arange(k)
    t = k - 1 - r
    # Σ ω^m over m = 1 … t, and over m = −(r + 1) … −(T − 1 − t); and of their squares.
    means, squares = (
        _before(base, k)[t] + _after(base, T - k) * base ** -(r + 1.0) for base in (ratio, ratio**2)
    )
    total = 1 + chance * means
    if len(parts) == 2:
        return float(total @ parts[0] + parts[1].sum())
    return float(
        (total**2 + chance * (1 - chance) * squares) @ parts[0] + 2 * total @ parts[1] + parts[2].sum()
    )


def unconditional_variances(
    chance: np.ndarray, steps: int, wakes: int, ratio: float, power: int, variances: np.ndarray
) -> np.ndarray:
    """v_i·E[(S_i/w_t)^d] of a release of agent i at step t, shape (steps, n).

    Parameters
    ----------
    chance : ndarray, shape (n,)
        γ_i.
    steps : int
        Those from T on are as the last.
    wakes, ratio, power, variances
        As in `known_wakes_noise`.
    """
    t = np.minimum(np.arange(steps), wakes - 1)[:, None]
    with np.errstate(over="raise", invalid="raise"):
        means, squares = (
            _before(base, wakes)[t] + _before(1 / base, wakes)[wakes - 1 - t] for base in (ratio, ratio**2)
        )
        total = 1 + chance * means
        moment = total if power == 1 else total**2 + chance * (1 - chance) * squares
    return np.asarray(variances * moment)


def _before(base: float, count: int) -> np.ndarray:
    """Σ base^m over m = 1 … t, for t = 0 … count − 1."""
    return np.concatenate([[0.0], np.cumsum(base ** np.arange(1.0, count))])


def _after(base: float, count: int) -> float:
    """Σ base^{−m} over m = 0 … count − 1."""
    return float((base ** -np.arange(float(count))).sum())
