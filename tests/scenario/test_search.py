"""Points in ranges: a larger count keeps the points of a smaller one, and the sequences fill space as they should."""

import math
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import small_study as small
from hypothesis import given, settings
from hypothesis import strategies as st
from language import VALID, messages
from scipy import stats

import p2psim
from p2psim.core.errors import InputError
from p2psim.core.nodes import placed, plain
from p2psim.scenario.cells import cells
from p2psim.scenario.model import Scenario
from p2psim.scenario.schema import json_schema
from p2psim.scenario.sweep import METHODS, RANGES, read_search
from p2psim.scenario.yaml import read
from p2psim.simulation import simulate

SWEEP = "sweep:\n  privacy.epsilon: [10, 100]\n"
EPSILON = {"privacy.epsilon": {"log-uniform": [0.1, 100]}}


def points(method: str, **search: object) -> dict[str, list[object]]:
    values, faults = read_search(method, placed(search))
    assert not faults
    return {key: [plain(value) for value in listed] for key, listed in values.items()}


KEYS = {
    "a": {"uniform": [-2, 3]},
    "b": {"log-uniform": [1e-3, 10]},
    "c": {"integers": [-3, 40]},
    "d": {"log-integers": [1, 1000]},
    "e": {"choice": ["x", {"kind": "cap", "releases": 3}, None]},
}


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(sorted(METHODS)), st.integers(1, 60), st.integers(0, 60), st.integers(0, 2**40))
def test_more_points_keep_the_earlier_ones(method: str, few: int, more: int, seed: int) -> None:
    first = points(method, count=few, seed=seed, keys=KEYS)
    many = points(method, count=few + more, seed=seed, keys=KEYS)
    assert {key: values[:few] for key, values in many.items()} == first
    # The same from what a resolved scenario holds, and what it holds is believed.
    assert points(method, count=few + more, seed=seed, keys=KEYS, values=first) == many
    assert points(method, count=few, seed=seed, keys=KEYS, values=many) == first
    believed = points(method, count=few + more, seed=seed, keys=KEYS, values=first | {"a": [7.5] * few})
    assert believed["a"] == [7.5] * few + many["a"][few:]


@given(st.sampled_from(sorted(METHODS)), st.integers(0, 1000))
def test_points_lie_in_their_ranges_and_differ(method: str, seed: int) -> None:
    found = points(method, count=40, seed=seed, keys=KEYS)
    assert all(-2 <= a < 3 and isinstance(a, float) for a in found["a"])
    assert all(1e-3 <= b <= 10 for b in found["b"])
    assert all(-3 <= c <= 40 and isinstance(c, int) for c in found["c"])
    assert all(1 <= d <= 1000 and isinstance(d, int) for d in found["d"])
    assert all(e in KEYS["e"]["choice"] for e in found["e"])
    assert len({str(point) for point in zip(*found.values(), strict=True)}) == 40


@given(st.floats(0, 1, exclude_max=True), st.integers(1, 50), st.integers(1, 50))
def test_ranges_keep_their_ends(u: float, low: int, width: int) -> None:
    for name, value in RANGES.items():
        assert low <= value(low, low + width, u) <= low + width, name


def test_every_integer_is_as_likely_as_it_should_be() -> None:
    grid = (np.arange(60_000) + 0.5) / 60_000
    drawn = [RANGES["integers"](3, 8, u) for u in grid]
    assert np.bincount(drawn)[3:].tolist() == [10_000] * 6
    logs = np.bincount([RANGES["log-integers"](1, 8, u) for u in grid])[1:] / grid.size
    # P(k) = log((k + 1)/k)/log(9).
    np.testing.assert_allclose(logs, np.log1p(1 / np.arange(1, 9)) / math.log(9), atol=1e-4)


@pytest.mark.parametrize("method", ["sobol", "halton"])
@pytest.mark.parametrize("power", [3, 6])
def test_sequences_put_a_point_into_every_dyadic_interval(method: str, power: int) -> None:
    """Of 2^k points of Sobol in any dimension, and of Halton in base 2, one lies in each (i, i + 1)/2^k."""
    for seed in range(5):
        drawn = METHODS[method](2, seed, 2**power)
        for dimension in range(2 if method == "sobol" else 1):
            assert sorted(np.floor(drawn[:, dimension] * 2**power).astype(int)) == list(range(2**power))


def test_random_points_are_uniform_and_independent() -> None:
    """Kolmogorov and Smirnov, and Spearman; false alarm 1e-6 each."""
    drawn = METHODS["random"](2, 3, 4000)
    for dimension in range(2):
        assert stats.kstest(drawn[:, dimension], "uniform").pvalue > 1e-6
    assert stats.spearmanr(*drawn.T).pvalue > 1e-6
    logs = np.log(points("random", count=2000, seed=5, keys=EPSILON)["privacy.epsilon"])
    uniform = stats.uniform(math.log(0.1), math.log(1000))
    assert stats.kstest(logs, uniform.cdf).pvalue > 1e-6


