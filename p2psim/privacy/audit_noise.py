"""What an audit asks of noise itself: that it follows its law, and that none of it is used twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

#: Intervals of an estimated density; minus its logarithm beyond what was seen; and what counts as the same value.
_INTERVALS, _IMPOSSIBLE, _SAME = 64, 50.0, 1e-6


@dataclass(frozen=True)
class Law:
    """The law of one coordinate's noise.

    Attributes
    ----------
    distance : callable
        Of noise of scale one, minus its log-density up to a constant: |x| for Laplace, x²/2 for Gaussian noise.
    cumulative : callable, optional
        Its distribution function, of noise of scale one and of the grid's step in units of the scale (0 for no grid);
        None where it is not known.
    """

    distance: Callable[[np.ndarray], np.ndarray]
    cumulative: Callable[[np.ndarray, np.ndarray], np.ndarray] | None


def _laplace(x: np.ndarray, step: np.ndarray) -> np.ndarray:
    tail = 0.5 * np.exp(-np.abs(x))
    return np.where(x < 0, tail, 1.0 - tail)


def _discrete_laplace(x: np.ndarray, step: np.ndarray) -> np.ndarray:
    """With k whole steps: a^{−k}/(1 + a) below zero, 1 − a^{k + 1}/(1 + a) from there on, a = exp(−step)."""
    tail = np.exp(-np.where(x < 0, -x, x + step)) / (1.0 + np.exp(-step))
    return np.where(x < 0, tail, 1.0 - tail)


def _gaussian(x: np.ndarray, step: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return np.asarray(ndtr(x))


def _half_square(x: np.ndarray) -> np.ndarray:
    return np.asarray(0.5 * x * x)


LAPLACE = Law(np.abs, _laplace)
DISCRETE_LAPLACE = Law(np.abs, _discrete_laplace)
GAUSSIAN = Law(_half_square, _gaussian)


def probabilities(law: Law, noise: np.ndarray, step: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Distribution function at noise, in units of its scale: independent and uniform on [0, 1] if the law is right.

    On a grid it is spread evenly over each jump, F(k − 1) + V·(F(k) − F(k − 1)) with V uniform, which is uniform for
    every law on the whole numbers: Kolmogorov and Smirnov's test is for continuous laws.

    Parameters
    ----------
    law : Law
        One whose distribution function is known.
    noise, step : ndarray, shape (n,)
        ``step`` is that of the grid; 0 for no grid.
    rng : Generator
    """
    assert law.cumulative is not None
    on_grid = step > 0
    whole = np.where(on_grid, np.rint(noise / np.where(on_grid, step, 1.0)) * step, noise)
    upto = law.cumulative(whole, step)
    if not on_grid.any():
        return upto
    below = law.cumulative(whole - step, step)
    return np.asarray(below + np.where(on_grid, rng.random(noise.size), 1.0) * (upto - below))


def log_ratio(
    law: Law, seen: np.ndarray, mean_p: np.ndarray, mean_q: np.ndarray, rate: float = 1.0
) -> np.ndarray:
    """Claimed log-likelihood ratio of P to Q at what is seen of some releases.

    Parameters
    ----------
    law : Law
    seen : ndarray, shape (samples, releases, p)
        In units of the claimed scale, as all arrays.
    mean_p, mean_q : ndarray, broadcast to the shape of ``seen``
        What would be seen on P and on Q without noise, given what was seen before.
    rate : float
        Probability q in (0, 1] that a record is in a release's batch. Others have no gradient here, so that a release
        without it is noise alone: its density is (1 − q)·f(x) + q·f(x − mean).

    Returns
    -------
    ndarray, shape (samples, releases)
        Of each release given those before it; the ratio of all is their sum.
    """
    to_p, to_q = (-law.distance(seen - mean).sum(axis=2) for mean in (mean_p, mean_q))
    if rate < 1:
        without = np.log1p(-rate) - law.distance(seen).sum(axis=2)
        to_p, to_q = (np.logaddexp(without, np.log(rate) + with_it) for with_it in (to_p, to_q))
    return np.asarray(to_p - to_q)


