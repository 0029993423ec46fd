"""A loss with a parameter, and its compiled form."""

import math
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

import p2psim
from p2psim.learning.losses.compiled import ForKernel, compiled_form


def _value(z: float, y: float, parameters: np.ndarray) -> float:
    delta, off = parameters[0], abs(z - y)
    return off * off if off <= delta else delta * (2.0 * off - delta)


def _slope(z: float, y: float, parameters: np.ndarray) -> float:
    delta, off = parameters[0], z - y
    return 2.0 * off if abs(off) <= delta else 2.0 * delta * math.copysign(1.0, off)


@p2psim.register
class Huber(p2psim.Loss):
    """(z − y)² up to |z − y| = δ, and δ(2|z − y| − δ) beyond."""

    kind: Literal["huber"] = "huber"
    intercept: bool = Field(False, description="append a feature that is always one")
    delta: float = Field(1.0, gt=0, description="where the loss becomes linear")

    curvature: ClassVar[float] = 2.0

    @property
    def slope_bound(self) -> float:
        return 2 * self.delta

    def values(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        off = np.abs(z - y)
        return np.where(off <= self.delta, off**2, self.delta * (2 * off - self.delta))

    def slopes(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return 2 * np.clip(z - y, -self.delta, self.delta)

    def second_slopes(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where(np.abs(z - y) <= self.delta, 2.0, 0.0)

    def for_kernel(self) -> ForKernel:
        return compiled_form(_value, _slope, (self.delta,))
