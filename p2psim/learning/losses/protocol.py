"""What a loss is: a convex function ℓ(z, y) of the score z = θᵀx and the label y of one record.

Scores, labels and values have no unit. Where a method takes arrays, they broadcast to one shape, which the result has.
A loss of one's own is a subclass of `Loss` that gives its ``kind``, ``intercept``, ``curvature``,
``slope_bound``, the three functions, and a compiled form (``for_kernel``).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from p2psim.core.options import Options
from p2psim.learning.optimum import minimise_smooth

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
        """What compiled kernels know it by; see `p2psim.learning.losses.compiled.compiled_form`."""

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
