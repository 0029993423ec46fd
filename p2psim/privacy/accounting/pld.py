"""The accountant by privacy loss distributions: losses are discretised pessimistically, and added up by FFT.

See `p2psim.privacy.accounting.grids` and `p2psim.privacy.accounting.convolution` for why nothing is lost. The law of a
sum of losses is transformed at the tilt where a Rényi bound is best. Any tilt gives a true account, and a good one
keeps rounding small beside δ. So laws may be known roughly where the tilt is chosen.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from p2psim.privacy.accounting.accountant import Accountant, Formula
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.classical import HIGHEST, LOWEST
from p2psim.privacy.accounting.convolution import NOTHING, Curve, Tilted
from p2psim.privacy.accounting.convolution import curve as of_sum
from p2psim.privacy.accounting.formulas import gaussian_delta
from p2psim.privacy.accounting.gaussian import gaussian_epsilon
from p2psim.privacy.accounting.grids import (
    HUGE,
    LEAST_FLOOR,
    Laws,
    laws,
    least,
    reach,
    spread,
    together,
    upper_crossing,
)
from p2psim.privacy.accounting.noises import (
    GaussianNoise,
    LaplaceNoise,
    Noise,
    PureDP,
    is_pure,
    relative_error,
)

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


@dataclass(frozen=True)
class Fineness:
    """How fine a grid is.

    Attributes
    ----------
    spacing : float
        Its spacing by the root mean square of what the losses change on, at most.
    excess : float
        Share of ε by which discretisation may raise it.
    work : int
        Numbers to transform that an agent is worth: while there are fewer, the grid is made up to 16 times finer.
    """

    spacing: float
    excess: float
    work: int


DEFAULT = Fineness(0.05, 3e-4, 1 << 15)
FINEST = Fineness(0.01, 1e-5, 1 << 18)


@dataclass(frozen=True)
class Released:
    """Different releases of one agent, and how often each was made."""

    noises: tuple[Noise, ...]
    losses: tuple[np.ndarray, ...]
    counts: np.ndarray

    def laws(self, h: float, floor: float = LEAST_FLOOR) -> Laws:
        """Discretise them; rows in the order of `counts`."""
        return together([laws(noise, own, h, floor) for noise, own in self.each()])

    def ends(self, floor: float = LEAST_FLOOR) -> np.ndarray:
        """Ends of their grids, in the order of `counts`."""
        return self.measured(lambda noise, own: reach(noise, own, floor))

    def each(self) -> list[tuple[Noise, np.ndarray]]:
        """Noises with their losses."""
        return list(zip(self.noises, self.losses, strict=True))

    def measured(self, measure: Callable[[Noise, np.ndarray], np.ndarray]) -> np.ndarray:
        """A number of each, in the order of `counts`."""
        return np.concatenate([measure(noise, own) for noise, own in self.each()])

    @cached_property
    def variation(self) -> float:
        """Total variation of all together, at most: the sum of theirs, and so δ at every ε, rounded up.

        Also by what a curve that is too small for a number may hide.
        """
        each = self.measured(lambda noise, own: np.asarray(noise.delta(own, np.zeros(own.size)), dtype=float))
        return float(self.counts @ (each + _TINY)) * (1 + 1e-12)

    @property
    def reaches_far(self) -> bool:
        """Whether some known curve is neither of Laplace noise nor of randomised response: samples, Gaussians."""
        return any(
            relative_error(noise) is not None and not isinstance(noise, LaplaceNoise | PureDP)
            for noise in self.noises
        )

    @property
    def atom(self) -> float:
        """The largest loss that has a probability of its own, 0 for none: it had better lie on the grid."""
        pure = [noise.pure(own) for noise, own in self.each() if is_pure(noise)]
        return float(np.concatenate([np.zeros(1), *pure]).max())


def released(charges: Charges) -> Released:
    """Releases of one agent, Gaussians composed to one."""
    noises, losses, counts = [], [], []
    for k in np.unique(charges.kind):
        noise, own, often = (
            charges.noises[k],
            charges.loss[charges.kind == k],
            charges.counts[charges.kind == k],
        )
        if isinstance(noise, GaussianNoise):
            largest = own.max()
            own, often = largest * np.sqrt((often * (own / largest) ** 2).sum(keepdims=True)), np.ones(1)
        noises.append(noise)
        losses.append(own)
        counts.append(often)
    return Released(tuple(noises), tuple(losses), np.concatenate(counts))


def near(own: Released, objective: Objective, fineness: Fineness, lost: float | None = None) -> Curve:
    """δ(ε) around the ε at which a Rényi bound with the given objective is best.

    The spacing is chosen by what discretisation adds: splitting raises K by no more than λ(λ + 1)h²/8 a release, while
    λh is small, and ε by that over λ. Unbounded losses go to +∞ where that adds no more to δ than ``lost``, or a small
    share of the Rényi bound on it.
    """
    total = float(own.counts.sum())
    scale = float(np.sqrt(np.average(own.measured(spread) ** 2, weights=own.counts)))
    if not scale > 0 or own.ends().max() > HUGE:
        return NOTHING
    floor = LEAST_FLOOR if lost is None else max(lost / total, LEAST_FLOOR)
    if not own.reaches_far:
        first = _by_rough(own, scale, objective)
    elif lost is None:
        floor, first = _by_floors(own, objective)
    else:
        first = _by_sparse(own, floor, objective)
    if first is None:
        return NOTHING
    tilt, _, mean, variance = first
    end = float(own.ends(floor).max())
    at = max(mean, 0.1 * np.sqrt(variance))
    by_excess = np.sqrt(8 * fineness.excess * at / ((tilt + 1) * total))
    h = max(min(fineness.spacing * scale, by_excess), end / _WIDEST)
    size = 20 * np.sqrt(variance) / h * own.counts.size
    h = _aligned(own, max(h * np.clip(size / fineness.work, 1 / 16, 1), end / _WIDEST))
    tilted = Tilted(own.laws(h, floor), own.counts, h, tilt)
    while tilted.size > _LONGEST:
        h = _aligned(own, 2 * h)
        tilted = Tilted(own.laws(h, floor), own.counts, h, tilt)
    return of_sum(tilted)


def _by_rough(own: Released, scale: float, objective: Objective) -> First | None:
    """Look for the tilt on a rough grid; None where a law vanishes on it."""
    rough = max(scale / 6, float(own.ends().max()) / _ROUGH)
    law = own.laws(rough)
    if not (law.mass > 0).any(axis=1).all():
        return None
    with np.errstate(divide="ignore"):
        logs = np.log(law.mass)
    tilt, bound = best_tilt(logs, np.arange(-law.width, law.width + 1) * rough, own.counts, objective)
    tilted = Tilted(law, own.counts, rough, tilt)
    return tilt, bound, tilted.mean + tilted.centre * rough, tilted.variance


def _by_floors(own: Released, objective: Objective) -> tuple[float, First]:
    """The first floor that is a small share of the Rényi bound on δ without what is lost there, and the tilt."""
    total = float(own.counts.sum())
    floor = _SHARE / total
    while True:
        first = _by_sparse(own, floor, objective)
        if floor <= LEAST_FLOOR or np.log(floor * total / _SHARE) <= first[1]:
            return floor, first
        floor = max(floor * _STEP, LEAST_FLOOR)


def _by_sparse(own: Released, floor: float, objective: Objective) -> First:
    """Look for the tilt on sparse laws: those that reach far are much finer near 0 than their ends are far."""
    noises = [noise for noise, some in own.each() for _ in some]
    losses, fine = np.concatenate(own.losses), own.measured(spread)
    rows = zip(noises, losses.tolist(), own.ends(floor).tolist(), fine.tolist(), strict=True)
    return of_points([sparse(*row) for row in rows], own.counts, objective)


def _aligned(own: Released, h: float) -> float:
    """A spacing no larger, of which the largest atom is a multiple, unless all are smaller than one step."""
    return own.atom / float(np.ceil(own.atom / h)) if own.atom > h else h


def epsilon_of(own: Released, delta: float, fineness: Fineness) -> float:
    """ε at δ of one agent's releases."""
    if all(isinstance(noise, GaussianNoise) for noise in own.noises):
        return float(gaussian_epsilon(own.losses[0], delta)[0])
    if own.variation <= delta:
        return 0.0

    def renyi(tilt: np.ndarray, cumulant: np.ndarray) -> np.ndarray:
        """ε by order λ + 1 (Canonne, Kamath, Steinke 2020, Proposition 12)."""
        return (cumulant - np.log(delta) - np.log1p(tilt)) / tilt - np.log1p(1 / tilt)

    found = np.inf
    for share in _SHARES:
        curve = near(own, renyi, fineness, share * delta)
        found = min(found, curve.epsilon(delta))
        if not (own.reaches_far and curve.is_rough(found, delta)):
            break
    return found if np.isfinite(found) else _parted(own, delta)


