"""When a cell has enough replicas: looks on a fixed schedule, with the chance of error divided among them.

Whoever looks at an interval again and again, and stops when it pleases, is misled more often than the confidence of
one interval says. Here the k-th look is at an interval of confidence 1 − α_k with α_k = α/(k(k + 1)), and these sum to
α at most. So the interval at which a cell stops misses the truth with probability α at most, whatever made it stop
(Boole's inequality; spending of α in the sense of Lan and DeMets, Biometrika 70, 1983). The first look spends half:
cells of little variance stop at the price of an interval of confidence 1 − α/2. Since the sum has no last term,
`most` may be raised later at no cost.

A decision needs the values of the replicas alone, so that it is the same for any number of workers and after any
interruption.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from p2psim.study.intervals import Interval, mean_interval
from p2psim.study.replicas import Sequential, Until

#: Each look is at so many times the replicas of the one before.
GROWTH = 1.5


def looks(least: int, most: int) -> Iterator[int]:
    """Numbers of replicas at which a cell is looked at: least, then half as many again each time, up to most."""
    number = min(least, most)
    while number < most:
        yield number
        number = math.ceil(GROWTH * number)
    yield most


def share_of(look: int, error: float) -> float:
    """Chance of error that a look, counted from 1, may spend of all that there is."""
    return error / (look * (look + 1))


@lru_cache(maxsize=4096)
def _rank(size: int, error: float) -> int:
    """Largest k for which the k-th smallest and k-th largest of `size` values miss the median with at most `error`."""
    from scipy.stats import binom

    # They miss it if fewer than k values lie on one side: 2·P(Bin(n, 1/2) ≤ k − 1).
    rank = int(binom.ppf(error / 2, size, 0.5))
    while rank > 0 and 2 * binom.cdf(rank - 1, size, 0.5) > error:
        rank -= 1
    return rank


def order_interval(values: np.ndarray, confidence: float) -> Interval:
    """Median of independent values with an interval between two order statistics.

    Right for every law, with no assumption (David and Nagaraja, Order Statistics, 2003, section 7.1).

    Parameters
    ----------
    values : ndarray, shape (n,)
        Not NaN; may be infinite.
    confidence : float
        In (0, 1).

    Returns
    -------
    Interval
        Without ends where n is too small for the confidence.
    """
    ordered = np.sort(values)
    middle = float(ordered[(values.size - 1) // 2 : values.size // 2 + 1].mean())
    rank = _rank(values.size, 1 - confidence)
    if rank == 0:
        return Interval(middle, math.nan, math.nan)
    return Interval(middle, float(ordered[rank - 1]), float(ordered[-rank]))


def interval_of(until: Until, values: np.ndarray, look: int) -> Interval:
    """Interval of a look, counted from 1; without ends where values are not finite, or too few."""
    confidence = 1 - share_of(look, 1 - until.confidence)
    if np.isnan(values).any() or (until.statistic == "mean" and not np.isfinite(values).all()):
        return Interval(math.nan, math.nan, math.nan)
    return (mean_interval if until.statistic == "mean" else order_interval)(values, confidence)


@dataclass(frozen=True)
class Verdict:
    """What is known of one cell.

    Attributes
    ----------
    replicas : int
        That the cell shall have.
    why : str
        ``reached`` the width, ``most`` replicas, ``failed`` in every replica so far; empty while it goes on.
    look : int
        The look, counted from 1, at which this was decided; that which comes next while the cell goes on.
    interval : Interval or None
        Of that look.
    """

    replicas: int
    why: str = ""
    look: int = 1
    interval: Interval | None = None


def judge(rule: Sequential, values: Mapping[int, float], failed: Set[int] = frozenset()) -> Verdict:
    """Look at one cell as often as its replicas allow.

    Parameters
    ----------
    rule : Sequential
    values : mapping from replica to number
        More replicas than a look is at do not count in it.
    failed : set of int
        Replicas without a value. They are left out, so that the interval is of those that end.

    Returns
    -------
    Verdict
        The first look at which the cell stops, or the first for which replicas are missing.
    """
    schedule = list(looks(rule.least, rule.most))
    for look, number in enumerate(schedule, 1):
        if any(replica not in values and replica not in failed for replica in range(number)):
            return Verdict(number, "", look)
        found = np.array([values[replica] for replica in range(number) if replica in values])
        if not found.size:
            return Verdict(number, "failed", look)
        interval = interval_of(rule.until, found, look)
        if is_narrow(rule.until, interval):
            return Verdict(number, "reached", look, interval)
        if number == rule.most:
            break
    return Verdict(rule.most, "most", len(schedule), interval)


def is_narrow(until: Until, interval: Interval) -> bool:
    """Whether an interval is as narrow as it shall be."""
    if not interval.known:
        return False
    scale = abs(interval.estimate) if until.relative else 1.0
    return interval.high - interval.low <= until.width * scale
