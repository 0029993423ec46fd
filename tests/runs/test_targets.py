"""When targets are reached, and the share that has, with those who never do."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from small_study import scenario

import p2psim
from p2psim.core.errors import InputError
from p2psim.core.registry import parts, place_of
from p2psim.runs.summary import first_reached, rises, share_reached
from p2psim.scenario.rules import all_meanings

#: Weeks of remission under 6-MP, Freireich et al. (1963); those that were still in remission come second.
RELAPSED = [6, 6, 6, 7, 10, 13, 16, 22, 23]
REMAINED = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]


def test_the_share_is_that_of_the_textbook() -> None:
    """Kleinbaum, Klein, Survival Analysis (2012), table 2.2: S and, by Greenwood, its standard error."""
    at = np.array(RELAPSED + REMAINED, dtype=float)
    reached = np.arange(at.size) < len(RELAPSED)
    found = share_reached(at, reached)
    assert found.at.tolist() == [6, 7, 10, 13, 16, 22, 23]
    survival = [0.8571, 0.8067, 0.7529, 0.6902, 0.6275, 0.5378, 0.4482]
    errors = [0.0764, 0.0869, 0.0963, 0.1068, 0.1141, 0.1282, 0.1346]
    assert 1 - found.share == pytest.approx(survival, abs=5e-5)
    assert np.sqrt(found.variance) == pytest.approx(errors, abs=5e-5)
    assert found.quantile(0.5) == 23
    assert found.quantile(0.56) == math.inf


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(10, 12))
def test_where_all_are_watched_to_the_end_it_is_the_plain_share(times: list[int], end: int) -> None:
    at = np.array([*times, end, end], dtype=float)
    found = share_reached(at, at < end)
    for where, share, low, high in zip(found.at, found.share, found.low, found.high, strict=True):
        count = sum(time <= where for time in times)
        assert share == pytest.approx(count / at.size)
        interval = binomtest(count, at.size).proportion_ci(method="wilson")
        assert (low, high) == pytest.approx((interval.low, interval.high))


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=30))
def test_shares_rise_within_their_intervals(runs: list[tuple[int, bool]]) -> None:
    at, reached = (
        np.array([time for time, _ in runs], dtype=float),
        np.array([b for _, b in runs], dtype=bool),
    )
    found = share_reached(at, reached)
    assert (np.diff(found.share) > 0).all()
    assert found.at.size == len(set(at[reached]))
    assert ((found.low <= found.share + 1e-12) & (found.share <= found.high + 1e-12)).all()
    assert ((found.low >= 0) & (found.high <= 1)).all()


def table(values: list[float], replica: int = 0) -> pd.DataFrame:
    rows = [
        {"cell": 0, "model": "main", "replica": replica, "step": 10 * i, "time": 1.5 * i, "value": value}
        for i, value in enumerate(values)
    ]
    return pd.DataFrame(rows)


def test_the_first_record_at_the_target_counts_and_an_undefined_one_does_not() -> None:
    rows = pd.concat(
        [
            table([4.0, math.nan, 2.0, 3.0, 1.0]),
            table([4.0, 3.0, 2.5, math.inf], replica=1),
            table([2.0, 9.0], replica=2),
        ]
    )
    found = first_reached(rows, "time", 2.0, rising=False)
    assert found["time"].tolist() == [3.0, 4.5, 0.0]
    assert found["reached"].tolist() == [True, False, True]
    assert first_reached(rows, "step", 4.5, rising=True)["step"].tolist() == [40, 30, 10]
    assert first_reached(rows, "step", 4.5, rising=True)["reached"].tolist() == [False, True, True]
    with pytest.raises(InputError, match="must be finite"):
        first_reached(rows, "time", math.inf, rising=False)


def test_values_of_agents_are_averaged() -> None:
    rows = pd.concat([table([0.0, 1.0, 1.0]), table([0.0, 0.0, 1.0])])
    assert first_reached(rows, "step", 0.75, rising=True)["step"].tolist() == [20]


def test_directions_are_of_known_metrics() -> None:
    rising = {
        "test_accuracy",
        "local_accuracy",
        "mean_model_accuracy",
        "mean_model_local_accuracy",
        "worst_decile_accuracy",
        "vectors_sent",
        "epsilon_spent",
        "messages",
        "retries",
        "releases",
        "delivery",
        "throughput",
        "participation",
        "present",
        "links_heard",
        "effective_lambda2",
    }
    ours = {name for name in all_meanings() if place_of(parts("metric")[name]) is None}
    assert {name for name in ours if rises(name)} == rising
    assert rises("test_accuracy[small]")
    assert not rises("a_metric_of_somebody")


def test_a_result_tells_replicas_that_never_reach_it(tmp_path: Path) -> None:
    result = p2psim.run(scenario(), tmp_path / "run", progress=False)
    psi = result.metrics.query("metric == 'relative_fitness' and cell == 1 and replica == 2")
    target = float(psi["value"].iloc[3])
    first = psi[psi["value"] <= target].iloc[0]
    mine = result.time_to("relative_fitness", target).query("cell == 1 and replica == 2").iloc[0]
    assert (mine["time"], mine["reached"], mine["privacy.epsilon"]) == (first["time"], True, 100)
    assert result.commits_to("relative_fitness", target)["step"].iloc[5] == first["step"]
    never = result.commits_to("relative_fitness", -1.0)
    assert len(never) == 6
    assert not never["reached"].any()
    assert (never["step"] == 40).all()
    assert result.time_to("relative_fitness", 0.0, rising=True)["time"].tolist() == [0.0] * 6
    with pytest.raises(InputError, match="no metric 'ψ' was recorded; known: relative_fitness"):
        result.time_to("ψ", 1.0)