def _parted(own: Released, delta: float) -> float:
    """ε as the sum of those of single releases, at a share of δ each: where δ is too small for a transform."""
    losses = np.concatenate(own.losses)
    share = delta / float(own.counts.sum())
    curves = [noise for noise, some in own.each() for _ in some]

    def over(epsilon: np.ndarray) -> np.ndarray:
        found = [noise.delta(loss, e) for noise, loss, e in zip(curves, losses, epsilon, strict=True)]
        return np.array(found, dtype=float) - share

    ends = own.ends()
    while ((short := over(ends) > 0) & (ends < 1e300)).any():
        ends = np.where(short, 2 * ends, ends)
    found = np.where(short, np.inf, upper_crossing(over, np.zeros(losses.size), ends))
    return float(own.counts @ found)


def delta_of(own: Released, epsilon: float, fineness: Fineness) -> float:
    """δ at ε of one agent's releases."""
    if all(isinstance(noise, GaussianNoise) for noise in own.noises):
        return float(gaussian_delta(own.losses[0], np.array([epsilon]))[0])

    def chernoff(tilt: np.ndarray, cumulant: np.ndarray) -> np.ndarray:
        return cumulant - tilt * epsilon

    curve = near(own, chernoff, fineness)
    found = min(1.0, own.variation, curve.delta(epsilon))
    for share in _SHARES:
        if not (own.reaches_far and curve.is_rough(epsilon, found)):
            break
        curve = near(own, chernoff, fineness, share * found)
        found = min(found, curve.delta(epsilon))
    return found


