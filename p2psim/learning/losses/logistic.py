"""The logistic loss."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.learning.losses.protocol import Loss


class Logistic(Loss):
    """log(1 + exp(−y·θᵀx)), y = ±1."""

    kind: Literal["logistic"] = "logistic"
    intercept: bool = Field(False, description="append a feature that is always one")

    code: ClassVar[int] = 2
    curvature: ClassVar[float] = 0.25
    slope_bound: ClassVar[float] = 1.0
    needs_classes: ClassVar[bool] = True
    twice_differentiable: ClassVar[bool] = True

    @staticmethod
    def values(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """ℓ(z, y), elementwise; does not overflow."""
        return np.logaddexp(0.0, -y * z)

    @staticmethod
    def slopes(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """∂ℓ/∂z = −y/(1 + exp(y·z)), elementwise; does not overflow."""
        decay = np.exp(-np.abs(z))
        small = np.where(y * z > 0, decay, 1.0)
        return -y * small / (1.0 + decay)

    @staticmethod
    def second_slopes(z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """∂²ℓ/∂z² = |ℓ'|·(1 − |ℓ'|), elementwise."""
        steep = np.abs(Logistic.slopes(z, y))
        return steep * (1 - steep)

    @staticmethod
    def slope_bounds(x_l1: np.ndarray, y: np.ndarray, theta_max: float) -> np.ndarray:
        """Largest |∂ℓ/∂z| of records with the given ‖x‖₁ and y = ±1 while ‖θ‖_∞ ≤ theta_max."""
        return np.broadcast_to(1.0 / (1.0 + np.exp(-theta_max * x_l1)), np.broadcast(x_l1, y).shape)

    def for_kernel(self) -> int:
        """Its code."""
        return self.code
