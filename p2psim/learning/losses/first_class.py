"""Compiled forms of losses that the kernels do not know by a code: functions that are called by their address.

A kernel is compiled once for all of them, and its machine code kept: a function's address is an argument like another.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from p2psim.compiled import first_class

if TYPE_CHECKING:
    from p2psim.learning.losses.compiled import ForKernel

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
    import numba

    # Numba calls the feature experimental; how kernels call it is fixed by a test.
    warnings.filterwarnings("ignore", category=numba.NumbaExperimentalFeatureWarning)
    return first_class(slope), first_class(value), np.array(parameters, dtype=np.float64)
