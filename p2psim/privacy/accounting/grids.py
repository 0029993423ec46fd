"""Pessimistic discretisation of the law of a release's loss to a grid, and searches over many functions at once.

Let L = ln dP/dQ under P. The mass of a cell [l, l + h] of the grid is split between its two ends so that its mass m
under P and its mass q = E[e^{−L}] under Q are both kept:

    w_low = (q − m·e^{−(l+h)})/(e^{−l} − e^{−(l+h)}),    w_high = m − w_low.

Soundness. Both weights are at least 0, since e^{−L} lies between e^{−(l+h)} and e^{−l} in the cell. The new likelihood
ratios e^{−l} are, under P, a mean-preserving spread of the old ones, cell by cell. A curve
δ(ε) = E_P[max(0, 1 − e^{ε−L})] is the mean of a convex function of e^{−L}, which by Jensen's inequality such a spread
does not lower. So the new pair of laws dominates the old one at every ε, and dominating pairs compose (Zhu, Dong, Wang
2022, Theorem 10). The curves agree at the points of the grid, where the function has its kink: this is "connect the
dots" (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022), and the excess is of second order in h. Mass above the grid
goes to +∞, mass below it up to the lowest point: both only raise δ.

Every pair of a replaced record is symmetric, P(L = −l) = e^{−l}·P(L = l), and so is its split. So the upper halves of
laws are enough. A noise that has a ``reverse`` is not symmetric: its lower half comes from the upper half of that.

An unbounded loss goes to +∞ from where its curve has fallen to a floor. The floor follows from the δ that is sought, so
that what all releases together send to +∞ is a small share of it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import Noise, is_pure, relative_error

Function = Callable[[np.ndarray], np.ndarray]

#: Share of an interval that a golden section leaves.
GOLDEN = (5**0.5 - 1) / 2


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
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(steps):
        lower = at_left < at_right
        high, low = np.where(lower, right, high), np.where(lower, low, left)
        fresh = np.where(lower, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
        at_fresh = function(fresh)
        left, right = np.where(lower, fresh, right), np.where(lower, left, fresh)
        at_left, at_right = np.where(lower, at_fresh, at_right), np.where(lower, at_left, at_fresh)
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


#: The least floor: below it a number has few digits.
LEAST_FLOOR = 1e-314
#: Rounding of a curve that a noise of one's own may have; what it has fallen to there goes to +∞.
_ROUNDING = 4e-16
#: Relative error of an ε at which a known curve is evaluated, that its formula may add: it is evaluated so much below.
_BACKWARD = 1e-12
#: Where a noise of one's own has come to its end at the latest, and losses that no grid holds.
_FURTHEST, HUGE = 1e12, 1e100


@dataclass(frozen=True)
class LossDistributions:
    """Laws of losses on the multiples −w·h, …, w·h of the spacing h.

    Attributes
    ----------
    mass : ndarray, shape (u, 2w + 1)
        Under P.
    beyond : ndarray, shape (u,)
        Mass at +∞.
    """

    mass: np.ndarray
    beyond: np.ndarray

    @property
    def width(self) -> int:
        """Number w of points above 0."""
        return self.mass.shape[1] // 2


def stacked(parts: list[LossDistributions]) -> LossDistributions:
    """All rows in one."""
    if len(parts) == 1:
        return parts[0]
    width = max(part.width for part in parts)
    mass = [np.pad(part.mass, ((0, 0), (width - part.width, width - part.width))) for part in parts]
    return LossDistributions(np.concatenate(mass), np.concatenate([part.beyond for part in parts]))


def spread(noise: Noise, losses: np.ndarray) -> np.ndarray:
    """How fine laws of losses are: twice their total variation, which is near ε₀ or μ while these are small."""
    return 2 * np.asarray(noise.delta(losses, np.zeros(losses.size)), dtype=float)


def reach(noise: Noise, losses: np.ndarray, floor: float = LEAST_FLOOR) -> np.ndarray:
    """Ends of the grids for losses: where the mass above is nothing, or goes to +∞; the larger of two directions."""
    one = _reach(noise, losses, floor)
    reverse = getattr(noise, "reverse", None)
    return one if reverse is None else np.maximum(one, _reach(reverse, losses, floor))


def _reach(noise: Noise, losses: np.ndarray, floor: float) -> np.ndarray:
    if is_pure(noise):
        return np.asarray(noise.pure(losses))  # type: ignore[attr-defined]

    def at(epsilon: np.ndarray) -> np.ndarray:
        return np.asarray(noise.delta(losses, epsilon), dtype=float)

    furthest, halvings, least = HUGE, 12, np.full(losses.shape, floor)
    if relative_error(noise) is None:
        furthest, halvings = _FURTHEST, 40
        with np.errstate(over="ignore", invalid="ignore"):
            there = at(np.full(losses.shape, furthest))
        # A curve that cannot be evaluated so far out is taken to end at 0.
        least = _ROUNDING + np.where(there > 0, there, 0.0)
    low, high = np.zeros(losses.shape), np.maximum(2 * at(np.zeros(losses.shape)), 1e-300)
    while (further := (high < furthest) & (at(high) > least)).any():
        low, high = np.where(further, high, low), np.where(further, 2 * high, high)
    for _ in range(halvings):
        middle = (low + high) / 2
        above = at(middle) > least
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high


def discretise(noise: Noise, losses: np.ndarray, h: float, floor: float = LEAST_FLOOR) -> LossDistributions:
    """Discretise releases with one noise and different losses, shape (u,), all positive and finite."""
    if (masses := getattr(noise, "upper_masses", None)) is not None:
        return _mirrored(masses(losses, h), h)
    rows = zip(losses.tolist(), reach(noise, losses, floor).tolist(), strict=True)
    return stacked([_from_curve(noise, loss, end, h, floor) for loss, end in rows])


def discretised(charges: Charges, h: float, floor: float = LEAST_FLOOR) -> LossDistributions:
    """Discretise releases of one agent, noise by noise."""
    rows = [(noise, charges.loss[charges.kind == k]) for k, noise in enumerate(charges.noises)]
    return stacked([discretise(noise, losses, h, floor) for noise, losses in rows])


def ends(charges: Charges, floor: float = LEAST_FLOOR) -> np.ndarray:
    """Ends of the grids of releases, by `reach`."""
    return charges.each(lambda noise, losses: reach(noise, losses, floor))


def _mirrored(
    upper: np.ndarray, h: float, beyond: float = 0.0, spare: float = 0.0, reverse: np.ndarray | None = None
) -> LossDistributions:
    """Laws from their masses at h, …, w·h, shape (u, w): the image below, and at 0 what is left and ``spare``.

    The image is that of ``reverse``, if that is given: masses of the other direction there.
    """
    places = np.arange(1, upper.shape[1] + 1) * h
    lower = (upper if reverse is None else reverse) * np.exp(-np.minimum(places, 745.0))
    centre = 1 - beyond - upper.sum(axis=1) - lower.sum(axis=1)
    mass = np.concatenate([lower[:, ::-1], np.maximum(centre, 0.0)[:, None] + spare, upper], axis=1)
    return LossDistributions(mass, np.full(upper.shape[0], beyond))


def _from_curve(noise: Noise, loss: float, end: float, h: float, floor: float) -> LossDistributions:
    """Connect the dots of a curve: the polygon in e^ε through its values at 0, h, …, w·h, constant from there on.

    Minus its slope is the mass under Q above; its last value is the mass at +∞. Where rounding of the curve bends the
    polygon the wrong way, the mass is taken to be 0. What that and the rounding lack is made up for: by a factor on all
    masses where the relative error of the curve is known, else by mass at +∞. Either raises the whole curve.
    """
    last = max(int(np.ceil(end / h)), 1)
    error = relative_error(noise)
    places = np.arange(last + 1) * h
    if error is not None:
        places *= 1 - _BACKWARD
    values = np.asarray(noise.delta(np.full(last + 1, loss), places), dtype=float)
    if error is not None and is_pure(noise):
        values[-1] = 0.0
    falls = np.append(-np.diff(values), 0.0)
    upper = _connected(falls, h)
    reverse = _reversed(noise, loss, places, h)
    image = np.append(from_above(upper, np.exp(-h)), 0.0)
    polygon = -np.expm1(-h) * np.cumsum(image[::-1])[::-1]
    if error is None:
        polygon = values[-1] + polygon
        return _mirrored(
            upper[None, :],
            h,
            float(values[-1] + max((values - polygon).max(), 0.0) + _ROUNDING),
            reverse=reverse,
        )
    # Below the floor a value may have lost its digits. The sums of the polygon are wrong by 4u a term at most, and the
    # difference that the mass at 0 is by 2u·log₂(w).
    beyond = 0.0 if is_pure(noise) else values[-1] * (1 + error) + floor
    wanted = values * (1 + error) - beyond
    lacking = wanted > 0
    raised = np.max(wanted[lacking] / polygon[lacking], initial=1.0) * (1 + 1e-15 * last)
    return _mirrored(upper[None, :] * raised, h, float(beyond), 5e-15, reverse)


def _connected(falls: np.ndarray, h: float) -> np.ndarray:
    """Masses above 0 of a polygon in e^ε, by how its values fall: slopes on either side of a point, times e^l."""
    return np.asarray(np.maximum(falls[:-1] / -np.expm1(-h) - falls[1:] / np.expm1(h), 0.0))


#: Share of the masses of another direction that is left at 0, where it raises δ, for what rounding may have added.
_LEFT = 1e-9


def _reversed(noise: Noise, loss: float, places: np.ndarray, h: float) -> np.ndarray | None:
    """Masses of the other direction at h, …, w·h, shape (1, w); None where both directions are alike."""
    reverse = getattr(noise, "reverse", None)
    if reverse is None:
        return None
    values = np.asarray(reverse.delta(np.full(places.size, loss), places), dtype=float)
    return _connected(np.append(-np.diff(values), 0.0), h)[None, :] * (1 - _LEFT)


def from_above(mass: np.ndarray, fall: float) -> np.ndarray:
    """Σ mass_i·fall^(i − j) over i ≥ j, at each j."""
    from scipy.signal import lfilter

    return np.asarray(lfilter([1.0], [1.0, -fall], mass[::-1])[::-1])
