"""Confidence intervals over replicas: of means by Student's t, of medians by the bootstrap, of ratios by logarithms."""

import warnings
from dataclasses import dataclass

import numpy as np

#: Resamples of a bootstrap; the ends of a 95 % interval then move by about 1 % of its width from seed to seed.
RESAMPLES = 9999


@dataclass(frozen=True)
class Interval:
    """An estimate and the ends of its confidence interval; NaN ends where the sample is too small for one."""

    estimate: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether the interval has ends."""
        return bool(np.isfinite(self.low) and np.isfinite(self.high))


def mean_interval(values: np.ndarray, confidence: float = 0.95) -> Interval:
    """Mean of independent values, with Student's t interval: exact for normal ones, else as their number grows.

    Parameters
    ----------
    values : ndarray, shape (n,)
        Finite.
    confidence : float
        In (0, 1).

    Returns
    -------
    Interval
        Without ends for n < 2.
    """
    from scipy.special import stdtrit

    mean = float(np.mean(values))
    if values.size < 2:
        return Interval(mean, np.nan, np.nan)
    error = float(np.std(values, ddof=1)) / np.sqrt(values.size)
    half = float(stdtrit(values.size - 1, (1 + confidence) / 2)) * error
    return Interval(mean, mean - half, mean + half)


def welch_interval(a: np.ndarray, b: np.ndarray, confidence: float = 0.95) -> Interval:
    """Difference mean(b) − mean(a) of two independent samples, with Welch's t interval (unequal variances).

    Parameters
    ----------
    a, b : ndarray, shape (n,) and (m,)
        Finite.
    confidence : float

    Returns
    -------
    Interval
        Without ends where either sample has fewer than two values.
    """
    from scipy.stats import ttest_ind

    difference = float(np.mean(b) - np.mean(a))
    if min(a.size, b.size) < 2:
        return Interval(difference, np.nan, np.nan)
    if np.ptp(a) == 0 and np.ptp(b) == 0:  # no variance, and Welch's degrees of freedom are 0/0
        return Interval(difference, difference, difference)
    with warnings.catch_warnings():
        # A sample without variance is no fault: the other one's is left.
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
        ends = ttest_ind(b, a, equal_var=False).confidence_interval(confidence)
    return Interval(difference, float(ends.low), float(ends.high))


def median_interval(values: np.ndarray, confidence: float = 0.95, seed: int = 0) -> Interval:
    """Median of independent values, with a percentile bootstrap interval.

    Parameters
    ----------
    values : ndarray, shape (n,)
        May be infinite.
    confidence : float
    seed : int
        Of the resampling, so that a table is the same each time that it is printed.

    Returns
    -------
    Interval
        Without ends for n < 5, where the interval cannot reach 90 %: it lies between the extremes, which miss the
        median with probability 2^(1−n).
    """
    with np.errstate(invalid="ignore"):  # between −∞ and ∞ there is no middle
        median = float(np.median(values))
    if values.size < 5:
        return Interval(median, np.nan, np.nan)
    draws = np.random.default_rng(seed).integers(0, values.size, (RESAMPLES, values.size))
    # Between a number and infinity there is nothing to interpolate.
    medians = np.quantile(values[draws], 0.5, axis=1, method="inverted_cdf")
    low, high = np.quantile(medians, [(1 - confidence) / 2, (1 + confidence) / 2], method="inverted_cdf")
    return Interval(median, float(low), float(high))


def ratio_interval(a: np.ndarray, b: np.ndarray, confidence: float = 0.95) -> Interval:
    """Geometric mean of the pairwise ratios b/a, with Student's t interval on their logarithms.

    Parameters
    ----------
    a, b : ndarray, shape (n,) each
        Paired, positive, finite.
    confidence : float
    """
    logs = mean_interval(np.log(b) - np.log(a), confidence)
    with np.errstate(over="ignore"):  # of few values of other orders of magnitude, an end may be infinite
        return Interval(float(np.exp(logs.estimate)), float(np.exp(logs.low)), float(np.exp(logs.high)))
