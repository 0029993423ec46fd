"""Pairs of two lists of cases, of which the daily tests take a few."""

from collections.abc import Sequence
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
