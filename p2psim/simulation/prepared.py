"""Prepared data: what simulations of one scenario in one replica share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


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
