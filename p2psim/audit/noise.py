"""Tests of noise: that it follows its law, and that none of it is used twice."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from p2psim.privacy.mechanisms import Mechanism

#: Values that the test of the noise's law looks at; samples and columns that the test of sharing compares.
VALUES, ROWS, _COLUMNS = 20_000, 2_000, 400

#: Intervals of an estimated density; minus its logarithm beyond what was seen; and what counts as the same value.
_INTERVALS, _IMPOSSIBLE, _SAME = 64, 50.0, 1e-6


@dataclass(frozen=True)
class NoiseDistribution:
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
    """With k whole steps: a^{−k}/(1 + a) below zero, 1 − a^{k + 1}/(1 + a) from there on, a = exp(−step)."""
    tail = np.exp(-np.where(x < 0, -x, x + step)) / (1.0 + np.exp(-step))
    return np.where(x < 0, tail, 1.0 - tail)


def _gaussian(x: np.ndarray, step: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return np.asarray(ndtr(x))


LAPLACE = NoiseDistribution(np.abs, _laplace)
GAUSSIAN = NoiseDistribution(lambda x: 0.5 * x * x, _gaussian)

#: By the kind of mechanism.
_DISTRIBUTIONS = {"laplace": LAPLACE, "discrete-laplace": LAPLACE, "gaussian": GAUSSIAN}


def law_of(mechanism: Mechanism) -> NoiseDistribution:
    """Law of a mechanism's noise; of one that is not known here, a guess by its norm for scores, and nothing more."""
    guess = replace(LAPLACE if mechanism.norm == "l1" else GAUSSIAN, cumulative=None)
    return _DISTRIBUTIONS.get(mechanism.kind, guess)


def probabilities(
    law: NoiseDistribution, noise: np.ndarray, step: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Distribution function at noise, in units of its scale: independent and uniform on [0, 1] if the law is right.

    On a grid it is spread evenly over each jump, F(k − 1) + V·(F(k) − F(k − 1)) with V uniform, which is uniform for
    every law on the whole numbers: Kolmogorov and Smirnov's test is for continuous laws.

    Parameters
    ----------
    law : NoiseDistribution
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
    law: NoiseDistribution, seen: np.ndarray, mean_p: np.ndarray, mean_q: np.ndarray, rate: float = 1.0
) -> np.ndarray:
    """Claimed log-likelihood ratio of P to Q at what is seen of some releases.

    Parameters
    ----------
    law : NoiseDistribution
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


def learned(noise: np.ndarray) -> NoiseDistribution:
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
        return NoiseDistribution(lambda x: np.where(np.abs(x - values[0]) < _SAME, 0.0, _IMPOSSIBLE), None)
    edges = np.unique(np.quantile(noise, np.linspace(0.0, 1.0, _INTERVALS + 1)))
    counts = np.histogram(noise, edges)[0]
    logs = np.log(np.maximum(counts, 0.5) / noise.size) - np.log(np.diff(edges))
    middles = (edges[1:] + edges[:-1]) / 2
    room = _SAME * (edges[-1] - edges[0])

    def distance(x: np.ndarray) -> np.ndarray:
        inside = (x >= edges[0] - room) & (x <= edges[-1] + room)
        return np.where(inside, -np.interp(x, middles, logs), _IMPOSSIBLE)

    return NoiseDistribution(distance, None)


def p_value(law: NoiseDistribution, noise: np.ndarray, steps: np.ndarray) -> float:
    """P-value of a law by the noise on one data set, some of it where there is much (Kolmogorov and Smirnov's test).

    Each data set is looked at alone: a gradient that is not what it should be moves noise to one side on P and to the
    other on Q.

    Parameters
    ----------
    law : NoiseDistribution
        One whose distribution function is known.
    noise : ndarray, shape (samples, releases, p)
        In units of its claimed scale.
    steps : ndarray, shape (releases,)
        Of the grid, in the same units; 0 for no grid.
    """
    from scipy.stats import kstest

    rng = np.random.default_rng(0)
    some = rng.permutation(noise.size)[:VALUES] if noise.size > VALUES else np.arange(noise.size)
    every = np.broadcast_to(steps[:, None], noise.shape)
    values = probabilities(law, noise.ravel()[some], every.ravel()[some], rng)
    return float(kstest(values, "uniform", method="exact").pvalue)


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


def most_shared(noise: np.ndarray, is_symmetric: bool = True) -> Shared | None:
    """Find noise that is used twice: by two releases, two agents, or two coordinates; in a part of it where it is much.

    If noise is symmetric and independent, the signs of two columns agree in half of the samples, whatever the scales:
    with n samples, of which none is zero, Σ sign·sign is a sum of n independent signs, and exceeds t in absolute value
    with probability at most 2·exp(−t²/(2n)) (Hoeffding 1963). Noise that is shared, or shared with the other sign,
    gives n.

    Parameters
    ----------
    noise : ndarray, shape (samples, …)
        A column for each agent, release and coordinate.
    is_symmetric : bool
        Whether the law of the noise is known to be; else medians are taken off first.

    Returns
    -------
    Shared or None
        None for fewer than two columns.
    """
    every = noise.reshape(len(noise), -1)
    kept = np.sort(np.random.default_rng(0).permutation(every.shape[1])[:_COLUMNS])
    if (columns := kept.size) < 2:
        return None
    compared = every[:ROWS, kept]
    if not is_symmetric:
        compared = compared - np.median(compared, axis=0)
    signs = np.sign(compared).astype(np.float32)  # sums of signs are exact below 2**24
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
