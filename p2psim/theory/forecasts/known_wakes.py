"""What noise adds to coordinate descent where budgets know every wake, walked as `descent_path` walks without.

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

from itertools import accumulate

import numpy as np

from p2psim.core.compiled import njit, unwritten
from p2psim.theory.forecasts.descent import LinearDescent, refuse_infinite
from p2psim.theory.forecasts.descent_path import chebyshev, coefficients, short_degree

#: Rows and columns of a matrix that are folded at once.
_TILE = 96
#: Numbers in the matrices that are walked at once.
_AT_ONCE = 4_000_000


def known_wakes_noise(
    model: LinearDescent,
    wakes: int,
    ratio: float,
    power: int,
    variances: np.ndarray,
    at: np.ndarray,
    exact: bool = False,
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
    exact : bool
        Step by step.

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
            parts = _walk(model, most, ratio, power, some, exact)
            for row, k in enumerate(at.tolist()):
                noise[row, some] = _at(k, wakes, ratio, model.chance[some], parts[:, :k])
    return np.asarray(noise * variances * model.chance * model.noise_step**2)


#: Coefficients left out where derivatives of the powers are wanted, which weigh them by up to the degree to the fourth.
_TAIL_OF_SUMS = 46.0

#: Ratios of weights over a run up to which a short walk is close enough: errors of the last grow as their square.
_SPREAD_OF_WEIGHTS = 100.0


def _walk(
    model: LinearDescent, wakes: int, ratio: float, power: int, some: np.ndarray, exact: bool
) -> np.ndarray:
    """Traces of some agents' own blocks of Q⁰ … Q^d with r = 0 … wakes − 1 wakes between, shape (d + 1, wakes, some).

    In units of w_t: one wake more before the others makes S into (1 + S)/ω if it is the agent's, else S/ω. Together
    Q⁰ … Q^d move by one triangular map, whose eigenvalues are those of the dual map over 1, ω … ω^d.
    """
    p, count = model.start.shape[1], some.size
    # Q⁰ first, which is the same for all agents; then the others by powers of S and agents.
    Q = np.zeros((1 + power * count, model.size, model.size))
    Q[0] = model.hessian / 2
    factors = ratio ** -np.arange(power + 1.0)
    top = factors.max()
    spread, least = 1 - (1 - model.spread) * factors.min() / top, model.least
    factors = np.repeat(factors, [1] + [count] * power)
    tame = not exact and max(ratio, 1 / ratio) ** wakes <= _SPREAD_OF_WEIGHTS
    degree = short_degree(wakes, spread, _TAIL_OF_SUMS, least) if tame else None

    each, places = np.arange(count), some[:, None] * p + np.arange(p)
    chance = model.chance[some, None, None]

    X, moved = np.empty_like(Q), np.empty_like(Q)

    def into(Q: np.ndarray, before: np.ndarray, keep: np.ndarray, change: np.ndarray, less: float) -> None:
        """Write keep·Q − change·(Q less what it is after a wake, times powers of ω) − less·before to ``before``.

        Of γ_i·A_iᵀQA_i = γ_i·Q − K_iᵀX_i − (K_iᵀX_i)ᵀ with the rows X_i of what `half_change` multiplies with K.
        """
        model.half_change(Q, X, moved)
        whole, first = X[0, places], X[1 + each[:, None], places]
        X[1 + each[:, None], places] += whole
        if power == 2:
            X[1 + count + each[:, None], places] += whole + 2 * first
        fold(model.curve(X, moved), Q, before, keep, change, less)
        before[1 : 1 + count] += np.multiply(change[1] * chance, Q[0], out=X[:count])
        if power == 2:
            np.multiply(2.0, Q[1 : 1 + count], out=X[:count])
            X[:count] += Q[0]
            before[1 + count :] += np.multiply(change[-1] * chance, X[:count], out=X[:count])

    def turned(Q: np.ndarray, before: np.ndarray, factor: float, less: float) -> None:
        # y = (x − middle)/half for x between 1 − spread and 1 − least.
        middle, half, shares = 1 - (spread + least) / 2, (spread - least) / 2, factors / top
        into(Q, before, factor * (shares - middle) / half, factor * shares / half, less)

    def step(Q: np.ndarray, _: int) -> np.ndarray:
        after = np.zeros_like(Q)
        into(Q, after, factors, factors, 0.0)
        return after

    walk = accumulate(range(wakes - 1), step, initial=Q) if degree is None else chebyshev(turned, Q, degree)
    rows = [
        [matrices[0].diagonal()[places].sum(axis=1)]
        + [part[each[:, None], places, places].sum(axis=1) for part in np.split(matrices[1:], power)]
        for matrices in walk
    ]
    traces = np.array(rows).reshape(len(rows), -1)
    if degree is not None:
        traces = np.concatenate([part @ traces for part in coefficients(wakes - 1, degree, spread, least)])
        traces *= top ** np.arange(float(wakes))[:, None]
    return np.moveaxis(traces.reshape(-1, power + 1, count), 1, 0)


def _at(k: int, T: int, ratio: float, chance: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Σ_t E[(S/w_t)^d·trace] by agent over releases at t = 0 … k − 1, with ``parts`` of `_walk` for r = k − 1 − t."""
    r = np.arange(k)
    t = k - 1 - r
    # Σ ω^m over m = 1 … t, and over m = −(r + 1) … −(T − 1 − t); and of their squares.
    means, squares = (
        (_before(base, k)[t] + _after(base, T - k) * base ** -(r + 1.0))[:, None]
        for base in (ratio, ratio**2)
    )
    total = 1 + chance * means
    if len(parts) == 2:
        return np.asarray((total * parts[0] + parts[1]).sum(axis=0))
    second = total**2 + chance * (1 - chance) * squares
    return np.asarray((second * parts[0] + 2 * total * parts[1] + parts[2]).sum(axis=0))


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


