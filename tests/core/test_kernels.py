"""Functions that are compiled: the same from Python and from other kernels, and no more is compiled than is used."""

import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import types
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


@njit()
def not_negative(x):
    if x < 0:
        raise ValueError("negative", x)
    return x


@njit()
def next_of(x):
    return not_negative(x) + 1


@njit()
def next_of_half(x):
    return not_negative(x) / 2 + 1


def test_an_error_of_values_in_a_function_that_kernels_call_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where both are compiled, where the function comes from the cache, and where the kernels do."""
    monkeypatch.setattr(compiled, "cache_directory", lambda: tmp_path)
    module = sys.modules[__name__]
    for names in (["next_of"], ["next_of_half"], ["next_of", "next_of_half"]):
        for name in ("not_negative", *names):
            monkeypatch.setattr(module, name, njit()(getattr(module, name).py_func))
        for name in names:
            kernel = getattr(module, name)
            assert kernel(2) == kernel.py_func(2)
            with pytest.raises(ValueError, match="negative") as caught:
                kernel(-3)
            assert caught.value.args == ("negative", -3)


@njit()
def is_even(n):
    return True if n == 0 else is_odd(n - 1)


@njit()
def is_odd(n):
    return False if n == 0 else is_even(n - 1)


@njit()
def how_many_are_even(numbers):
    count = 0
    for n in numbers:
        if is_even(n):
            count += 1
    return count


def test_functions_that_call_each_other_are_called_by_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "cache_directory", lambda: tmp_path)
    for name in ("is_even", "is_odd", "how_many_are_even"):
        monkeypatch.setattr(sys.modules[__name__], name, njit()(globals()[name].py_func))
    assert how_many_are_even(np.arange(7)) == 4


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


@njit(allocates=False)
def larger(x, y):
    return max(x, y)


@njit()
def largest_as_an_array(x, y):
    """Both compile `max` for the same types, each with its own options."""
    out = np.empty(2)
    out[0] = max(x, y)
    out[1] = larger(y, x)
    return out


def test_functions_that_are_compiled_with_other_options_share_what_they_call() -> None:
    for _ in range(2):
        assert largest_as_an_array(1.0, 2.5).tolist() == [2.5, 2.5]
        assert largest_as_an_array(4, 3).tolist() == [4.0, 4.0]


@njit(inline="always")
def twice_or_once(x, doubled):
    if doubled is None:
        return x
    return x * 2 if x > 0 else -x


def test_what_is_pasted_several_times_is_what_python_makes_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each paste has variables of its own, and code of None is left out where None is given."""

    def all_ways(x, y, nothing):
        first, second = twice_or_once(x, 1), twice_or_once(y, 1)
        return first, second, twice_or_once(first, nothing), twice_or_once(twice_or_once(y, 1), 1)

    made = njit()(all_ways)
    expected = all_ways.__globals__["twice_or_once"].py_func
    monkeypatch.setitem(all_ways.__globals__, "twice_or_once", expected)
    plain = all_ways(3, -1.5, None)
    monkeypatch.undo()
    assert made(3, -1.5, None) == plain == (6, 1.5, 6, 3.0)
    assert made(-2.0, 4, None) == (2.0, 8, 2.0, 16)


def test_numba_is_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What kernels ask of it while they are compiled is not asked for others, after an error either."""
    monkeypatch.setattr(compiled, "cache_directory", lambda: tmp_path)
    before = dict(vars(types.Function))
    assert njit()(half.py_func)(3.0) == 1.5

    def wrong(x):
        return x.no_such_attribute

    with pytest.raises(NumbaError):
        njit()(wrong)(1.0)
    assert dict(vars(types.Function)) == before


@njit()
def refused(x):
    """Numba finds no type for it."""
    return half(x) + "text"


@njit()
def walked(rows, most):
    """Branches, loops that end early, and variables that live through some of them only."""
    found, last = 0, 0.0
    for i in range(rows.shape[0]):
        if rows[i, 0] < 0.0:
            continue
        total = 0.0
        for j in range(rows.shape[1]):
            total += half(rows[i, j])
            if total > most:
                last = total
                break
        else:
            found += 1
        if found == 3:
            return found, last
    return -found, last


def test_a_function_is_compiled_to_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is compiled here, and as Python runs it."""
    monkeypatch.setattr(compiled, "cache_directory", lambda: tmp_path)
    fresh = njit()(walked.py_func)
    for seed in range(20):
        rows = np.random.default_rng(seed).normal(size=(6, 7))
        assert fresh(rows, 1.0) == walked.py_func(rows, 1.0)


def test_numba_compiles_what_is_not_ours_as_it_always_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of what spares time while a kernel is compiled is left, whether it could be compiled or not."""
    monkeypatch.setattr(compiled, "cache_directory", lambda: tmp_path)
    numba.njit(half.py_func)(1.0)  # loads all that numba loads when it first compiles
    parts = [sys.modules[f"numba.core.{name}"] for name in ("postproc", "types", "compiler", "codegen")]
    classes = [one for part in parts for one in vars(part).values() if isinstance(one, type)]
    before = [dict(vars(one)) for one in classes]
    assert njit()(walked.py_func)(np.ones((2, 2)), 9.0) == (-2, 0.0)
    with pytest.raises(NumbaError):
        njit()(refused.py_func)(1.0)
    assert [dict(vars(one)) for one in classes] == before
