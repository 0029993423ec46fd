"""Slopes of power laws: log-log regression with a confidence interval."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class PowerLaw:
    """y = factor·x^slope.

    Attributes
    ----------
    slope, factor : float
        Exponent, and the value at x = 1.
    low, high : float
        Confidence interval of the slope; infinite for two points, which leave no residual.
    level : float
        Confidence of the interval.
    """

    slope: float
    factor: float
    low: float
    high: float
    level: float

    def __call__(self, x: ArrayLike) -> NDArray[np.float64]:
        """Value at x > 0."""
        value: NDArray[np.float64] = self.factor * np.asarray(x, dtype=float) ** self.slope
        return value


def fit_power_law(x: ArrayLike, y: ArrayLike, level: float = 0.95) -> PowerLaw:
    """Ordinary least squares of log y on log x, with Student's interval for the slope.

    The interval takes the points as independent, with equal relative errors: it measures how well a power
    law fits the points, not the spread of the replicas behind each.

    Parameters
    ----------
    x, y : array_like, shape (m,)
        Positive and finite; at least two different x.
    level : float
        Confidence in (0, 1).

    Raises
    ------
    ValueError
        If a value is not positive and finite, or fewer than two x differ.
    """
    from scipy import stats

    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if not (np.all(np.isfinite(a) & (a > 0)) and np.all(np.isfinite(b) & (b > 0))):
        raise ValueError(f"a power law needs positive, finite values, got x = {a}, y = {b}")
    if len(np.unique(a)) < 2:
        raise ValueError(f"a slope needs at least two different x, got {a}")
    fit = stats.linregress(np.log(a), np.log(b))
    half = float("inf")
    if len(a) > 2:
        half = float(stats.t.ppf(0.5 + level / 2, len(a) - 2) * fit.stderr)
    slope = float(fit.slope)
    return PowerLaw(slope, float(np.exp(fit.intercept)), slope - half, slope + half, level)
