"""Rounding to a grid, for compiled kernels: noise on a grid hides only values that lie on it."""

import math

from p2psim.compiled import njit


@njit(inline="always")
def snapped(value, grid):  # type: ignore[no-untyped-def]
    """The value's nearest multiple of ``grid``, halves upwards; the value itself where ``grid`` is None.

    Halves go one way, so that rounding commutes with adding a multiple of the grid: a value rounded before noise on the
    grid is added is the sum rounded. Which of the two it is, is settled when this is compiled.
    """
    if grid is None:
        return value
    return grid * math.floor(value / grid + 0.5)
