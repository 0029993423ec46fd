"""The tilt at which a sum of losses is transformed: where a Rényi bound is best.

Any tilt gives a true account; a good one keeps rounding small beside δ. So laws may be known roughly here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from p2psim.privacy.accounting.noises import Noise
from p2psim.privacy.accounting.rdp import HIGHEST, LOWEST
from p2psim.privacy.accounting.searches import least

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
