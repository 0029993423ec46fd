"""Cases of which the daily tests take a few; the others are slow verification."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import pytest


def all_pairs(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    """Parameters of a test of all pairs; but one of each case of the first list they are slow verification.

    The daily ones go through the second list in turn, so that each case of it is in some where the first is longer.
    """
    return [
        pytest.param(one, other, marks=() if j == i % len(second) else pytest.mark.verification)
        for (i, one), (j, other) in product(enumerate(first), enumerate(second))
    ]


def few(cases: Iterable[Any], daily: int) -> list[Any]:
    """Parameters of a test of many cases: a number of them for each day, evenly apart, and the rest slow verification.

    The first case is among the daily ones. A tuple gives several parameters.
    """
    listed = list(cases)
    kept = {i * len(listed) // daily for i in range(daily)}
    return [
        pytest.param(
            *case if isinstance(case, tuple) else (case,), marks=() if i in kept else pytest.mark.verification
        )
        for i, case in enumerate(listed)
    ]
