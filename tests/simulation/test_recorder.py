"""Where something is recorded: at each multiple of an interval up to the end of the run, in every replica."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from graph_cases import graph_scenario
from hypothesis import given, settings
from hypothesis import strategies as st

import p2psim
from p2psim.core.events import COMMIT, EVENT, WAKE
from p2psim.runs.verification import verify_result
from p2psim.scenario.record import EveryTime
from p2psim.simulation.recorder import Recorder, marks_of_run
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace

#: Gossip of each kind, and an exchange that suits it; network metrics and what is spent are recorded beside.
ALGORITHMS = {
    "descent": ({"kind": "coordinate-descent", "mu": 0.5}, {"kind": "broadcast"}, ["objective"]),
    "propagation": ({"kind": "model-propagation", "mu": 0.5}, {"kind": "broadcast"}, ["objective"]),
    "admm": (
        {"kind": "gossip-admm", "mu": 0.5, "rho": 1.0, "inner": 1},
        {"kind": "gossip", "mode": "edge"},
        ["objective"],
    ),
    "averaging": ({"kind": "averaging"}, {"kind": "gossip", "mode": "push"}, ["consensus_distance"]),
    "push-sum": ({"kind": "push-sum"}, {"kind": "gossip", "mode": "push"}, ["consensus_distance"]),
}


def timed(kind: str, interval: float, horizon: float, **more):
    algorithm, exchange, metrics = ALGORITHMS[kind]
    private = {} if kind in ("descent", "admm") else {"privacy": {"mechanism": "none"}}
    return graph_scenario(
        {
            **private,
            "learning.algorithm": {**algorithm, "time": horizon},
            "network.exchange": exchange,
            "record.metrics": [*metrics, "messages", "present", "epsilon_spent"],
            "record.every": {"time": interval},
            "record.noise": False,
            **more,
        }
    )


def moments(interval: float, horizon: float) -> list[Fraction]:
    """k·interval up to the horizon as on paper, and the horizon."""
    a, b = Fraction(str(interval)), Fraction(str(horizon))
    return [*(k * a for k in range(floor(b / a) + 1) if k * a < b), b]


@pytest.mark.parametrize("kind", ALGORITHMS)
@settings(max_examples=6, deadline=None)
@given(tenths=st.integers(1, 30), horizon=st.integers(1, 40), seed=st.integers(0, 99))
def test_every_multiple_up_to_the_end_is_recorded_in_every_replica(
    tmp_path_factory, kind, tenths, horizon, seed
):
    interval, end = tenths / 10, horizon / 10
    scenario = timed(kind, interval, end, seed=seed)
    workspace = Workspace(tmp_path_factory.getbasetemp() / "recorder")
    expected = [float(one) for one in moments(interval, end)]
    for replica in range(2):
        outcome = simulate(scenario, replica, workspace)
        commits = outcome.events[outcome.events["kind"] == COMMIT]["time"]
        main = [one for one in outcome.series if one.model == "main" and one.agent is None]
        assert {"messages", "present", "epsilon_spent", ALGORITHMS[kind][2][0]} <= {
            one.metric for one in main
        }
        for one in main:
            np.testing.assert_allclose(one.time, expected, rtol=1e-15)
            assert one.time[-1] == end
            made = np.searchsorted(commits, one.time * (1 + 1e-15), side="right")
            assert one.step[1:].tolist() == made[1:].tolist()
        assert len(outcome.models) == len(expected)


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_they_are_verified_and_of_one_number(kind, tmp_path):
    result = p2psim.run(timed(kind, 0.1, 3.0, replicas=3), tmp_path / "run", progress=False)
    assert {one.verdict for one in verify_result(result)} == {"right"}
    table = result.metrics
    main = table[(table["model"] == "main") & (table["metric"] == "messages")]
    assert main.groupby("replica")["time"].apply(list).map(len).tolist() == [31, 31, 31]


def test_a_run_that_spends_its_budgets_early_is_recorded_until_then(tmp_path):
    spent = {"privacy.allocation": {"kind": "cap", "releases": 1}, "privacy.when_spent": "silent"}
    scenario = timed("descent", 0.5, 200.0, **spent)
    outcome = simulate(scenario, 0, Workspace(tmp_path / "w"))
    assert outcome.ended == "exhausted"
    last = outcome.events[-1]["time"]
    assert {one.time[-1] for one in outcome.series if one.model == "main"} == {last}
    result = p2psim.run(scenario, tmp_path / "run", progress=False)
    assert {one.verdict for one in verify_result(result)} == {"right"}


@st.composite
def streams(draw):
    gaps = draw(st.lists(st.sampled_from([0.0, 0.05, 0.1, 0.25, 1.7]), min_size=1, max_size=40))
    events = np.zeros(len(gaps), EVENT)
    events["time"] = np.cumsum(gaps)
    events["kind"] = draw(st.lists(st.sampled_from([WAKE, COMMIT]), min_size=len(gaps), max_size=len(gaps)))
    return events


@settings(max_examples=100)
@given(
    events=streams(),
    every=st.one_of(st.integers(1, 9), st.sampled_from([0.05, 0.1, 0.3, 2.0])),
    ends=st.booleans(),
    pieces=st.integers(1, 9),
)
def test_chunks_of_any_size_give_the_same_records(events, every, ends, pieces):
    every = every if isinstance(every, int) else EveryTime(time=every)
    end = float(events["time"][-1]) + 0.35 if ends else None
    whole = marks_of_run(every, events, end)
    recorder, found, start = Recorder(every), [], 0
    for piece in np.array_split(events, pieces):
        marks = recorder.read(piece)
        assert ((marks.places >= 0) & (marks.places <= piece.size)).all()
        found += zip((marks.places + start).tolist(), marks.steps.tolist(), marks.times.tolist(), strict=True)
        start += piece.size
    marks = recorder.finish(end)
    found += [
        (start, step, time) for step, time in zip(marks.steps.tolist(), marks.times.tolist(), strict=True)
    ]
    assert found == list(zip(*(column.tolist() for column in whole), strict=True))
    # In order, the first of time 0, each after as many commits as it says, the last after all of them.
    commits = np.concatenate([[0], np.cumsum(events["kind"] == COMMIT)])
    assert (np.diff(whole.places) >= 0).all()
    assert (np.diff(whole.times) >= 0).all()
    assert (whole.steps[0], whole.times[0]) == (0, 0.0)
    assert whole.steps.tolist() == commits[whole.places].tolist()
    assert whole.steps[-1] == commits[-1]
    if isinstance(every, int):
        assert whole.steps.tolist() == sorted({*range(0, int(commits[-1]) + 1, every), int(commits[-1])})
