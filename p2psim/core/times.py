"""Moments at regular times, by one rule: the k-th is k·interval, multiplied once, and never a sum of intervals.

Two numbers that are the same moment on paper may differ by rounding, as 30·0.1 and 3.0 do: they count as one.
"""

import numpy as np

from p2psim.core.compiled import njit

#: By how much rounding moves such a moment at most, relative to it.
ROUNDING = 4 * 2.0**-52


@njit(inline="always")
def until(moment, end):  # type: ignore[no-untyped-def]
    """A moment, or the end of the run where rounding alone puts it beyond."""
    return end if end < moment <= end * (1 + ROUNDING) else moment


def upto(times: np.ndarray, moments: np.ndarray | float) -> np.ndarray:
    """How many of some times, which are in order, are not past each moment."""
    return np.searchsorted(times, moments * (1 + ROUNDING), side="right")


@njit(inline="always")
def is_past(time, moment):  # type: ignore[no-untyped-def]
    """Whether a time is after a moment, and not by rounding alone."""
    return time > moment * (1 + ROUNDING)
