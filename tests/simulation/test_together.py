"""Several replicas of a cell that are simulated at once give the same bytes as each alone, whatever befalls one."""

from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from star_cases import scenario
from test_simulate import digest

from p2psim.core.errors import MeaningError
from p2psim.core.events import COMMIT, EVENT, WAKE
from p2psim.core.randomness import Streams
from p2psim.network.exchanges.request import Request
from p2psim.privacy.mechanisms import Laplace
from p2psim.runs.batches import BatchOptions, run_batch, turns_of
from p2psim.scenario.cells import cells
from p2psim.simulation.recorder import Recorder, marks_of_runs
from p2psim.simulation.simulate import simulate, simulate_together, simulated_at_once
from p2psim.simulation.workspace import Workspace

#: What takes no time.
SHORT = {
    "network.exchange": "request",
    "network.channel": {},
    "record": {"metrics": ["relative_fitness"]},
    "learning.algorithm.horizon": 40,
    "data.redraw": "never",
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(tmp_path_factory.mktemp("together"))


@st.composite
def changes(draw):
    return (
        SHORT
        | {
            "learning.algorithm.horizon": draw(st.integers(1, 60)),
            "network.channel": {"loss": draw(st.sampled_from([0.0, 0.3]))},
            "network.availability": draw(
                st.sampled_from(["always", {"kind": "bernoulli", "participation": 0.6}])
            ),
            "record": {
                "metrics": draw(
                    st.sampled_from(
                        [["relative_fitness"], ["relative_fitness", "isolated_fitness"], ["isolated_fitness"]]
                    )
                ),
                "every": draw(st.sampled_from([1, 1, 3, 7, 1000])),
                "models": draw(st.booleans()),
                "events": draw(st.booleans()),
                "noise": draw(st.booleans()),
            },
            "privacy.epsilon": draw(st.sampled_from([0.5, 10.0])),
            "privacy.allocation": draw(
                st.sampled_from(
                    ["horizon", {"kind": "cap", "releases": 7}, {"kind": "geometric", "ratio": 0.9}]
                )
            ),
            "privacy.overlap": draw(st.sampled_from([{}, {"holders": 2}])),
            # The last is too small for some records: nothing is guaranteed for their owners.
            "privacy.sensitivity": draw(st.sampled_from(["empirical", {"kind": "declared", "bound": 0.3}])),
        }
        | draw(st.sampled_from([{}, {"privacy.delta": 1e-6, "privacy.accountant": ["basic", "kov"]}]))
    )


@settings(max_examples=40, deadline=None)
@given(changes=changes(), first=st.integers(0, 5), number=st.integers(2, 6))
def test_together_as_alone(workspace, changes, first, number):
    one = scenario(changes)
    assert simulated_at_once(one, workspace) >= number
    replicas = range(first, first + number)
    together = [digest(outcome) for outcome in simulate_together(one, replicas, workspace)]
    assert together == [digest(simulate(one, replica, workspace)) for replica in replicas]


APART = [
    {"network.channel": {"latency": 0.1}},
    {"network.exchange": {"kind": "request", "service": 0.2}},
    {"network.engine": "simpy"},
    {"record": {"metrics": ["relative_fitness", "epsilon_spent"]}},
    {"record": {"metrics": ["relative_fitness", "messages"]}},
    {"record": {"metrics": ["relative_fitness"], "every": {"time": 1.0}}},
    {"learning.algorithm.batch": {"kind": "fixed", "size": 2}},
    {"data.redraw": "replica"},
]


@pytest.mark.parametrize("more", APART, ids=repr)
def test_what_needs_more_is_simulated_one_by_one(workspace, more):
    assert simulated_at_once(scenario(SHORT | more), workspace) == 1


def test_one_of_many_owners_is_simulated_alone(workspace):
    owners = {"network.topology.agents": 3000, "data.source.points": 9}
    assert simulated_at_once(scenario(SHORT | owners), workspace) == 1


def test_a_long_one_is_simulated_alone(workspace):
    assert simulated_at_once(scenario(SHORT | {"learning.algorithm.horizon": 10**6}), workspace) == 1


@settings(max_examples=60)
@given(
    runs=st.lists(
        st.lists(st.tuples(st.sampled_from([0.0, 0.1, 1.7]), st.sampled_from([WAKE, COMMIT])), max_size=12),
        min_size=1,
        max_size=5,
    ),
    every=st.integers(1, 6),
)
def test_records_of_several_runs_are_those_of_each(runs, every):
    streams = []
    for run in runs:
        events = np.zeros(len(run) + 1, EVENT)
        events["time"] = np.cumsum([gap for gap, _ in run] + [0.1])
        events["kind"] = [kind for _, kind in run] + [COMMIT]
        streams.append(events)
    bounds = np.cumsum([0, *(events.size for events in streams)])
    whole = np.concatenate(streams).astype(EVENT)
    marks, ends = marks_of_runs(every, whole, whole["kind"].copy(), bounds)
    for run, events in enumerate(streams):
        recorder = Recorder(every)
        inside, after = recorder.read(events), recorder.finish()
        places = [*inside.places.tolist(), *[events.size] * after.places.size]
        mine = slice(ends[run], ends[run + 1])
        assert marks.places[mine].tolist() == places
        assert marks.steps[mine].tolist() == [*inside.steps.tolist(), *after.steps.tolist()]
        assert marks.times[mine].tolist() == [*inside.times.tolist(), *after.times.tolist()]


#: Replicas whose noise cannot be drawn: by their stream's key, as a mechanism knows nothing else of them.
BROKEN = {tuple(Streams(0, replica).key("noise").tolist()) for replica in (3, 4)}


def test_a_replica_that_fails_takes_no_other_with_it(workspace, monkeypatch):
    drawn = Laplace.fill_unit

    def breaking(self, key, agents, numbers, out):
        drawn(self, key, agents, numbers, out)
        if tuple(key.tolist()) in BROKEN:
            raise MeaningError("privacy.mechanism", "no noise here")

    monkeypatch.setattr(Laplace, "fill_unit", breaking)
    study = scenario(SHORT | {"seed": 0})
    grid = cells(study)
    items = [(0, replica) for replica in range(8)]
    result = run_batch(grid, items, workspace, BatchOptions())
    content = grid[0].content
    assert set(result.failed) == {(content, 3), (content, 4)}
    assert all("no noise here" in text for text in result.failed.values())
    assert sorted(result.part.runs) == [(content, replica) for replica in (0, 1, 2, 5, 6, 7)]
    assert result.done == 8


@settings(max_examples=40, deadline=None)
@given(wanted=st.sets(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1), check=st.booleans())
def test_every_item_is_in_one_turn(workspace, wanted, check):
    """Of cells that are simulated together and of one that is not, in any part of the study."""
    study = scenario(SHORT | {"sweep": {"privacy.epsilon": [1, 2], "network.channel.latency": [0.0, 0.1]}})
    grid = cells(study)
    items = sorted(wanted, key=lambda item: (item[1], item[0]))
    turns = list(turns_of(grid, items, workspace, BatchOptions(check_events=check)))
    assert sorted(item for turn in turns for item in turn) == sorted(wanted)
    for turn in turns:
        (position,) = {position for position, _ in turn}
        assert len(turn) == 1 or simulated_at_once(grid[position].scenario, workspace) >= len(turn)
    if check:
        assert all(len(turn) == 1 for turn in turns)


def test_where_most_messages_are_lost_replicas_are_simulated_one_by_one(workspace):
    """There are a hundred times as many events, which nobody wants in memory for many replicas."""
    study = scenario(SHORT | {"network.channel": {"loss": 0.9}})
    grid, items = cells(study), [(0, replica) for replica in range(4)]
    assert simulated_at_once(grid[0].scenario, workspace) > 1
    result = run_batch(grid, items, workspace, BatchOptions())
    assert (result.done, result.failed) == (4, {})
    assert simulated_at_once(grid[0].scenario, workspace) == 1


class Asking(Request):
    """An exchange of one's own, which only SimPy knows."""

    kind: Literal["asking"] = "asking"  # type: ignore[assignment]


def test_an_exchange_of_ones_own_is_simulated_by_simpy(workspace):
    study = scenario(SHORT)
    network = study.network.model_copy(update={"exchange": Asking()})
    assert simulated_at_once(study.model_copy(update={"network": network}), workspace) == 1