def fold(
    moved: np.ndarray,
    now: np.ndarray,
    before: np.ndarray,
    keep: np.ndarray | float,
    change: np.ndarray | float,
    less: float,
) -> None:
    """Write keep·now − change·(M + Mᵀ) − less·before to ``before``.

    Of symmetric matrices, shape (…, m, m), and M, which is ``moved``. Factors are of all matrices, or of each of those
    along the first axis.

    Raises
    ------
    FloatingPointError
        If the last diagonal is not finite afterwards.
    """
    shape = -1, *now.shape[-2:]
    result = before.reshape(shape)
    each = [unwritten(np.broadcast_to(factor, len(result)).astype(float)) for factor in (keep, change)]
    _fold(unwritten(moved.reshape(shape)), unwritten(now.reshape(shape)), result, *each, less)
    refuse_infinite(result[-1].diagonal())


@njit()
def _fold(moved, now, before, keep, change, less):  # type: ignore[no-untyped-def]
    """See `fold`: tile by tile with its mirror image, so that columns are read and written within the cache."""
    size = now.shape[1]
    # A few columns more than needed, so that rows do not compete for the same lines of the cache.
    tile = np.empty((_TILE, _TILE + 8))
    for b in range(now.shape[0]):
        for top in range(0, size, _TILE):
            bottom = min(top + _TILE, size)
            for left in range(top, size, _TILE):
                right = min(left + _TILE, size)
                for j in range(left, right):
                    mirrored = moved[b, j]
                    for i in range(top, bottom):
                        tile[i - top, j - left] = mirrored[i]
                for i in range(top, bottom):
                    both, row, own = (
                        tile[i - top, : right - left],
                        moved[b, i, left:right],
                        now[b, i, left:right],
                    )
                    old = before[b, i, left:right]
                    for c in range(right - left):
                        both[c] = keep[b] * own[c] - change[b] * (row[c] + both[c]) - less * old[c]
                    old[:] = both
                if left > top:
                    for j in range(left, right):
                        old = before[b, j, top:bottom]
                        for c in range(bottom - top):
                            old[c] = tile[c, j - left]