def _by_agent(charges: Charges, measure: Callable[[Released], float]) -> np.ndarray:
    """A number of each agent, shape (N,); 0 for one that released nothing."""

    def one(agent: int) -> float:
        if charges.offsets[agent] == charges.offsets[agent + 1]:
            return 0.0
        with np.errstate(over="ignore", under="ignore"):
            return measure(released(charges.alone(agent)))

    agents = range(charges.agents)
    if len(agents) < 2:
        return np.array([one(agent) for agent in agents])
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        return np.array(list(pool.map(one, agents)))


def accountant(fineness: Fineness) -> Accountant:
    """Accountant by loss distributions on grids so fine."""
    return Formula(
        "pld",
        "loss distributions of the noise itself, discretised pessimistically (Doroshenko et al. 2022), by FFT",
        lambda noise: isinstance(noise, Noise),
        lambda charges, delta: _by_agent(charges, lambda own: epsilon_of(own, delta, fineness)),
        lambda charges, epsilon: _by_agent(charges, lambda own: delta_of(own, epsilon, fineness)),
    )


ACCOUNTANT = accountant(DEFAULT)
FINE = accountant(FINEST)

#: From λ and the cumulant K(λ) to what the best tilt makes least.
Objective = Callable[[np.ndarray, np.ndarray], np.ndarray]
#: A tilt, the objective there, and the mean and variance of the tilted sum.
First = tuple[float, float, float, float]

#: Golden sections between the logarithms of the tilts that are looked at: 1e-3 of a logarithm is left.
_SECTIONS = 22
#: Points of a sparse law, along either of two spacings.
_FEW = 300


def best_tilt(
    logs: np.ndarray, places: np.ndarray, counts: np.ndarray, objective: Objective
) -> tuple[float, float]:
    """The tilt at which the objective is least, and its value there, for the logarithms of masses at places."""

    def at(logarithm: np.ndarray) -> np.ndarray:
        tilt = np.exp(logarithm)
        exponents = logs + tilt * places
        peaks = exponents.max(axis=1)
        sums = np.exp(exponents - peaks[:, None]).sum(axis=1)
        return objective(tilt, np.array([counts @ (peaks + np.log(sums))]))

    found, value = least(at, np.full(1, LOWEST), np.full(1, HIGHEST), _SECTIONS)
    return float(np.exp(found[0])), float(value[0])


def of_points(rows: list[tuple[np.ndarray, np.ndarray]], counts: np.ndarray, objective: Objective) -> First:
    """The best tilt of a sum of laws, each given by points and masses."""
    widest = max(points.size for points, _ in rows)
    places, mass = (np.stack([np.pad(row[k], (0, widest - row[k].size)) for row in rows]) for k in (0, 1))
    with np.errstate(divide="ignore"):
        logs = np.log(mass)
    tilt, bound = best_tilt(logs, places, counts, objective)
    exponents = logs + tilt * places
    weights = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    means = (weights * places).sum(axis=1)
    variances = (weights * (places - means[:, None]) ** 2).sum(axis=1)
    return tilt, bound, float(counts @ means), float(counts @ variances)


def sparse(noise: Noise, loss: float, end: float, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Points and masses of a law on few points, dense where it is: what lies beyond its end is left out.

    Parameters
    ----------
    noise : Noise
    loss, end, scale : float
        ``scale`` is how fine the law is near 0.
    """
    rising = np.union1d(np.geomspace(min(scale / 50, end), end, _FEW), np.linspace(0.0, end, _FEW))
    values = np.asarray(noise.delta(np.full(rising.size, loss), rising), dtype=float)
    falls, steps = -np.diff(values), np.diff(rising)
    upper = np.append(falls / -np.expm1(-steps), 0.0)[:-1]
    upper[:-1] -= falls[1:] / np.expm1(steps[1:])
    upper = np.maximum(upper, 0.0)
    lower = upper * np.exp(-np.minimum(rising[1:], 745.0))
    centre = max(1 - float(upper.sum() + lower.sum()), 0.0)
    return np.concatenate([-rising[:0:-1], rising]), np.concatenate([lower[::-1], [centre], upper])
