"""What coordinate descent reaches after every number of wakes, what noise adds, and the final error of each model.

V_k(z) = zᵀQ_kz is the expected ½zᵀHz after k wakes from z, without noise: Q_{k+1} = dual(Q_k), Q_0 = ½H. Noise that
agent i adds k wakes before the end costs γ_i·s_i²·tr[Q_k]_ii times its variance, so that one walk gives E[Q_L] at every
k and each agent's share of it.

A walk takes T steps, or about √(28·w·T) where the map's eigenvalues lie between 1 − w and 1 − a: with T_j the Chebyshev
polynomials and x = 1 − a − (w − a)(1 − y)/2, at a = 0

    x^k = Σ_j P(S_k = j)·T_|j|(y),    j = −k … k,

S_k a walk of k steps that goes up or down with probability w/4 each, since x is 1 − w/2 + w(e^{iφ} + e^{−iφ})/4 at
y = cos φ. Coefficients are probabilities, and with a > 0 parts of (1 − a)^k, so nothing is lost by cancellation, and
what is left out beyond |j| is at most their sum. The error is absolute, of rounding of Q_0: what has shrunk below it is
only known to be small. For n agents alike w is at most 4/n, and often little above 2/n. A gap a makes fewer
polynomials do.

`distances` gives how far each agent's model is from its optimum at the end: the covariance, walked forwards.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from p2psim.theory.forecasts.descent import LinearDescent
from p2psim.theory.forecasts.tiles import Tiles

#: Absolute error of a short walk, beside the largest value.
SHORT_ERROR = 1e-12


#: Coefficients left out of a power of the map add up to less than exp(−28), and thus than that error.
_TAIL = 28.0

#: Sums of coefficients down to exp(−32) are told from rounding.
_TOLD = 32.0

#: Powers whose coefficients are looked at to see how many are needed.
_GRID = 200

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


def path(model: LinearDescent, wakes: int, exact: bool = False, error: float = SHORT_ERROR) -> DescentPath:
    """Walk once.

    Parameters
    ----------
    model : LinearDescent
    wakes : int
        T.
    exact : bool
        Step by step, so that relative errors are of rounding too.
    error : float
        Of a short walk, beside the largest value.
    """
    tiles, z, covariance = Tiles(model), model.start.ravel(), model.start_covariance
    degree = None if exact else short_degree(wakes, model.spread, -np.log(error), model.least)
    rows = []
    for Q in _walk(model, tiles.dual_into, tiles.of(model.hessian / 2), wakes, degree):
        noise = tiles.traces_with(Q, covariance) if covariance.any() else 0.0
        rows.append(np.concatenate([[tiles.form(Q, z), noise], tiles.traces(Q)]))
    values = np.array(rows)
    if degree is not None:
        values = np.concatenate(
            [part @ values for part in coefficients(wakes, degree, model.spread, model.least)]
        )
        np.maximum(values, 0.0, out=values)
    start_noise, traces = values[:, 1], values[:, 2:]
    linear, constant, mean_gap = _about_the_optimum(model, wakes, exact)
    expected = values[:, 0] + start_noise + linear + constant
    gain = traces[:-1] * model.chance * model.noise_step**2
    return DescentPath(expected, start_noise, mean_gap, gain, 0.0 if degree is None else error)


def _about_the_optimum(model: LinearDescent, wakes: int, exact: bool) -> tuple[np.ndarray, float, np.ndarray]:
    """What Θ∘ ≠ Θ* adds, linear in the mean and constant, and Q_L − Q_L* at the mean.

    The map of the mean, I − GK, is symmetric in the coordinates G^{−1/2}z, its eigenvalues between 1 − w/2 and 1.
    """
    d, z, w = model.offset.ravel(), model.start, model.spread / 2
    pushed = model.hessian @ d
    constant, degree = float(d @ pushed / 2), None if exact else short_degree(wakes, w)
    if degree is not None:
        rates = (model.chance * model.step)[:, None]

        def step(now: np.ndarray, before: np.ndarray, factor: float, less: float) -> None:
            pulled = model.curve(now.reshape(-1, 1)).reshape(now.shape)
            before[:] = factor * (now - 2 / w * rates * pulled) - less * before

        basis = np.array([now.flatten() for now in chebyshev(step, z, degree)])
        products = basis @ model.hessian @ basis.T / 2
        parts = np.concatenate(list(coefficients(wakes, degree, w)))
        linear = parts @ (basis @ pushed)
        gaps = np.einsum("kj,kj->k", parts @ products, parts) + linear + constant
        return linear, constant, np.maximum(gaps, 0.0)
    linear, gaps = np.empty(wakes + 1), np.empty(wakes + 1)
    for first in range(0, wakes + 1, _BLOCK):
        means = np.empty((min(_BLOCK, wakes + 1 - first), *z.shape))
        for row in means:
            row[:] = z
            z = model.mean(z)
        some = slice(first, first + len(means))
        linear[some] = means.reshape(len(means), -1) @ pushed
        gaps[some] = model.gaps(np.moveaxis(means + model.offset, 0, -1))
    return linear, constant, gaps


def _walk(
    model: LinearDescent, step: Callable[..., None], first: np.ndarray, wakes: int, degree: int | None
) -> Iterator[np.ndarray]:
    """A matrix after 0 … wakes steps; with a degree, under T_0 … T_degree. Each until the next."""

    def turned(now: np.ndarray, before: np.ndarray, factor: float, less: float) -> None:
        step(now, before, *_factors(model, factor), less)

    if degree is not None:
        yield from chebyshev(turned, first, degree)
        return
    now, other = first, np.zeros_like(first)
    yield now
    for _ in range(wakes):
        step(now, other, 1.0, 1.0, 0.0)
        now, other = other, now
        yield now


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


def short_degree(wakes: int, spread: float, tail: float = _TAIL, least: float = 0.0) -> int | None:
    """Degree that is enough for all powers up to this one; None where that takes as long as all steps."""
    if not spread <= 1:
        return None
    degree = terms(wakes, spread, tail, least)
    return degree if 2 * degree < wakes else None


def terms(wakes: int, spread: float = 1.0, tail: float = _TAIL, least: float = 0.0) -> int:
    """Degree that is enough for all powers up to this one.

    With a gap a, x^k is (1 − a)^k times a walk of (w − a)/(1 − a). Chernoff's bound of P(S_k ≥ j) is
    exp(s·(cosh θ − 1) − θ·j) with s = wk/2, least at sinh θ = j/s. Fewer do where sums of coefficients themselves can
    be told from rounding; both are looked at for powers on a grid so fine that they hardly change.
    """
    width = (spread - least) / (1 - least) if least < 1 else 0.0
    bound = int(np.searchsorted(_exponents(np.array([wakes]), np.arange(1, wakes + 2), width)[0], tail)) + 2
    grid = np.geomspace(1, max(wakes, 1), _GRID).round()
    if least:
        lost = _exponents(grid, np.arange(1, bound + 1), width) - grid[:, None] * np.log1p(-least)
        bound = int(np.searchsorted(lost.min(axis=0), tail)) + 2
    if tail > _TOLD or 2 * bound >= wakes:
        return bound
    rows = _rows(grid, bound, spread, least)
    beyond = np.cumsum(rows[:, ::-1], axis=1)[:, ::-1].max(axis=0)
    return int(np.searchsorted(-beyond, -np.exp(-tail)))


def _exponents(powers: np.ndarray, j: np.ndarray, spread: float) -> np.ndarray:
    spent = np.maximum(powers[:, None] * spread / 2, 1e-300)
    return np.asarray(j * np.arcsinh(j / spent) - np.sqrt(spent**2 + j**2.0) + spent)


def coefficients(wakes: int, degree: int, spread: float = 1.0, least: float = 0.0) -> Iterator[np.ndarray]:
    """Coefficients of T_0 … T_degree in the powers 0 … wakes, in blocks of rows; row k adds up to (1 − least)^k."""
    for first in range(0, wakes + 1, _BLOCK):
        yield _rows(np.arange(first, min(first + _BLOCK, wakes + 1)), degree, spread, least)


def _rows(powers: np.ndarray, degree: int, spread: float, least: float) -> np.ndarray:
    j, k = np.arange(degree + 1), powers[:, None]
    cosines = np.cos(np.pi * (np.outer(j, j) % (2 * degree)) / degree)
    ends = np.where((j == 0) | (j == degree), 0.5, 1.0)
    transform = 2 / degree * ends[:, None] * cosines * ends
    x = 1 - least - (spread - least) * (1 - cosines[1]) / 2
    rows = np.maximum(x**k @ transform, 0.0)
    return np.asarray(rows * ((1 - least) ** k / rows.sum(axis=1, keepdims=True)))


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
    # What the start leaves may be small beside the start.
    tiles, degree = Tiles(model), None if exact else short_degree(T, model.spread, _TOLD, model.least)
    if degree is not None:
        square = _clenshaw(model, tiles, added, first, degree)
    else:
        square = tiles.of(first)
        other = np.zeros_like(square)
        for noise in added:
            tiles.primal_into(square, other, 1.0, 1.0, 0.0)
            square, other = other, square
            tiles.add_to_diagonal(square, np.repeat(noise, p))
    mean, d = model.start, model.offset
    for _ in range(T if d.any() else 0):
        mean = model.mean(mean)
    return np.asarray(tiles.traces(square) + (2 * mean * d + d**2).sum(axis=1))


def _factors(model: LinearDescent, factor: float) -> tuple[float, float]:
    """By which a matrix, and what a map takes away of it, are multiplied for factor·y: x = 1 − a − (w − a)(1 − y)/2."""
    w, a = model.spread, model.least
    return factor * (w + a) / (w - a), factor * 2 / (w - a)


def _clenshaw(
    model: LinearDescent, tiles: Tiles, added: np.ndarray, first: np.ndarray, degree: int
) -> np.ndarray:
    T, p = len(added), model.start.shape[1]
    # Noise of wake t is carried on T − 1 − t times; the start T times.
    noise, start, row = np.zeros((degree + 1, model.agents)), np.zeros(degree + 1), 0
    for block in coefficients(T, degree, model.spread, model.least):
        inside = min(len(block), T - row)
        noise += block[:inside].T @ added[::-1][row : row + inside]
        row += len(block)
        start = block[-1]
    begun = tiles.of(first)
    after, following = np.zeros_like(begun), np.zeros_like(begun)
    for j in range(degree, -1, -1):
        factor = 2.0 if j else 1.0
        tiles.primal_into(following, after, *_factors(model, factor), 1.0, begun, start[j])
        tiles.add_to_diagonal(after, np.repeat(noise[j], p))
        after, following = following, after
    return following
