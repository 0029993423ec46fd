"""Prepared data: what simulations of one scenario in one replica share."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from p2psim.data.classes import SIGNS


@dataclass(frozen=True)
class PreparedData:
    """Prepared data as the algorithm needs them, and what is publicly known of those who hold them.

    Attributes
    ----------
    problem_id : str
        Hash of all that determines it.
    arrays : dict of ndarray
        Of the algorithm's adapter.
    labels : tuple of str
    groups : tuple of str or None
    x_l1, x_max, y_max : float or None
        Public bounds on ‖x‖₁, |x_j| and |y|, the intercept not counted.
    fitted : dict
        What the preparation found, in plain JSON types.
    warnings : tuple of str
    """

    problem_id: str
    arrays: dict[str, np.ndarray]
    labels: tuple[str, ...]
    groups: tuple[str, ...] | None
    x_l1: float | None
    x_max: float | None
    y_max: float | None
    fitted: dict[str, Any]
    warnings: tuple[str, ...]

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, as `p2psim.data.prepare.Prepared` has them; none where labels are numbers."""
        if "classes" in self.arrays:
            return tuple(self.arrays["classes"].tolist())
        tests = self.arrays.get("test_y", np.empty(0))
        return SIGNS if all((np.abs(y) == 1).all() for y in (self.arrays["y"], tests)) else ()

    @property
    def class_count(self) -> int:
        """Number C of classes: 0 where labels are numbers, 2 where they are ±1."""
        return len(self.class_names)
