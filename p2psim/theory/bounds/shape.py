"""The shape of F (11): cost of privacy against records and budgets, with constants fitted from runs.

F prints CoP ≤ (c₁/n)·√(Σ1/ε_i²) + (c₂/n²)·Σ1/ε_i². Its constants are not to be computed from the paper (they are
swapped there and lack the dimension; `p2psim.theory.bounds.asynchronous.large_horizon_shape` has ones that hold), but
the shape forecasts well once they are fitted from pilot runs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float = NDArray[np.float64]


def _columns(records: ArrayLike, inverse_squares: ArrayLike) -> Float:
    n = np.asarray(records, dtype=float)
    total = np.asarray(inverse_squares, dtype=float)
    first = np.sqrt(total) / n
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
        value: Float = _columns(*np.broadcast_arrays(records, inverse_squares)) @ np.array([self.c1, self.c2])
        return value


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

    n, total, target = (
        v.astype(float) for v in np.broadcast_arrays(*map(np.atleast_1d, (records, inverse_squares, psi)))
    )
    for name, values in (("records", n), ("inverse_squares", total), ("psi", target)):
        if len(values) == 0 or not np.all(np.isfinite(values) & (values > 0)):
            raise ValueError(f"{name} must be positive and finite, and at least one, got {values}")
    matrix = _columns(n, total) / target[:, None]
    # Columns may differ by many orders of magnitude; nnls is given unit ones.
    size = np.linalg.norm(matrix, axis=0)
    c, _ = nnls(matrix / size, np.ones(len(target)))
    return ShapeBound(*(float(v) for v in c / size))
