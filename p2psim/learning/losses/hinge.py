"""The hinge loss."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.options import Options


class Hinge(Options):
    """max(0, 1 − y·θᵀx), y = ±1; at the kink its slope counts as 0."""

    kind: Literal["hinge"] = "hinge"
    intercept: bool = Field(True, description="append a feature that is always one")

    code: ClassVar[int] = 1
    curvature: ClassVar[float] = np.inf
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

    @staticmethod
    def slope_bounds(x_l1: np.ndarray, y: np.ndarray, theta_max: float) -> np.ndarray:
        """Largest |∂ℓ/∂z| of records with the given ‖x‖₁ and y = ±1, whatever θ."""
        return np.ones(np.broadcast(x_l1, y).shape)
