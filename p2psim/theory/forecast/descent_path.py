"""What coordinate descent reaches after every number of wakes, and what noise adds to it.

V_k(z) = zᵀQ_kz is the expected ½zᵀHz after k wakes from z, without noise: Q_{k+1} = dual(Q_k), Q_0 = ½H. Noise that
agent i adds k wakes before the end costs γ_i·s_i²·tr[Q_k]_ii times its variance, so that one walk gives E[Q_L] at every
k and each agent's share of it.

A walk takes T steps, or about √(37·T) where the map's eigenvalues lie between 0 and 1: with T_j the Chebyshev
polynomials,

    x^k = 4^{−k} Σ_j C(2k, k + j)·T_|j|(2x − 1),    j = −k … k,

since ((1 + cos φ)/2)^k is a binomial sum of e^{ijφ}. Its coefficients are probabilities, so nothing is lost by
cancellation, and what is left out beyond |j| is at most their sum. The error is absolute, of rounding of Q_0: what
has shrunk below it is only known to be small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from p2psim.theory.forecast.descent import LinearDescent

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
    walk = chebyshev(model.dual, Q, degree) if short else powers(model.dual, Q, wakes)
    z, covariance, rows = model.start.ravel(), model.start_covariance, []
    n, p = model.start.shape
    for one in walk:
        noise = 0.0
        if covariance.any():
            noise = float(np.sum(covariance * np.einsum("iaja->ij", one.reshape(n, p, n, p))))
        rows.append(np.concatenate([[z @ one @ z, noise], model.traces(one)]))
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


def powers(step, first: np.ndarray, last: int) -> Iterator[np.ndarray]:  # type: ignore[no-untyped-def]
    """A matrix under the powers 0 … last of a map.

    Parameters
    ----------
    step : callable
        The map.
    first : ndarray
    last : int
    """
    found = first
    yield found
    for _ in range(last):
        found = step(found)
        yield found


def chebyshev(step, first: np.ndarray, degree: int) -> Iterator[np.ndarray]:  # type: ignore[no-untyped-def]
    """A matrix under T_0 … T_degree of 2·step − 1; parameters as in `powers`."""
    before, found = first, 2 * step(first) - first
    yield before
    yield found
    for _ in range(degree - 1):
        following = 4 * step(found)
        following -= 2 * found
        following -= before
        before, found = found, following
        yield found


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
