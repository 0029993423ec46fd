"""The accountant by privacy loss distributions: losses are discretised pessimistically, and added up by FFT.

See `p2psim.privacy.accounting.grids` and `p2psim.privacy.accounting.convolution` for why nothing is lost. The law of a
sum of losses is transformed at the tilt where a Rényi bound is best. Any tilt gives a true account, and a good one
keeps rounding small beside δ. So laws may be known roughly where the tilt is chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, reduce
from math import exp, log, log1p

import numpy as np

from p2psim.privacy.accounting import grids
from p2psim.privacy.accounting.accountant import Accountant
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.classical import HIGHEST, LOWEST, gaussian_epsilon
from p2psim.privacy.accounting.convolution import NOTHING, PrivacyProfile, Tilted, cumulant
from p2psim.privacy.accounting.convolution import curve as of_sum
from p2psim.privacy.accounting.gaussian_curves import gaussian_delta
from p2psim.privacy.accounting.noises import Noise, is_gaussian, is_pure, relative_error

#: Points above 0 of a row of the rough grid on which the tilt is looked for, at most, and of any row.
_ROUGH, _WIDEST = 1 << 10, 1 << 16
#: The least positive number.
_TINY = 5e-324
#: Shares of δ that losses which go to +∞ may add, tried in turn: a law that falls slower than any e^{−λl} up to its
#: end is tilted to that end, and little is left elsewhere.
_SHARES = (1e-4, 1e-2, 1e-1)
#: Share of a Rényi bound on δ that they may add, and the steps in which it is looked for.
_SHARE, _STEP = 1e-12, 1e-8
#: Points of a window at most; more make the grid coarser.
_LONGEST = 1 << 20


def released(charges: Charges) -> Charges:
    """Releases of one agent, noise by noise, all that are Gaussian composed to one."""
    gaussian = np.array([is_gaussian(noise) for noise in charges.noises])
    group = np.where(gaussian, gaussian.argmax(), np.arange(gaussian.size))[charges.kind]
    parts = []
    for k in np.unique(group):
        noise, loss, count = charges.noises[k], charges.loss[group == k], charges.counts[group == k]
        if gaussian[k]:
            largest = loss.max()
            loss, count = largest * np.sqrt((count * (loss / largest) ** 2).sum(keepdims=True)), np.ones(1)
        parts.append(Charges.of(noise, loss, count))
    return reduce(Charges.plus, parts)


def _variation(own: Charges) -> float:
    """Total variation of all together, at most: the sum of theirs, and so δ at every ε, rounded up.

    Also by what a curve that is too small for a number may hide.
    """
    return float(own.counts @ (own.each(grids.spread) / 2 + _TINY)) * (1 + 1e-12)


def _reaches_far(own: Charges) -> bool:
    """Whether some known curve is neither of Laplace noise nor of randomised response: samples, Gaussians."""
    return any(
        relative_error(noise) is not None and not hasattr(noise, "upper_masses") for noise in own.noises
    )


def near(own: Charges, objective: Objective, fineness: PLD, lost: float | None = None) -> PrivacyProfile:
    """δ(ε) around the ε at which a Rényi bound with the given objective is best.

    The spacing is chosen by what discretisation adds: splitting raises K by no more than λ(λ + 1)h²/8 a release, while
    λh is small, and ε by that over λ. Unbounded losses go to +∞ where that adds no more to δ than ``lost``, or a small
    share of the Rényi bound on it.
    """
    total = float(own.counts.sum())
    scale = float(np.sqrt(np.average(own.each(grids.spread) ** 2, weights=own.counts)))
    if not scale > 0 or grids.ends(own).max() > grids.HUGE:
        return NOTHING
    floor = grids.LEAST_FLOOR if lost is None else max(lost / total, grids.LEAST_FLOOR)
    if not _reaches_far(own):
        first = _by_rough(own, scale, objective)
    elif lost is None:
        floor, first = _by_floors(own, objective)
    else:
        first = _by_sparse(own, floor, objective)
    if first is None:
        return NOTHING
    tilt, _, mean, variance = first
    end = float(grids.ends(own, floor).max())
    at = max(mean, 0.1 * np.sqrt(variance))
    by_excess = np.sqrt(8 * fineness.excess * at / ((tilt + 1) * total))
    h = max(min(fineness.spacing * scale, by_excess), end / _WIDEST)
    size = 20 * np.sqrt(variance) / h * own.counts.size
    h = _aligned(own, max(h * np.clip(size / fineness.work, 1 / 16, 1), end / _WIDEST))
    while (tilted := Tilted(grids.discretised(own, h, floor), own.counts, h, tilt)).window.size > _LONGEST:
        h = _aligned(own, 2 * h)
    return of_sum(tilted)


def _by_rough(own: Charges, scale: float, objective: Objective) -> First | None:
    """Look for the tilt on a rough grid; None where a law vanishes on it."""
    rough = max(scale / 6, float(grids.ends(own).max()) / _ROUGH)
    law = grids.discretised(own, rough)
    if not (law.mass > 0).any(axis=1).all():
        return None
    tilt, bound = best_tilt(law.mass, np.arange(-law.width, law.width + 1) * rough, own.counts, objective)
    tilted = Tilted(law, own.counts, rough, tilt)
    return tilt, bound, tilted.mean + tilted.centre * rough, tilted.variance


def _by_floors(own: Charges, objective: Objective) -> tuple[float, First]:
    """The first floor that is a small share of the Rényi bound on δ without what is lost there, and the tilt."""
    total = float(own.counts.sum())
    floor = _SHARE / total
    while True:
        first = _by_sparse(own, floor, objective)
        if floor <= grids.LEAST_FLOOR or np.log(floor * total / _SHARE) <= first[1]:
            return floor, first
        floor = max(floor * _STEP, grids.LEAST_FLOOR)


def _by_sparse(own: Charges, floor: float, objective: Objective) -> First:
    """Look for the tilt on sparse laws: those that reach far are much finer near 0 than their ends are far."""
    numbers = zip(own.kind, own.loss, grids.ends(own, floor), own.each(grids.spread), strict=True)
    laws = [sparse(own.noises[k], loss, end, scale) for k, loss, end, scale in numbers]
    widest = max(points.size for points, _ in laws)
    places, mass = (np.stack([np.pad(law[k], (0, widest - law[k].size)) for law in laws]) for k in (0, 1))
    tilt, bound = best_tilt(mass, places, own.counts, objective)
    with np.errstate(divide="ignore"):
        exponents = np.log(mass) + tilt * places
    weights = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    means = (weights * places).sum(axis=1)
    variances = (weights * (places - means[:, None]) ** 2).sum(axis=1)
    return tilt, bound, float(own.counts @ means), float(own.counts @ variances)


def _aligned(own: Charges, h: float) -> float:
    """A spacing no larger, of which the largest atom is a multiple, unless all are smaller than one step."""
    atom = own.each(lambda noise, losses: noise.pure(losses) if is_pure(noise) else 0 * losses).max()
    return float(atom / np.ceil(atom / h)) if atom > h else h


def epsilon_of(own: Charges, delta: float, fineness: PLD) -> float:
    """ε at δ of one agent's releases."""
    if all(map(is_gaussian, own.noises)):
        return float(gaussian_epsilon(own.loss, delta)[0])
    if _variation(own) <= delta:
        return 0.0

    def renyi(tilt: float, cumulant: float) -> float:
        """ε by order λ + 1 (Canonne, Kamath, Steinke 2020, Proposition 12)."""
        return (cumulant - log(delta) - log1p(tilt)) / tilt - log1p(1 / tilt)

    found = np.inf
    for share in _SHARES:
        curve = near(own, renyi, fineness, share * delta)
        found = min(found, curve.epsilon(delta))
        if not (_reaches_far(own) and curve.is_rough(found, delta)):
            break
    return found if np.isfinite(found) else _parted(own, delta)


