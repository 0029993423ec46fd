"""Numbers as the calculator prints them: never on the wrong side."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psim.cli.account.options import ROUNDING, downward, positive, share, upward
from p2psim.core.errors import InputError

numbers = st.floats(1e-290, 1e290)


@given(numbers, st.integers(1, 12))
def test_what_is_printed_is_never_smaller_and_differs_by_less_than_the_last_digit(
    value: float, digits: int
) -> None:
    printed = float(upward(value, digits))
    assert printed >= value * (1 - 2 * ROUNDING)
    assert printed <= value * (1 + 1.01 * 10.0 ** (1 - digits))
    assert float(downward(value, digits)) <= value * (1 + 2 * ROUNDING)
    assert float(downward(value, digits)) >= value * (1 - 1.01 * 10.0 ** (1 - digits))


def test_numbers_that_have_few_digits_stay_as_they_are() -> None:
    assert [upward(x) for x in (0.0, 0.5, 1.0, 12.25, 1e-5)] == ["0", "0.5", "1", "12.25", "1e-05"]
    assert (
        upward(0.1 + 0.2) == downward(0.1 + 0.2) == "0.3"
    )  # rounding of the last bits is no number of its own
    assert upward(math.pi, 3) == "3.15"
    assert downward(math.pi, 3) == "3.14"
    assert upward(9.9999, 3) == "10"
    assert upward(math.inf) == downward(math.inf) == "inf"


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_what_must_be_positive(value: float) -> None:
    with pytest.raises(InputError, match=r"--sigma: must be a positive number"):
        positive("--sigma", value)


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, math.nan])
def test_what_must_be_a_share(value: float) -> None:
    with pytest.raises(InputError, match=r"--delta: must be above 0 and below 1"):
        share("--delta", value)
    assert share("--delta", 0.0, zero=True) == 0
