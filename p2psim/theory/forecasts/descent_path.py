"""What coordinate descent reaches after every number of wakes, what noise adds, and the final error of each model.

V_k(z) = zᵀQ_kz is the expected ½zᵀHz after k wakes from z, without noise: Q_{k+1} = dual(Q_k), Q_0 = ½H. Noise that
agent i adds k wakes before the end costs γ_i·s_i²·tr[Q_k]_ii times its variance, so that one walk gives E[Q_L] at every
k and each agent's share of it.

A walk takes T steps, or about √(28·w·T) where the map's eigenvalues lie between 1 − w and 1: with T_j the Chebyshev
polynomials and x = 1 − w(1 − y)/2,

    x^k = Σ_j P(S_k = j)·T_|j|(y),    j = −k … k,

S_k a walk of k steps that goes up or down with probability w/4 each, since x is 1 − w/2 + w(e^{iφ} + e^{−iφ})/4 at
y = cos φ. Its coefficients are probabilities, so nothing is lost by
cancellation, and what is left out beyond |j| is at most their sum. The error is absolute, of rounding of Q_0: what
has shrunk below it is only known to be small. For n agents alike w is at most 4/n, and often little above 2/n.

`distances` gives how far each agent's model is from its optimum at the end: the covariance, walked forwards.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from p2psim.theory.forecasts.descent import LinearDescent

#: Absolute error of a short walk, beside the largest value.
SHORT_ERROR = 1e-12

#: Coefficients left out of a power of the map add up to less than exp(−28), and thus than that error.
_TAIL = 28.0

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
    degree = None if exact else short_degree(wakes, model.spread)
    walk: Iterator[np.ndarray]
    if degree is None:
        walk = accumulate(range(wakes), lambda before, _: model.dual(before), initial=Q)
    else:
        spare = np.empty_like(Q), np.empty_like(Q)

        def step(now: np.ndarray, before: np.ndarray, factor: float, less: float) -> None:
            model.dual_into(now, before, factor, factor * 2 / model.spread, less, spare)

        walk = chebyshev(step, Q, degree)
    z, covariance, rows = model.start.ravel(), model.start_covariance, []
    n, p = model.start.shape
    for matrix in walk:
        noise = 0.0
        if covariance.any():
            noise = float(np.sum(covariance * np.einsum("iaja->ij", matrix.reshape(n, p, n, p))))
        rows.append(np.concatenate([[z @ matrix @ z, noise], model.traces(matrix)]))
    values = np.array(rows)
    if degree is not None:
        values = np.concatenate([part @ values for part in coefficients(wakes, degree, model.spread)])
        np.maximum(values, 0.0, out=values)
    start_noise, traces = values[:, 1], values[:, 2:]
    linear, constant, mean_gap = _about_the_optimum(model, wakes)
    expected, error = values[:, 0] + start_noise + linear + constant, 0.0 if degree is None else SHORT_ERROR
    gain = traces[:-1] * model.chance * model.noise_step**2
    return DescentPath(expected, start_noise, mean_gap, gain, error)


def _about_the_optimum(model: LinearDescent, wakes: int) -> tuple[np.ndarray, float, np.ndarray]:
    """What Θ∘ ≠ Θ* adds, linear in the mean and constant, and Q_L − Q_L* at the mean."""
    d, z = model.offset.ravel(), model.start
    pushed = model.hessian @ d
    linear, gaps = np.empty(wakes + 1), np.empty(wakes + 1)
    for first in range(0, wakes + 1, _BLOCK):
        means = np.empty((min(_BLOCK, wakes + 1 - first), *z.shape))
        for row in means:
            row[:] = z
            z = model.mean(z)
        some = slice(first, first + len(means))
        linear[some] = means.reshape(len(means), -1) @ pushed
        gaps[some] = model.gaps(np.moveaxis(means + model.offset, 0, -1))
    return linear, float(d @ pushed / 2), gaps


def chebyshev(
    step: Callable[[np.ndarray, np.ndarray, float, float], None], first: np.ndarray, degree: int
) -> Iterator[np.ndarray]:
    """A matrix under T_0 … T_degree of a linear map M whose eigenvalues lie between −1 and 1; each until the next.

    A step writes factor·M(now) − less·before to ``before``, from now, before, factor and less. Where eigenvalues lie
    between 1 − w and 1, M is that map, less 1 − w/2, over w/2: what it is given, less 2/w of what the map takes away.
    """
    before, now = first.copy(), np.zeros_like(first)
    step(before, now, 1.0, 0.0)
    yield before
    yield now
    for _ in range(degree - 1):
        step(now, before, 2.0, 1.0)
        before, now = now, before
        yield now


def short_degree(wakes: int, spread: float, tail: float = _TAIL) -> int | None:
    """Degree that is enough for all powers up to this one; None where that takes as long as all steps."""
    if not spread <= 1:
        return None
    degree = terms(wakes, spread, tail)
    return degree if 2 * degree < wakes else None


def terms(wakes: int, spread: float = 1.0, tail: float = _TAIL) -> int:
    """Degree that is enough for all powers up to this one.

    Chernoff's bound of P(S_k ≥ j) is exp(s·(cosh θ − 1) − θ·j) with s = wk/2, least at sinh θ = j/s.
    """
    spent, j = wakes * spread / 2, np.arange(1, wakes + 2)
    exponents = j * np.arcsinh(j / max(spent, 1e-300)) - np.sqrt(spent**2 + j**2.0) + spent
    return int(np.searchsorted(exponents, tail)) + 2


def coefficients(wakes: int, degree: int, spread: float = 1.0) -> Iterator[np.ndarray]:
    """Coefficients of T_0 … T_degree in the powers 0 … wakes, in blocks of rows; each row adds up to one."""
    j = np.arange(degree + 1)
    cosines = np.cos(np.pi * (np.outer(j, j) % (2 * degree)) / degree)
    ends = np.where((j == 0) | (j == degree), 0.5, 1.0)
    transform = 2 / degree * ends[:, None] * cosines * ends
    x = 1 - spread * (1 - cosines[1]) / 2
    for first in range(0, wakes + 1, _BLOCK):
        k = np.arange(first, min(first + _BLOCK, wakes + 1))[:, None]
        rows = np.maximum(x**k @ transform, 0.0)
        yield rows / rows.sum(axis=1, keepdims=True)


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
    degree = None if exact else short_degree(T, model.spread)
    if degree is not None:
        square = _clenshaw(model, added, first, degree)
    else:
        square = first
        for noise in added:
            square = model.primal(square)
            square[np.diag_indices(model.size)] += np.repeat(noise, p)
    mean, d = model.start, model.offset
    for _ in range(T if d.any() else 0):
        mean = model.mean(mean)
    return np.asarray(model.traces(square) + (2 * mean * d + d**2).sum(axis=1))


def _clenshaw(model: LinearDescent, added: np.ndarray, first: np.ndarray, degree: int) -> np.ndarray:
    T, p = len(added), model.start.shape[1]
    # Noise of wake t is carried on T − 1 − t times; the start T times.
    noise, start, row = np.zeros((degree + 1, model.agents)), np.zeros(degree + 1), 0
    for block in coefficients(T, degree, model.spread):
        inside = min(len(block), T - row)
        noise += block[:inside].T @ added[::-1][row : row + inside]
        row += len(block)
        start = block[-1]
    after, following, spare = (np.zeros_like(first) for _ in range(3))
    z, covariance = model.start.ravel(), model.start_covariance
    apart = np.kron(covariance, np.eye(p)) if covariance.any() else None
    for j in range(degree, -1, -1):
        factor = 2.0 if j else 1.0
        model.primal_into(
            following, after, factor, factor * 2 / model.spread, 1.0, spare, np.sqrt(start[j]) * z
        )
        if apart is not None:
            after += np.multiply(start[j], apart, out=spare)
        after[np.diag_indices(model.size)] += np.repeat(noise[j], p)
        after, following = following, after
    return following