def _parted(own: Charges, delta: float) -> float:
    """ε as the sum of those of single releases, at a share of δ each: where δ is too small for a transform."""
    share = delta / float(own.counts.sum())

    def over(epsilon: np.ndarray) -> np.ndarray:
        return own.each(lambda noise, losses, e: noise.delta(losses, e), epsilon) - share

    high = grids.ends(own)
    while ((short := over(high) > 0) & (high < 1e300)).any():
        high = np.where(short, 2 * high, high)
    return float(own.counts @ np.where(short, np.inf, grids.upper_crossing(over, np.zeros(high.size), high)))


def delta_of(own: Charges, epsilon: float, fineness: PLD) -> float:
    """δ at ε of one agent's releases."""
    if all(map(is_gaussian, own.noises)):
        return float(gaussian_delta(own.loss, np.array([epsilon]))[0])

    def chernoff(tilt: float, cumulant: float) -> float:
        return cumulant - tilt * epsilon

    curve = near(own, chernoff, fineness)
    found = min(1.0, _variation(own), curve.delta(epsilon))
    for share in _SHARES:
        if not (_reaches_far(own) and curve.is_rough(epsilon, found)):
            break
        curve = near(own, chernoff, fineness, share * found)
        found = min(found, curve.delta(epsilon))
    return found


