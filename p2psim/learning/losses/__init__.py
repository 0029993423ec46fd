"""Losses of one record, each a convex function ℓ(z, y) of the score z = θᵀx and the label y.

Scores, labels and values have no unit. Where a method takes arrays, they broadcast to one shape, which the result has.
A loss of one's own is a subclass of `Loss` that gives its ``kind``, ``intercept``, ``curvature``,
``slope_bound``, the three functions, and a compiled form (``for_kernel``).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.options import BY_NAME, Options
from p2psim.core.part_types import AnyOf
from p2psim.core.registry import register_all
from p2psim.learning.optimum import minimise_hinge, minimise_smooth, minimise_squared

if TYPE_CHECKING:
    from p2psim.learning.losses.compiled import ForKernel


class Loss(Options):
    """Base of all losses.

    Attributes
    ----------
    kind : str
        Its name.
    intercept : bool
        Whether a feature that is always one is appended to x.
    needs_classes : bool
        Whether labels are classes, −1 and +1; otherwise they are any numbers.
    is_squared_error : bool
        Whether ℓ is (z − y)² itself, so that sums of xxᵀ, y·x and y² over records say all.
    twice_differentiable : bool
        Whether ∂²ℓ/∂z² exists at every score.
    """

    # Parts declare them with a Literal and a description of their own.
    kind: Any
    intercept: bool

    part_kind: ClassVar[str] = "loss"
    needs_classes: ClassVar[bool] = False
    is_squared_error: ClassVar[bool] = False
    twice_differentiable: ClassVar[bool] = False

    @property
    @abstractmethod
    def curvature(self) -> float:
        """Largest ∂²ℓ/∂z², which sets steps; infinite where the slope jumps, at a kink."""

    @property
    @abstractmethod
    def slope_bound(self) -> float:
        """Largest |∂ℓ/∂z| at any score, from which sensitivity follows; infinite where there is none."""

    @abstractmethod
    def values(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """ℓ(z, y), elementwise; not negative."""

    @abstractmethod
    def slopes(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """∂ℓ/∂z, elementwise; at a kink any slope between its two sides."""

    @abstractmethod
    def second_slopes(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """∂²ℓ/∂z², elementwise, from 0 to the curvature; where the slope has a corner, that of one side."""

    def slope_bounds(self, x_l1: np.ndarray, y: np.ndarray, theta_max: float) -> np.ndarray:
        """Largest |∂ℓ/∂z| of records with the given ‖x‖₁ and label (or its size) while ‖θ‖_∞ ≤ theta_max."""
        return np.full(np.broadcast(x_l1, y).shape, self.slope_bound)

    @abstractmethod
    def for_kernel(self) -> ForKernel:
        """Its form for compiled kernels; see `p2psim.learning.losses.compiled.compiled_form`."""

    def minimise(self, X: np.ndarray, y: np.ndarray, l2: float, theta_max: float) -> np.ndarray:
        """Minimiser of l2·‖θ‖² + (1/n) Σ ℓ(θᵀx, y) over the box ‖θ‖_∞ ≤ theta_max, shape (p,).

        Whoever calls it checks it: see `p2psim.learning.optimum.minimise`.

        Parameters
        ----------
        X : ndarray, shape (n, p)
        y : ndarray, shape (n,)
        l2 : float
            Positive.
        theta_max : float
            Positive, or infinite.

        Raises
        ------
        SimulationError
            If it is not found.
        """
        return minimise_smooth(self, X, y, l2, theta_max)


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


register_all([Squared, Hinge, Logistic])

#: Any loss that is registered.
AnyLoss = Annotated[Loss, AnyOf("loss"), BY_NAME]

__all__ = ["AnyLoss", "Hinge", "Logistic", "Loss", "Squared"]
