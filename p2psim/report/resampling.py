"""How sure a slope of medians is: the bootstrap over replicas."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float = NDArray[np.float64]

#: Resamples: ends of a 95 % interval then move by about 3 % of its width from seed to seed.
RESAMPLES = 2000

#: The interval of a median lies between the extremes of its sample, which miss it with probability 2^(1−n): for
#: fewer replicas it cannot reach 90 %.
FEWEST = 5


def slope_interval(
    x: ArrayLike,
    values: Sequence[Float],
    replicas: Sequence[NDArray[np.int64]],
    level: float = 0.95,
    seed: int = 0,
) -> tuple[float, float] | None:
    """Percentile bootstrap interval of the log-log slope of medians over replicas.

    A replica is drawn as a whole, for all x at once: cells share random numbers, so that its values go up and down
    together. Where they are independent, the interval is as right.

    Parameters
    ----------
    x : array_like, shape (m,)
        Positive; at least two differ.
    values : sequence of m ndarrays
        Final values at each x.
    replicas : sequence of m ndarrays of int
        Whose they are.
    level : float
        Confidence in (0, 1).
    seed : int
        Of the resampling, so that a figure is the same each time that it is drawn.

    Returns
    -------
    (low, high), or None
        None where a point has fewer than `FEWEST` replicas, or resamples have medians without a logarithm.

    Notes
    -----
    Efron and Tibshirani, *An Introduction to the Bootstrap* (1993), section 13.3. Which points the fit uses is
    taken as given.
    """
    if min(v.size for v in values) < FEWEST:
        return None
    names = np.unique(np.concatenate(replicas))
    held = np.full((len(values), names.size), np.nan)
    for row, (own, which) in enumerate(zip(values, replicas, strict=True)):
        # Undefined values count as +∞; NaN now marks a replica that the point has not.
        held[row, np.searchsorted(names, which)] = np.where(np.isnan(own), np.inf, own)
    draws = np.random.default_rng(seed).integers(0, names.size, (RESAMPLES, names.size))
    medians = np.stack([_medians(row[draws]) for row in held])
    if not (np.isfinite(medians).all() and (medians > 0).all()):
        return None
    logs = np.log(np.asarray(x, dtype=float))
    centred = logs - logs.mean()
    slopes = centred @ np.log(medians) / (centred @ centred)
    low, high = np.quantile(slopes, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _medians(drawn: Float) -> Float:
    """Median of each row of what it holds; infinite where that decides, NaN where it holds nothing."""
    ordered = np.sort(drawn, axis=1)  # NaN last
    count = drawn.shape[1] - np.isnan(drawn).sum(axis=1)
    rows = np.arange(len(drawn))
    return np.where(count, (ordered[rows, (count - 1) // 2] + ordered[rows, count // 2]) / 2, np.nan)