def learned(noise: np.ndarray) -> Law:
    """Estimate the law of noise from a part of the samples, for scores of the others: its density, and where it ends.

    The density is that of intervals with equally many values each, its logarithm interpolated between their middles.
    Beyond the values that were seen it is taken to be nearly 0, so that outcomes that one data set makes impossible
    have extreme scores. A bad estimate costs power alone.

    Parameters
    ----------
    noise : ndarray
        In units of its claimed scale.
    """
    values = np.unique(np.round(noise.ravel(), 12))
    if values.size < 2:  # no noise at all: what is seen tells all
        return Law(lambda x: np.where(np.abs(x - values[0]) < _SAME, 0.0, _IMPOSSIBLE), None)
    edges = np.unique(np.quantile(noise, np.linspace(0.0, 1.0, _INTERVALS + 1)))
    counts = np.histogram(noise, edges)[0]
    logs = np.log(np.maximum(counts, 0.5) / noise.size) - np.log(np.diff(edges))
    middles = (edges[1:] + edges[:-1]) / 2
    room = _SAME * (edges[-1] - edges[0])

    def distance(x: np.ndarray) -> np.ndarray:
        inside = (x >= edges[0] - room) & (x <= edges[-1] + room)
        return np.where(inside, -np.interp(x, middles, logs), _IMPOSSIBLE)

    return Law(distance, None)


def uniform_p_value(values: np.ndarray) -> float:
    """P-value of Kolmogorov and Smirnov's test that values are independent and uniform on [0, 1].

    Parameters
    ----------
    values : ndarray, shape (n,)
        Distribution function at the noise.
    """
    from scipy.stats import kstwo

    n = values.size
    ordered = np.sort(values)
    ranks = np.arange(n + 1) / n
    distance = max(float((ranks[1:] - ordered).max()), float((ordered - ranks[:-1]).max()))
    return float(kstwo.sf(distance, n))


@dataclass(frozen=True)
class Shared:
    """The two columns whose signs agree, or disagree, most.

    Attributes
    ----------
    first, second : int
    agreement : float
        Share of samples in which their signs are the same.
    p_value : float
        That any two of independent symmetric columns do so; corrected for all pairs.
    """

    first: int
    second: int
    agreement: float
    p_value: float


def most_shared(noise: np.ndarray) -> Shared | None:
    """Find noise that is used twice: by two releases, two agents, or two coordinates.

    If noise is symmetric and independent, the signs of two columns agree in half of the samples, whatever the scales:
    with n samples, of which none is zero, Σ sign·sign is a sum of n independent signs, and exceeds t in absolute value
    with probability at most 2·exp(−t²/(2n)) (Hoeffding 1963). Noise that is shared, or shared with the other sign,
    gives n.

    Parameters
    ----------
    noise : ndarray, shape (samples, columns)
        A column for each agent, release and coordinate.

    Returns
    -------
    Shared or None
        None for fewer than two columns.
    """
    columns = noise.shape[1]
    if columns < 2:
        return None
    signs = np.sign(noise).astype(np.float32)  # sums of signs are exact below 2**24
    sums = (signs.T @ signs).astype(np.float64)
    both = np.abs(signs)
    counts = np.maximum((both.T @ both).astype(np.float64), 1.0)
    exponents = sums**2 / (2 * counts)
    exponents[np.tril_indices(columns)] = -1.0
    first, second = np.unravel_index(int(np.argmax(exponents)), exponents.shape)
    pairs = columns * (columns - 1) / 2
    p_value = min(1.0, 2.0 * pairs * float(np.exp(-exponents[first, second])))
    agreement = 0.5 * (1.0 + sums[first, second] / counts[first, second])
    return Shared(int(first), int(second), float(agreement), p_value)
