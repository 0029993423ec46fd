"""Losses and their slopes for compiled kernels: those that are built in, and those that kernels call by an address.

Kernels take a loss as `Loss.for_kernel` gives it: the code of a loss that is built in, whose formulas are then part of
the kernel's machine code, or functions that are called by their address, with their parameters. A kernel is compiled
once for all such functions, and its machine code is kept: a function's address is an argument like any other.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from p2psim.core.compiled import SCALAR, called_by_address, njit

SQUARED, HINGE, LOGISTIC = 0, 1, 2

#: A code; or slope, value and parameters.
ForKernel = int | tuple[Any, Any, np.ndarray]


def slope(loss: Any, z: Any, y: Any) -> Any:
    """∂ℓ/∂z of one record; for kernels."""
    raise NotImplementedError("for compiled code")


def value(loss: Any, z: Any, y: Any) -> Any:
    """ℓ of one record; does not overflow; for kernels."""
    raise NotImplementedError("for compiled code")


def parts(loss: Any, z: Any, y: Any) -> Any:
    """∂ℓ/∂z of a record, and ℓ as a term and the factor whose logarithm is added; for kernels."""
    raise NotImplementedError("for compiled code")


@njit(inline="always")
def _falling(margin, decay):  # type: ignore[no-untyped-def]
    """``decay`` where the class is right, else 1: without a branch, as nobody can predict which it is."""
    is_right = 1.0 * (margin > 0.0)
    return decay * is_right + (1.0 - is_right)


@njit(inline="always")
def _slope(code, z, y):  # type: ignore[no-untyped-def]
    if code == SQUARED:
        return 2.0 * (z - y)
    if code == HINGE:
        return -y if y * z < 1.0 else 0.0
    if code != LOGISTIC:
        raise ValueError("unknown code of a loss")
    decay = math.exp(-abs(y * z))
    return -y * _falling(y * z, decay) / (1.0 + decay)


@njit(inline="always")
def _value(code, z, y):  # type: ignore[no-untyped-def]
    if code == SQUARED:
        return (z - y) * (z - y)
    if code == HINGE:
        return max(0.0, 1.0 - y * z)
    if code != LOGISTIC:
        raise ValueError("unknown code of a loss")
    return max(0.0, -y * z) + math.log1p(math.exp(-abs(z)))


@njit(inline="always")
def _parts(code, z, y):  # type: ignore[no-untyped-def]
    if code == LOGISTIC:
        decay = math.exp(-abs(z))
        factor = 1.0 + decay
        return -y * _falling(y * z, decay) / factor, max(0.0, -y * z), factor
    if code == SQUARED:
        return 2.0 * (z - y), (z - y) * (z - y), 1.0
    if code == HINGE:
        return -y if y * z < 1.0 else 0.0, max(0.0, 1.0 - y * z), 1.0
    raise ValueError("unknown code of a loss")


@overload(slope)
def _of_slope(loss, z, y):  # type: ignore[no-untyped-def]
    if isinstance(loss, types.Integer):
        return lambda loss, z, y: _slope(loss, z, y)
    return lambda loss, z, y: loss[0](z, y, loss[2])


@overload(value)
def _of_value(loss, z, y):  # type: ignore[no-untyped-def]
    if isinstance(loss, types.Integer):
        return lambda loss, z, y: _value(loss, z, y)
    return lambda loss, z, y: loss[1](z, y, loss[2])


@overload(parts)
def _of_parts(loss, z, y):  # type: ignore[no-untyped-def]
    if isinstance(loss, types.Integer):
        return lambda loss, z, y: _parts(loss, z, y)
    return lambda loss, z, y: (loss[0](z, y, loss[2]), loss[1](z, y, loss[2]), 1.0)


@njit(inline="always")
def add_product(matrix, vector, out):  # type: ignore[no-untyped-def]
    """Add a square matrix times a vector to ``out``.

    Four rows are summed together, each in its own order: the same bits as one by one, and no sum waits for another.
    """
    p, a = vector.size, 0
    while a + 4 <= p:
        s0, s1, s2, s3 = out[a], out[a + 1], out[a + 2], out[a + 3]
        for d in range(p):
            v = vector[d]
            s0 += matrix[a, d] * v
            s1 += matrix[a + 1, d] * v
            s2 += matrix[a + 2, d] * v
            s3 += matrix[a + 3, d] * v
        out[a], out[a + 1], out[a + 2], out[a + 3] = s0, s1, s2, s3
        a += 4
    while a < p:
        for d in range(p):
            out[a] += matrix[a, d] * vector[d]
        a += 1


#: Of a score, a label and the loss's parameters; returns one number.
Scalar = Callable[[float, float, np.ndarray], float]


def compiled_form(value: Scalar, slope: Scalar, parameters: Sequence[float] = ()) -> ForKernel:
    """What `Loss.for_kernel` returns of a loss of one's own.

    Parameters
    ----------
    value, slope : callable
        ℓ and ∂ℓ/∂z of one record, as plain functions of a module: ``function(z, y, parameters)`` of two floats and an
        array of float64, which must not be written to, to a float. Numba compiles them without Python objects, with the
        signature ``float64(float64, float64, float64[::1])``; they must not raise.
    parameters : sequence of float
        Numbers that they depend on, such as Huber's δ. What they take from global variables is fixed when they are
        compiled.
    """
    slope_called, value_called = called_by_address((slope, SCALAR), (value, SCALAR))
    return slope_called, value_called, np.array(parameters, dtype=np.float64)
