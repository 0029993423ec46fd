"""What was recorded beside what a replay gives, and how far they are apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Compared:
    """Recorded numbers and recomputed ones.

    Attributes
    ----------
    recorded, again : ndarray of one shape
    scale : ndarray or float
        Positive; differences are relative to it.
    """

    recorded: np.ndarray
    again: np.ndarray
    scale: np.ndarray | float

    @property
    def difference(self) -> float:
        """Largest relative difference; infinite where the shapes differ, or a number is undefined on one side."""
        return largest_difference(self.recorded, self.again, self.scale)


def largest_difference(a: np.ndarray, b: np.ndarray, scale: np.ndarray | float) -> float:
    """Largest difference of two arrays, relative to a scale; infinite where the shapes differ or NaN decides."""
    if a.shape != b.shape:
        return float("inf")
    if not a.size:
        return 0.0
    with np.errstate(invalid="ignore"):
        apart = np.where(a == b, 0.0, np.abs(a - b) / scale)
    return float(np.where(np.isnan(apart), np.inf, apart).max())


def drift(first: Iterable[Compared], second: Iterable[Compared]) -> float:
    """How far two replays of the same records are apart, as `Compared.difference` measures it."""
    pairs = zip(first, second, strict=True)
    return max((largest_difference(one.again, two.again, one.scale) for one, two in pairs), default=0.0)
