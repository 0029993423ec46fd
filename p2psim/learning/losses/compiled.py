"""The losses and their slopes for compiled kernels, by the losses' codes."""

import math

from p2psim.compiled import njit

SQUARED, HINGE, LOGISTIC = 0, 1, 2


@njit(inline="always")
def slope(code, z, y):  # type: ignore[no-untyped-def]
    """∂ℓ/∂z of one record."""
    if code == SQUARED:
        return 2.0 * (z - y)
    if code == HINGE:
        return -y if y * z < 1.0 else 0.0
    if y * z > 0.0:
        decay = math.exp(-y * z)
        return -y * decay / (1.0 + decay)
    return -y / (1.0 + math.exp(y * z))


@njit(inline="always")
def value(code, z, y):  # type: ignore[no-untyped-def]
    """ℓ of one record; does not overflow."""
    if code == SQUARED:
        return (z - y) * (z - y)
    if code == HINGE:
        return max(0.0, 1.0 - y * z)
    return max(0.0, -y * z) + math.log1p(math.exp(-abs(z)))
