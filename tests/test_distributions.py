"""Random quantities: what can be written, and what is drawn."""

import math
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from p2psim.distributions import Distribution, least, mean, sample
from p2psim.network.channels import Channel


def parse(written: Any) -> float | Distribution:
    """As a scenario does, inside a part."""
    return Channel(latency=written).latency


@pytest.mark.parametrize(
    ("written", "expected_mean", "expected_least"),
    [(2, 2.0, 2.0), (0.5, 0.5, 0.5), ({"uniform": [10, 60]}, 35.0, 10.0), ({"exponential": 0.5}, 0.5, 0.0)],
)
def test_mean_and_least(written: Any, expected_mean: float, expected_least: float) -> None:
    quantity = parse(written)
    assert mean(quantity) == expected_mean
    assert least(quantity) == expected_least


@pytest.mark.parametrize(
    ("written", "law"),
    [({"uniform": [10, 60]}, stats.uniform(10, 50)), ({"exponential": 0.5}, stats.expon(scale=0.5))],
)
def test_draws_follow_the_law(written: Any, law: Any) -> None:
    """Fixed seed; a right sampler is rejected with probability 1e-4."""
    drawn = sample(parse(written), np.random.default_rng(0), 20_000)
    assert stats.kstest(drawn, law.cdf).pvalue > 1e-4


def test_a_constant_is_drawn_as_it_is() -> None:
    assert sample(1.25, np.random.default_rng(0), 3).tolist() == [1.25] * 3


def test_a_uniform_of_no_width_is_a_constant() -> None:
    assert sample(Distribution(uniform=(2.0, 2.0)), np.random.default_rng(0), 3).tolist() == [2.0] * 3


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({}, "give exactly one of uniform, exponential; got none"),
        ({"uniform": [0, 1], "exponential": 1}, r"give exactly one of .*got \['uniform', 'exponential'\]"),
        ({"uniform": [2, 1]}, "lower end 2.0 is above the upper end 1.0"),
        ({"uniform": [1]}, "uniform"),
        ({"uniform": [1, 2, 3]}, "uniform"),
        ({"uniform": [-1, 2]}, "greater than or equal to 0"),
        ({"uniform": [0, math.nan]}, "finite"),
        ({"uniform": 3}, "uniform"),
        ({"exponential": 0}, "greater than 0"),
        ({"exponential": -1}, "greater than 0"),
        ({"normal": 1}, "Extra inputs are not permitted"),
        (-1.0, "greater than or equal to 0"),
        (math.nan, "finite"),
        (math.inf, "finite"),
        ("1", "valid number"),
        (True, "valid number"),
        (None, "valid number"),
    ],
)
def test_errors(written: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        parse(written)
