"""Functions that are compiled: the same from Python and from other kernels, and no more is compiled than is used."""

import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.errors import NumbaError

from p2psim.core import compiled
from p2psim.core.compiled import njit


@njit()
def half(x):
    return x / 2.0


@njit()
def quarter(x):
    return half(half(x))


def test_a_function_that_kernels_call_gets_no_way_in_for_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python can call it all the same; then it gets it."""
    # An empty cache: of what is loaded nothing is compiled.
    monkeypatch.setattr(compiled, "cache_directory", lambda: tmp_path)
    for name in ("half", "quarter"):
        monkeypatch.setattr(sys.modules[__name__], name, njit()(globals()[name].py_func))
    assert quarter(1.0) == 0.25
    assert not half.signatures
    (made,) = half.of_kernels.overloads.values()
    assert not any("cpython" in f.name or "cfunc" in f.name for f in made.library.get_defined_functions())
    assert half(1.0) == 0.5
    assert len(half.signatures) == len(quarter.signatures) == 1


def test_errors_of_kernels_are_those_of_python() -> None:
    for kernel in (half, quarter):
        with pytest.raises(TypeError, match="not enough arguments"):
            kernel()


@njit()
def inverse(x):
    return 1 / x


@njit()
def inverse_of_half(x):
    return inverse(half(x))


def test_an_error_in_a_function_that_kernels_call_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        inverse_of_half(0.0)


@njit(allocates=False)
def first_of(arrays):
    return arrays[0][0]


@njit(allocates=False)
def fresh(size):
    return np.empty(size)


def test_a_function_that_makes_no_arrays_cannot_make_one() -> None:
    """Nobody would count who holds it, nor ever free it."""
    assert first_of((np.array([2.0, 3.0]), np.zeros(1))) == 2.0
    with pytest.raises(NumbaError, match="passed into the function"):
        fresh(3)