def test_a_search_is_an_axis_like_others() -> None:
    study = small.scenario(
        sweep={
            "learning.algorithm.horizon": [20, 40],
            "sobol": {"count": 4, "keys": EPSILON | {"data.source.points": {"integers": [10, 30]}}},
        }
    )
    grid = cells(study)
    assert [list(cell.swept) for cell in grid] == [
        ["learning.algorithm.horizon", "privacy.epsilon", "data.source.points"]
    ] * 8
    assert [cell.swept["privacy.epsilon"] for cell in grid[:4]] == [
        cell.swept["privacy.epsilon"] for cell in grid[4:]
    ]
    again = Scenario.parse(study.to_yaml())
    assert again == study
    assert again.identity() == study.identity()
    assert [cell.content for cell in cells(again)] == [cell.content for cell in grid]
    assert study.sweep["sobol"]["seed"] == 0
    jsonschema.Draft202012Validator(json_schema()).validate(plain(read(study.to_yaml())))


@pytest.mark.parametrize("method", sorted(METHODS))
def test_more_points_run_only_the_new_ones(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def study(count: int) -> Scenario:
        return small.scenario(sweep={method: {"count": count, "seed": 3, "keys": EPSILON}}, replicas=2)

    ran, whole = [], simulate.simulate

    def counted(scenario, *rest):
        ran.append(scenario.privacy.epsilon)
        return whole(scenario, *rest)

    monkeypatch.setattr(simulate, "simulate", counted)
    monkeypatch.setattr(simulate, "simulated_at_once", lambda *given: 1)
    p2psim.run(study(3), tmp_path / "run", progress=False)
    # From the resolved scenario of the folder, as a person would add to it.
    more = Scenario.load(tmp_path / "run" / "scenario.yaml", [f"sweep.{method}.count=5"])
    assert [cell.content for cell in cells(more)] == [cell.content for cell in cells(study(5))]
    result = p2psim.run(more, tmp_path / "run", progress=False)
    assert len(ran) == 2 * 5
    assert len(set(ran)) == 5
    assert len(result.described.cells) == 5
    p2psim.run(study(5), tmp_path / "afresh", progress=False)
    assert small.digests(tmp_path / "run") == small.digests(tmp_path / "afresh")


@pytest.mark.parametrize(
    ("sweep", "said"),
    [
        ("{random: 3}", "sweep.random: must be a mapping of count, seed and keys to ranges, got 3"),
        ("{random: {count: 3}}", "sweep.random.keys: is required"),
        ("{sobol: {count: 0, keys: {seed: {integers: [1, 9]}}}}", "from 1 to 1000000, got 0"),
        (
            "{sobol: {count: 3, kyes: {}}}",
            "unknown key 'kyes'; known: count, seed, keys, values; did you mean keys?",
        ),
        (
            "{halton: {count: 3, keys: {}}}",
            "sweep.halton.keys: must be a mapping from keys to ranges, got a mapping",
        ),
        ("{halton: {count: 3, keys: {seed: 4}}}", "must be a range, one of uniform, log-uniform, integers, "),
        ("{random: {count: 3, keys: {seed: {integer: [1, 2]}}}}", "unknown range 'integer'; known: uniform,"),
        (
            "{random: {count: 3, keys: {privacy.epsilon: {log-uniform: [0, 1]}}}}",
            "log-uniform must be [low, high], two positive numbers with low < high; got [0, 1]",
        ),
        (
            "{random: {count: 3, keys: {seed: {integers: [1.5, 2]}}}}",
            "integers must be [low, high], two whole numbers with low < high; got [1.5, 2]",
        ),
        (
            "{random: {count: 7, keys: {seed: {integers: [1, 6]}}}}",
            "sweep.random.count: asks for 7 points, and these ranges hold only 6 that differ",
        ),
        ("{random: {count: 2, keys: {privacy.epsilom: {uniform: [1, 2]}}}}", "did you mean epsilon?"),
        ("{random: {count: 2, keys: {replicas: {integers: [1, 9]}}}}", "belongs to the whole study"),
        ("{seed: [1], random: {count: 2, keys: {seed: {integers: [1, 9]}}}}", "sweep.seed: is swept twice"),
        (
            "{random: {count: 2, keys: {seed: {integers: [1, 9]}}, values: {data.seed: [3]}}}",
            "sweep.random.values: must have a list for each of keys, equally long",
        ),
    ],
)
def test_a_search_that_cannot_be(sweep: str, said: str) -> None:
    assert any(said in message for message in messages(VALID.replace(SWEEP, f"sweep: {sweep}\n")))


def test_keys_on_the_command_line() -> None:
    written = VALID.replace(SWEEP, "sweep: {random: {count: 2, keys: {seed: {integers: [1, 9]}}}}\n")
    changed = Scenario.parse(
        written, overrides=["sweep.random.count=3", "sweep.random.keys.privacy.epsilon={uniform: [1, 2]}"]
    )
    assert list(cells(changed)[2].swept) == ["seed", "privacy.epsilon"]
    with pytest.raises(InputError, match="is swept"):
        Scenario.parse(written, overrides=["seed=3"])
