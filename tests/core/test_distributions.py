"""Random quantities: what can be written, and what is drawn."""

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from p2psim.core.distributions import Distribution, least, mean, sample
from p2psim.core.errors import OptionError
from p2psim.network.channels.channel import Channel


def parse(written: Any) -> float | Distribution:
    """As a scenario does, inside a part."""
    return Channel(latency=written).latency


@pytest.mark.parametrize(
    ("written", "expected_mean", "expected_least"),
    [
        (2, 2.0, 2.0),
        (0.5, 0.5, 0.5),
        ({"uniform": [10, 60]}, 35.0, 10.0),
        ({"exponential": 0.5}, 0.5, 0.0),
        ({"lognormal": {"mean": 0.3, "sigma": 2.0}}, 0.3, 0.0),
        ({"lognormal": {"median": 2, "sigma": 1}}, 2 * math.exp(0.5), 0.0),
        ({"weibull": {"mean": 0.7, "shape": 0.5}}, 0.7, 0.0),
        ({"gamma": {"mean": 0.7, "shape": 3}}, 0.7, 0.0),
    ],
)
def test_mean_and_least(written: Any, expected_mean: float, expected_least: float) -> None:
    quantity = parse(written)
    assert mean(quantity) == pytest.approx(expected_mean, rel=1e-14)
    assert least(quantity) == expected_least


@pytest.mark.parametrize(
    ("written", "law"),
    [
        ({"uniform": [10, 60]}, stats.uniform(10, 50)),
        ({"exponential": 0.5}, stats.expon(scale=0.5)),
        ({"lognormal": {"median": 2, "sigma": 0.7}}, stats.lognorm(0.7, scale=2)),
        ({"lognormal": {"mean": 2, "sigma": 0.7}}, stats.lognorm(0.7, scale=2 * math.exp(-0.245))),
        # Of shape 1/2 the mean is Γ(3) = 2 scales, of shape 2 it is √π/2.
        ({"weibull": {"mean": 3, "shape": 0.5}}, stats.weibull_min(0.5, scale=1.5)),
        ({"weibull": {"mean": 3, "shape": 2}}, stats.rayleigh(scale=3 * math.sqrt(2 / math.pi))),
        ({"gamma": {"mean": 3, "shape": 2}}, stats.gamma(2, scale=1.5)),
    ],
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
    ("given", "message"),
    [
        ({}, "give exactly one of uniform, exponential, lognormal, weibull, gamma, empirical; got none"),
        ({"lognormal": {"sigma": 1}}, "give either median or mean"),
        ({"lognormal": {"mean": 1, "median": 1, "sigma": 1}}, "give either median or mean"),
        ({"lognormal": {"mean": 1}}, "lognormal.sigma: is required"),
        ({"lognormal": {"mean": 1, "sigma": 0}}, "sigma: must be a positive number of at most 10, got 0"),
        ({"weibull": {"mean": 1, "shape": 0.01}}, "shape: must be a number from 0.1 to 1000, got 0.01"),
        ({"gamma": {"mean": 0, "shape": 1}}, "mean: must be a positive number, got 0"),
        ({"empirical": "no/such/file.txt"}, "no such file"),
        ({"empirical": ""}, "must name a file"),
        ({"empirical": 3}, "empirical"),
        ({"uniform": [0, 1], "exponential": 1}, r"give exactly one of .*got \['uniform', 'exponential'\]"),
        ({"uniform": [2, 1]}, "lower end 2.0 is above the upper end 1.0"),
        ({"uniform": [1]}, "uniform"),
        ({"uniform": [1, 2, 3]}, "uniform"),
        ({"uniform": [-1, 2]}, "uniform.0: must be a number of at least 0, got -1"),
        ({"uniform": [0, math.nan]}, "uniform.1: must be a number of at least 0, got .nan"),
        ({"uniform": 3}, "uniform"),
        ({"exponential": 0}, "exponential: must be a positive number, got 0"),
        ({"exponential": -1}, "exponential: must be a positive number, got -1"),
        ({"normal": 1}, "normal: unknown key"),
        (-1.0, "latency: must be a number of at least 0, got -1.0"),
        (math.nan, "latency: must be a number of at least 0, got .nan"),
        (math.inf, "latency: must be a number of at least 0, got .inf"),
        ("1", "must be a number of at least 0 or .* a distribution, got '1'"),
        (True, "must be a number of at least 0 or .* a distribution, got true"),
        (None, "must be a number of at least 0 or .* a distribution, got null"),
    ],
)
def test_errors(given: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse(given)


def written(folder: Path, text: str) -> str:
    path = folder / "delays.txt"
    path.write_text(text)
    return str(path)


class TestEmpirical:
    def test_its_values_are_drawn_equally_often(self, tmp_path: Path) -> None:
        """Fixed seed; a right sampler is rejected with probability 1e-4."""
        quantity = parse({"empirical": written(tmp_path, "# delays\n0.5\n2  # twice below\n\n2\n1e-3\n")})
        assert (mean(quantity), least(quantity)) == (4.501 / 4, 0.001)
        values, counts = np.unique(sample(quantity, np.random.default_rng(0), 8000), return_counts=True)
        assert values.tolist() == [0.001, 0.5, 2.0]
        assert stats.chisquare(counts, [2000, 2000, 4000]).pvalue > 1e-4

    def test_what_it_holds_is_written_down(self, tmp_path: Path) -> None:
        path = written(tmp_path, "1\n")
        law = parse({"empirical": path})
        assert isinstance(law, Distribution)
        dumped = law.model_dump(mode="json", exclude_none=True)
        sha = hashlib.sha256(b"1\n").hexdigest()
        assert dumped == {"empirical": {"path": path, "sha256": sha}}
        assert parse(dumped) == law
        written(tmp_path, "2\n")
        with pytest.raises(OptionError, match="is not the same file as before"):
            parse(dumped)
        assert mean(parse({"empirical": path})) == 2.0

    def test_a_relative_path_starts_from_the_scenarios_folder(self, tmp_path: Path) -> None:
        written(tmp_path, "1\n")
        law = Distribution.model_validate({"empirical": "delays.txt"}, context={"folder": str(tmp_path)})
        assert law.mean == 1.0

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "holds no numbers"),
            ("1\n-2\n", "line 2: expected a finite number from 0 on, got '-2'"),
            ("nan\n", "line 1"),
            ("inf\n", "line 1"),
            ("1 2\n", "got '1 2'"),
            ("\x00\xff", "line 1"),
        ],
    )
    def test_errors(self, tmp_path: Path, text: str, message: str) -> None:
        with pytest.raises(OptionError, match=message):
            parse({"empirical": written(tmp_path, text)})
