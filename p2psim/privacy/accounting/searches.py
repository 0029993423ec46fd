"""Searches over many functions at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Function = Callable[[np.ndarray], np.ndarray]

_GOLDEN = (np.sqrt(5) - 1) / 2


def least(function: Function, low: np.ndarray, high: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Minimise functions that fall and then rise, by golden sections (Kiefer 1953).

    Parameters
    ----------
    function : callable
        From points (N,) to the values of N functions there; infinite values are allowed.
    low, high : ndarray, shape (N,)
    steps : int
        Each leaves .618 of the interval.

    Returns
    -------
    point, value : ndarray, shape (N,)
        The best that was seen.
    """
    low, high = low.copy(), high.copy()
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(steps):
        lower = at_left < at_right
        high, low = np.where(lower, right, high), np.where(lower, low, left)
        fresh = np.where(lower, high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
        at_fresh = function(fresh)
        left, right, at_left, at_right = (
            np.where(lower, fresh, right),
            np.where(lower, left, fresh),
            np.where(lower, at_fresh, at_right),
            np.where(lower, at_left, at_fresh),
        )
    best = at_left < at_right
    return np.where(best, left, right), np.where(best, at_left, at_right)


def upper_crossing(function: Function, low: np.ndarray, high: np.ndarray, steps: int = 200) -> np.ndarray:
    """Points from which falling functions are at most 0, found from above.

    Bisection in turn with regula falsi, until nothing changes: what is returned is a point where the function was seen
    to be at most 0, unless it is positive at ``high``, which is returned then.

    Parameters
    ----------
    function : callable
        From points (N,) to the values of N functions there.
    low, high : ndarray, shape (N,)
        Where low has a value that is not positive already, it is returned.
    steps : int
    """
    low, high = low.astype(float), high.astype(float)
    at_low, at_high = function(low), function(high)
    high = np.where(at_low <= 0, low, high)
    for step in range(steps):
        middle = (low + high) / 2
        if step % 3:
            with np.errstate(all="ignore"):
                secant = high - at_high * (high - low) / (at_high - at_low)
                # A little above the secant's root, so that the upper end closes in.
                secant = secant + 1e-3 * (high - secant) if step % 3 == 2 else secant
            usable = np.isfinite(secant) & (secant > low) & (secant < high)
            middle = np.where(usable, secant, middle)
        if ((middle <= low) | (middle >= high)).all():
            break
        at_middle = function(middle)
        below = at_middle <= 0
        low, at_low = np.where(below, low, middle), np.where(below, at_low, at_middle)
        high, at_high = np.where(below, middle, high), np.where(below, at_middle, at_high)
        if (high - low <= 1e-15 * np.abs(high)).all():
            break
    return high
