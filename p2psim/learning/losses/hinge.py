"""The hinge loss."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.learning.losses.protocol import Loss
from p2psim.learning.optimum import minimise_hinge


class Hinge(Loss):
    """max(0, 1 − y·θᵀx), y = ±1; at the kink its slope counts as 0."""

    kind: Literal["hinge"] = "hinge"
    intercept: bool = Field(True, description="append a feature that is always one")

    code: ClassVar[int] = 1
    curvature: ClassVar[float] = np.inf
    slope_bound: ClassVar[float] = 1.0
    needs_classes: ClassVar[bool] = True

    @staticmethod
    def values(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """ℓ(z, y), elementwise."""
        return np.maximum(0.0, 1.0 - y * z)

    @staticmethod
    def slopes(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """∂ℓ/∂z, elementwise."""
        return np.where(y * z < 1.0, -y, 0.0)

    @staticmethod
    def second_slopes(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """∂²ℓ/∂z², elementwise: 0 everywhere but at the kink, and so counts there."""
        return np.zeros(np.broadcast(z, y).shape)

    def for_kernel(self) -> int:
        """Its code."""
        return self.code

    def minimise(self, X: np.ndarray, y: np.ndarray, l2: float, theta_max: float) -> np.ndarray:
        """See `Loss.minimise`."""
        return minimise_hinge(X, y, l2, theta_max)
