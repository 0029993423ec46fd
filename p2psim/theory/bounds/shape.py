"""The shape of F (11), cost of privacy against records and budgets, fitted from runs; and the noise moment of bounds.

F prints CoP ≤ (c₁/n)·√(Σ1/ε_i²) + (c₂/n²)·Σ1/ε_i². Its constants cannot be computed from the paper (they are swapped
there and lack the dimension; `p2psim.theory.bounds.asynchronous.large_horizon_shape` has ones that hold), but the shape
forecasts well once its constants are fitted from pilot runs. Intervals come from resampled replicas.

`noise_moment` is the second moment of the noise that answers bring into a step, of which all bounds are made.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from p2psim.theory.star import Form

Float = NDArray[np.float64]


def _columns(records: ArrayLike, inverse_squares: ArrayLike) -> Float:
    n = np.asarray(records, dtype=float)
    first = np.sqrt(np.asarray(inverse_squares, dtype=float)) / n
    return np.stack([first, first**2], axis=-1)


@dataclass(frozen=True)
class ShapeBound:
    """(c₁/n)·√(Σ1/ε_i²) + (c₂/n²)·Σ1/ε_i².

    Attributes
    ----------
    c1, c2 : float
        Constants ≥ 0, in records and records² times the unit of ψ.
    """

    c1: float
    c2: float

    def __call__(self, records: ArrayLike, inverse_squares: ArrayLike) -> Float:
        """Value for n records in all and Σ1/ε_i² (arrays broadcast)."""
        return _columns(*np.broadcast_arrays(records, inverse_squares)) @ np.array([self.c1, self.c2])


def fit_shape(records: ArrayLike, inverse_squares: ArrayLike, psi: ArrayLike) -> ShapeBound:
    """Fit c₁, c₂ ≥ 0 to measured ψ by least squares of the relative errors.

    Parameters
    ----------
    records : array_like, shape (m,)
        n of each point.
    inverse_squares : array_like, shape (m,)
        Σ1/ε_i² of each point, > 0.
    psi : array_like, shape (m,)
        ψ of each point, > 0 and finite.

    Raises
    ------
    ValueError
        If there is no point, or one is not positive and finite.
    """
    from scipy.optimize import nnls

    given = map(np.atleast_1d, (records, inverse_squares, psi))
    n, total, target = (v.astype(float) for v in np.broadcast_arrays(*given))
    for name, values in (("records", n), ("inverse_squares", total), ("psi", target)):
        if len(values) == 0 or not np.all(np.isfinite(values) & (values > 0)):
            raise ValueError(f"{name} must be positive and finite, and at least one, got {values}")
    matrix = _columns(n, total) / target[:, None]
    # Columns may differ by many orders of magnitude; nnls is given unit ones.
    size = np.linalg.norm(matrix, axis=0)
    c, _ = nnls(matrix / size, np.ones(len(target)))
    return ShapeBound(*(float(v) for v in c / size))


def inverse_square_sum(epsilon: ArrayLike) -> float:
    """Σ1/ε_i² over the owners (what the papers call "the sum of the privacy budgets squared")."""
    return float(np.sum(1 / np.asarray(epsilon, dtype=float) ** 2))


def noise_moment(
    sensitivity: float,
    horizon: int,
    records: float,
    epsilon: ArrayLike,
    dimension: int,
    form: Form = "corrected",
) -> float:
    """E‖Σ_l (n_l/n)·w_l‖² where all owners answer: v = 8pΞ²T²/n²·Σ1/ε_l².

    w_l has p independent coordinates, Laplace of scale 2ΞT/(n_l·ε_l) and so of variance 8Ξ²T²/(n_l·ε_l)². F and W print
    E‖w‖² without p: false for every p > 1.

    Parameters
    ----------
    sensitivity : float
        Ξ ≥ 0, bound on the L1 norm of a record's gradient.
    horizon : int
        T, answers over which an owner spends its budget.
    records : float
        n > 0, of all owners together.
    epsilon : array_like, shape (N,)
        ε_l > 0; ∞ is no noise.
    dimension : int
        p.
    form : {"printed", "corrected"}
    """
    p = 1 if form == "printed" else dimension
    return 8 * p * (sensitivity * horizon / records) ** 2 * inverse_square_sum(epsilon)


def box_diameter(theta_max: float, dimension: int) -> float:
    """2·θ_max·√p: no two models of the box {‖θ‖_∞ ≤ θ_max} are further apart."""
    return 2 * theta_max * float(np.sqrt(dimension))


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
    def c1(self) -> tuple[float, ...]:
        """Interval of c₁."""
        return tuple(self._interval(self.draws[:, 0]).tolist())

    @property
    def c2(self) -> tuple[float, ...]:
        """Interval of c₂."""
        return tuple(self._interval(self.draws[:, 1]).tolist())

    def interval(self, records: ArrayLike, inverse_squares: ArrayLike) -> Float:
        """Interval of the expected ψ for n records and Σ1/ε_i² (arrays broadcast), shape (2, …).

        Narrower than c₁ and c₂ make it look: where one is too large in a resample, the other is too small.
        """
        root, square = np.moveaxis(_columns(*np.broadcast_arrays(records, inverse_squares)), -1, 0)
        c1, c2 = self.draws.T
        return self._interval(np.multiply.outer(c1, root) + np.multiply.outer(c2, square))


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
    fitted = fit_shape(records, inverse_squares, values.mean(axis=1))
    resampled = np.empty((draws, 2))
    for row in resampled:
        sample = values[:, random.integers(0, replicas, replicas)]
        again = fit_shape(records, inverse_squares, sample.mean(axis=1))
        row[:] = again.c1, again.c2
    return FittedShape(fitted, resampled, level)
