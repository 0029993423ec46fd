"""What compiled code asks of the processor, against whole numbers of any size."""

import numba
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from p2psim.core.philox import high_product, prefetch

words = st.integers(0, 2**64 - 1)


@numba.njit
def upper(a, b):
    return high_product(a, b)


@numba.njit
def fetched(array, place):
    prefetch(array, place)
    return array.sum()


@given(a=words, b=words)
def test_upper_half_of_a_product(a, b):
    assert int(upper(np.uint64(a), np.uint64(b))) == (a * b) >> 64


@given(place=st.integers(-(2**40), 2**40))
def test_fetching_any_place_does_no_harm(place):
    array = np.arange(12.0).reshape(3, 4)
    array.flags.writeable = False
    assert fetched(array, place) == 66.0
