"""Pessimistic discretisation: the law of a release's loss, moved to a grid.

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

Every pair here is symmetric, P(L = −l) = e^{−l}·P(L = l), and so is its split. So the upper halves of laws are enough.

An unbounded loss goes to +∞ from where its curve has fallen to a floor. The floor follows from the δ that is looked
for, so that what all releases together send to +∞ is a small share of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2psim.privacy.accounting.noises import LaplaceNoise, Noise, PureDP, is_pure, relative_error

#: The least floor: below it a number has few digits.
LEAST_FLOOR = 1e-314
#: Rounding of a curve that a noise of one's own may have; what it has fallen to there goes to +∞.
_ROUNDING = 4e-16
#: Relative error of an ε at which a known curve is evaluated, that its formula may add: it is evaluated so much below.
_BACKWARD = 1e-12
#: Where a noise of one's own has come to its end at the latest, and losses that no grid holds.
_FURTHEST, HUGE = 1e12, 1e100


@dataclass(frozen=True)
class Laws:
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


def together(parts: list[Laws]) -> Laws:
    """All rows in one."""
    width = max(part.width for part in parts)
    mass = [np.pad(part.mass, ((0, 0), (width - part.width, width - part.width))) for part in parts]
    return Laws(np.concatenate(mass), np.concatenate([part.beyond for part in parts]))


def spread(noise: Noise, losses: np.ndarray) -> np.ndarray:
    """How fine laws of losses are: twice their total variation, which is near ε₀ or μ while these are small."""
    return 2 * np.asarray(noise.delta(losses, np.zeros(losses.size)), dtype=float)


def reach(noise: Noise, losses: np.ndarray, floor: float = LEAST_FLOOR) -> np.ndarray:
    """Ends of the grids for losses: where the mass above is nothing, or goes to +∞."""
    if is_pure(noise):
        return np.asarray(noise.pure(losses))

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


def laws(noise: Noise, losses: np.ndarray, h: float, floor: float = LEAST_FLOOR) -> Laws:
    """Discretise releases with one noise and different losses, shape (u,), all positive and finite."""
    if isinstance(noise, LaplaceNoise):
        return _mirrored(_laplace(losses, h), h)
    if isinstance(noise, PureDP):
        return _mirrored(_pure(losses, h), h)
    ends = reach(noise, losses, floor)
    return together(
        [
            _mirrored(*_from_curve(noise, loss, end, h, floor))
            for loss, end in zip(losses.tolist(), ends.tolist(), strict=True)
        ]
    )


def _mirrored(upper: np.ndarray, h: float, beyond: float = 0.0, spare: float = 0.0) -> Laws:
    """Laws from their masses at h, …, w·h, shape (u, w): the image below, and at 0 what is left and ``spare``."""
    places = np.arange(1, upper.shape[1] + 1) * h
    lower = upper * np.exp(-np.minimum(places, 745.0))
    centre = 1 - beyond - upper.sum(axis=1) - lower.sum(axis=1)
    mass = np.concatenate([lower[:, ::-1], np.maximum(centre, 0.0)[:, None] + spare, upper], axis=1)
    return Laws(mass, np.full(upper.shape[0], beyond))


def _cell(losses: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Losses in a column, the number J of the point below each, and its distance r from there, 0 ≤ r < h."""
    e = np.asarray(losses, dtype=float)[:, None]
    # A loss that is a multiple of h up to rounding lies on its point.
    J = np.floor(e / h * (1 + 4e-16))
    return e, J, np.clip(e - J * h, 0.0, h)


def _laplace(losses: np.ndarray, h: float) -> np.ndarray:
    """L has density ¼e^{(l−ε₀)/2} between ±ε₀, and atoms ½ at ε₀ and ½e^{−ε₀} at −ε₀.

    A point whose two cells are full gets tanh(h/4)·e^{(l−ε₀)/2}, half of it from each. The last cell [Jh, (J+1)h] holds
    m = 1 − ½e^{−r/2} with q·e^{Jh} = ½e^{−r/2}, r = ε₀ − Jh, so that w_high = (1 − e^{−r/2})/(1 − e^{−h}).
    """
    e, J, r = _cell(losses, h)
    number = np.arange(1, int(J.max()) + 2)[None, :]
    density = np.tanh(h / 4) * np.exp(np.minimum(number * h - e, 0.0) / 2)
    high = np.expm1(-r / 2) / np.expm1(-h)
    low = -np.expm1(-r / 2) / 2 + 0.5 - high
    mass = np.where(number < J, density, 0.0)
    mass += np.where(number == J, density / 2 + low, 0.0)
    return mass + np.where(number == J + 1, high, 0.0)


def _pure(losses: np.ndarray, h: float) -> np.ndarray:
    """Randomised response: the atom p = 1/(1 + e^{−ε₀}) at ε₀; w_high = p·(1 − e^{−r})/(1 − e^{−h})."""
    e, J, r = _cell(losses, h)
    number = np.arange(1, int(J.max()) + 2)[None, :]
    p = 1 / (1 + np.exp(-np.minimum(e, 745.0)))
    high = p * np.expm1(-r) / np.expm1(-h)
    return np.where(number == J, p - high, 0.0) + np.where(number == J + 1, high, 0.0)


def _from_curve(
    noise: Noise, loss: float, end: float, h: float, floor: float
) -> tuple[np.ndarray, float, float, float]:
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
    # Slopes on either side of a point, times e^l there.
    upper = np.maximum(falls[:-1] / -np.expm1(-h) - falls[1:] / np.expm1(h), 0.0)
    image = np.append(from_above(upper, np.exp(-h)), 0.0)
    polygon = -np.expm1(-h) * np.cumsum(image[::-1])[::-1]
    if error is None:
        polygon = values[-1] + polygon
        return upper[None, :], h, float(values[-1] + max((values - polygon).max(), 0.0) + _ROUNDING), 0.0
    # Below the floor a value may have lost its digits. The sums of the polygon are wrong by 4u a term at most, and the
    # difference that the mass at 0 is by 2u·log₂(w).
    beyond = 0.0 if is_pure(noise) else values[-1] * (1 + error) + floor
    wanted = values * (1 + error) - beyond
    lacking = wanted > 0
    raised = np.max(wanted[lacking] / polygon[lacking], initial=1.0) * (1 + 1e-15 * last)
    return upper[None, :] * raised, h, float(beyond), 5e-15


def from_above(mass: np.ndarray, fall: float) -> np.ndarray:
    """Σ mass_i·fall^(i − j) over i ≥ j, at each j."""
    from scipy.signal import lfilter

    return np.asarray(lfilter([1.0], [1.0, -fall], mass[::-1])[::-1])