class PLD(Accountant):
    """Privacy loss distributions on grids.

    Parameters
    ----------
    spacing : float
        Of the grid, by the root mean square of what the losses change on, at most.
    excess : float
        Share of ε by which discretisation may raise it.
    work : int
        Numbers to transform that an agent is worth: while there are fewer, the grid is made up to 16 times finer.
    """

    name = "pld"
    meaning = (
        "loss distributions of the noise itself, discretised pessimistically (Doroshenko et al. 2022), by FFT"
    )

    def __init__(self, spacing: float = 0.05, excess: float = 3e-4, work: int = 1 << 15):
        self.spacing, self.excess, self.work = spacing, excess, work

    def supports(self, noise: Noise) -> bool:
        """Whatever has a curve."""
        return isinstance(noise, Noise)

    def epsilon_bound(self, charges: Charges, delta: float) -> np.ndarray:
        """ε of each agent at δ, by `epsilon_of`."""
        return _by_agent(
            charges, lambda own: (kept if own.loss.size <= _FEW_LOSSES else epsilon_of)(own, delta, self)
        )

    def delta_bound(self, charges: Charges, epsilon: float) -> np.ndarray:
        """δ of each agent at ε, by `delta_of`."""
        return _by_agent(charges, lambda own: delta_of(own, epsilon, self))


@lru_cache(4096)
def kept(own: Charges, delta: float, fineness: PLD) -> float:
    """ε at δ of one agent's releases, kept: agents and moments of all simulations have few that differ."""
    return epsilon_of(own, delta, fineness)


#: Accounts of more losses that differ are not kept: they take memory, and hardly come again.
_FEW_LOSSES = 64


def _by_agent(charges: Charges, measure: Callable[[Charges], float]) -> np.ndarray:
    """A number of each agent, shape (N,); 0 for one that released nothing."""

    def of_agent(agent: int) -> float:
        if charges.offsets[agent] == charges.offsets[agent + 1]:
            return 0.0
        with np.errstate(over="ignore", under="ignore"):
            return measure(released(charges.pick(np.array([agent]))))

    # One after the other: each is thousands of short calls, and threads would wait for Python's lock most of the time.
    return np.array([of_agent(agent) for agent in range(charges.agents)])


#: On a finer grid.
FINE = PLD(0.01, 1e-5, 1 << 18)

#: From λ and the cumulant K(λ) to what the best tilt makes least.
Objective = Callable[[float, float], float]
#: A tilt, the objective there, and the mean and variance of the tilted sum.
First = tuple[float, float, float, float]

#: Golden sections between the logarithms of the tilts that are looked at: 1e-3 of a logarithm is left.
_SECTIONS = 22
#: Points of a sparse law, along either of two spacings.
_FEW = 300


def best_tilt(
    mass: np.ndarray, places: np.ndarray, counts: np.ndarray, objective: Objective
) -> tuple[float, float]:
    """The tilt at which the objective is least, and its value there, for masses at places."""

    def at(logarithm: float) -> float:
        tilt = exp(logarithm)
        return objective(tilt, cumulant(mass, places, counts, tilt))

    # As `grids.least`, of one function, and with single numbers: arrays of one take three times as long.
    low, high = LOWEST, HIGHEST
    left, right = high - grids.GOLDEN * (high - low), low + grids.GOLDEN * (high - low)
    at_left, at_right = at(left), at(right)
    for _ in range(_SECTIONS):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - grids.GOLDEN * (high - low)
            at_left = at(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + grids.GOLDEN * (high - low)
            at_right = at(right)
    value, found = min((at_left, left), (at_right, right))
    return exp(found), value


def sparse(noise: Noise, loss: float, end: float, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Points and masses of a law on few points, dense where it is: what lies beyond its end is left out.

    Parameters
    ----------
    noise : Noise
    loss, end, scale : float
        ``scale`` is how fine the law is near 0.
    """
    if not end > 0:  # too small a law for a number
        return np.zeros(1), np.ones(1)
    first = max(min(scale / 50, end), _TINY)  # which may underflow
    rising = np.union1d(np.geomspace(first, end, _FEW), np.linspace(0.0, end, _FEW))

    def above(noise: Noise) -> np.ndarray:
        values = np.asarray(noise.delta(np.full(rising.size, loss), rising), dtype=float)
        falls, steps = -np.diff(values), np.diff(rising)
        upper = np.append(falls / -np.expm1(-steps), 0.0)[:-1]
        upper[:-1] -= falls[1:] / np.expm1(steps[1:])
        return np.maximum(upper, 0.0)

    upper = above(noise)
    reverse = getattr(noise, "reverse", None)
    lower = (upper if reverse is None else above(reverse)) * np.exp(-np.minimum(rising[1:], 745.0))
    centre = max(1 - float(upper.sum() + lower.sum()), 0.0)
    return np.concatenate([-rising[:0:-1], rising]), np.concatenate([lower[::-1], [centre], upper])
