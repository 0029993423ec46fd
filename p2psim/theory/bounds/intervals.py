"""Fit of the shape of F (11) from pilot runs, with intervals from resampled replicas."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from p2psim.theory.bounds.shape import ShapeBound, fit_shape

Float = NDArray[np.float64]

#: Replicas below which resampling says little.
FEWEST = 5


@dataclass(frozen=True)
class FittedShape:
    """A fit, and fits of resampled replicas.

    Attributes
    ----------
    bound : ShapeBound
        Fit to the means of all replicas.
    draws : ndarray, shape (draws, 2)
        (c₁, c₂) of each resample.
    level : float
        Of intervals, in (0, 1).
    """

    bound: ShapeBound
    draws: Float
    level: float

    def _interval(self, values: Float) -> Float:
        tail = (1 - self.level) / 2
        return np.quantile(values, [tail, 1 - tail], axis=0)

    @property
    def c1(self) -> tuple[float, float]:
        """Interval of c₁."""
        low, high = self._interval(self.draws[:, 0])
        return float(low), float(high)

    @property
    def c2(self) -> tuple[float, float]:
        """Interval of c₂."""
        low, high = self._interval(self.draws[:, 1])
        return float(low), float(high)

    def interval(self, records: ArrayLike, inverse_squares: ArrayLike) -> Float:
        """Interval of the expected ψ for n records and Σ1/ε_i² (arrays broadcast), shape (2, …).

        Narrower than c₁ and c₂ make it look: where one is too large in a resample, the other is too small.
        """
        n, total = np.broadcast_arrays(
            np.asarray(records, dtype=float), np.asarray(inverse_squares, dtype=float)
        )
        root = np.sqrt(total) / n
        return self._interval(
            np.multiply.outer(self.draws[:, 0], root) + np.multiply.outer(self.draws[:, 1], root**2)
        )


def fit_shape_with_intervals(
    records: ArrayLike,
    inverse_squares: ArrayLike,
    psi: ArrayLike,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> FittedShape:
    """Fit c₁, c₂ ≥ 0 to means over replicas; percentile intervals (Efron, Tibshirani 1993, chapter 13).

    A resample takes the same replicas at all points: right both where a replica has the same seeds at all points and
    where points are independent.

    Parameters
    ----------
    records, inverse_squares : array_like, shape (m,)
        n and Σ1/ε_i² of each point.
    psi : array_like, shape (m, replicas)
        What privacy costs in each replica: ψ less what ψ is without noise. Single ones may be negative.
    level : float
        In (0, 1).
    draws : int
        Resamples.
    seed : int
        Of the resamples.

    Raises
    ------
    ValueError
        If there are fewer than `FEWEST` replicas, the level is not in (0, 1), or a mean over replicas, resampled or
        not, is not positive and finite.
    """
    values = np.asarray(psi, dtype=float)
    if values.ndim != 2 or values.shape[1] < FEWEST:
        raise ValueError(f"psi must be points by at least {FEWEST} replicas, got shape {values.shape}")
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level}")
    replicas = values.shape[1]
    random = np.random.default_rng(seed)
    made = fit_shape(records, inverse_squares, values.mean(axis=1))
    found = np.empty((draws, 2))
    for row in found:
        again = fit_shape(
            records, inverse_squares, values[:, random.integers(0, replicas, replicas)].mean(axis=1)
        )
        row[:] = again.c1, again.c2
    return FittedShape(made, found, level)
