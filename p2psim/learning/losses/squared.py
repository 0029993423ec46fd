"""The squared loss."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.learning.losses.protocol import Loss
from p2psim.learning.optimum import minimise_squared


class Squared(Loss):
    """(θᵀx − y)²."""

    kind: Literal["squared"] = "squared"
    intercept: bool = Field(False, description="append a feature that is always one")

    code: ClassVar[int] = 0
    curvature: ClassVar[float] = 2.0
    slope_bound: ClassVar[float] = np.inf
    is_squared_error: ClassVar[bool] = True
    twice_differentiable: ClassVar[bool] = True

    @staticmethod
    def values(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """ℓ(z, y), elementwise."""
        return (z - y) ** 2

    @staticmethod
    def slopes(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """∂ℓ/∂z, elementwise."""
        return 2.0 * (z - y)

    @staticmethod
    def second_slopes(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """∂²ℓ/∂z² = 2, elementwise."""
        return np.full(np.broadcast(z, y).shape, 2.0)

    @staticmethod
    def slope_bounds(x_l1: np.ndarray, y: np.ndarray, theta_max: float) -> np.ndarray:
        """Largest |∂ℓ/∂z| of records with the given ‖x‖₁ and |y| while ‖θ‖_∞ ≤ theta_max."""
        return 2.0 * (theta_max * x_l1 + np.abs(y))

    def for_kernel(self) -> int:
        """Its code."""
        return self.code

    def minimise(self, X: np.ndarray, y: np.ndarray, l2: float, theta_max: float) -> np.ndarray:
        """See `Loss.minimise`."""
        return minimise_squared(X.T @ X / len(y), X.T @ y / len(y), l2, theta_max)
