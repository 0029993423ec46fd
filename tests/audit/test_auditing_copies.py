"""Copies of a small network are independent of each other, and each is what it would be alone."""

import numpy as np
import pytest
import small_study
from graph_cases import graph_scenario

from p2psim.audit.algorithms import GraphSystem, StarSystem
from p2psim.audit.canaries import Record, gradients, pairs
from p2psim.audit.system import AuditSystem, Copies, releases_of
from p2psim.core.randomness import Streams
from p2psim.network.simulation import simulate_events
from p2psim.simulation.algorithms import adapter_of
from p2psim.simulation.workspace import Workspace

ROUNDS = {"kind": "synchronous-averaging", "horizon": 20, "c1": 0.1, "theta_max": 3}

EXCHANGES = [
    ("star", "request"),
    ("star", {"kind": "request", "service": 0.5, "busy": "queue"}),
    ("star", {"kind": "poll", "interval": 1.0, "response": {"exponential": 0.3}}),
    ("rounds", "round"),
    ("rounds", {"kind": "round", "response": {"exponential": 0.6}, "deadline": 0.5}),
    ("graph", "broadcast"),
    ("graph", {"kind": "gossip", "mode": "push"}),
    ("graph", {"kind": "gossip", "mode": "push-pull"}),
]


@pytest.fixture(params=EXCHANGES, ids=str)
def system(request: pytest.FixtureRequest, tmp_path) -> AuditSystem:
    kind, exchange = request.param
    if kind == "graph":
        scenario = graph_scenario({"network.exchange": exchange})
    else:
        network = {"topology": {"kind": "star", "agents": 3}, "exchange": exchange}
        changes = {}
        if kind == "rounds":
            changes["learning"] = small_study.tree()["learning"] | {"algorithm": ROUNDS}
        scenario = small_study.scenario(network=network, sweep={}, **changes)
    cell = adapter_of(scenario).cell(scenario, Workspace(tmp_path).case(scenario, 0), 0)
    return GraphSystem(cell, [0, 1]) if kind == "graph" else StarSystem(cell, [0, 1])


def events_of(system: AuditSystem) -> np.ndarray:
    return simulate_events(system.network, Streams(3), commits=12).read()


def test_copies_are_the_run_again_with_their_own_agents(system: AuditSystem) -> None:
    events, copies = events_of(system), 3
    noise = np.zeros((copies, releases_of(events).agents.size, system.dimension))
    played = np.concatenate([chunk for _, chunk, *_ in Copies(events, 2, copies).play(noise)])
    assert (played["seq"] == np.arange(played.size)).all()
    caused = played[played["cause"] >= 0]
    assert (caused["cause"] < caused["seq"]).all()
    for copy in range(copies):
        low, high = 2 * copy, 2 * copy + 2

        def own(agents: np.ndarray, low: int = low, high: int = high) -> np.ndarray:
            return (agents < 0) | ((agents >= low) & (agents < high))

        mine = played[own(played["agent"]) & own(played["peer"])]
        if mine.size > events.size:  # what the learner asks one copy's owners is nobody else's
            mine = mine[(mine["agent"] >= 0) | (mine["peer"] >= 0) | (mine["peer"] == -3)]
        for name in ("time", "version", "release", "kind", "outcome"):
            assert np.array_equal(mine[name], events[name])
        for name in ("agent", "peer"):
            assert np.array_equal(np.where(mine[name] >= 0, mine[name] - low, mine[name]), events[name])
        # Causes are the same events.
        place = {int(seq): at for at, seq in enumerate(events["seq"])}
        again = {int(seq): at for at, seq in enumerate(mine["seq"])}
        assert [again.get(int(cause), -1) for cause in mine["cause"]] == [
            place.get(int(cause), -1) for cause in events["cause"]
        ]


def test_each_copy_shows_what_it_would_alone(system: AuditSystem) -> None:
    events, p = events_of(system), system.dimension
    made = releases_of(events).agents.size
    noise = np.random.default_rng(1).laplace(size=(4, made, p))
    held = pairs(system.limits, p)["dense"]
    key = np.zeros(2, np.uint64)
    together = system.play(held, events, noise, key)
    for copy in range(4):
        alone = system.play(held, events, noise[copy : copy + 1], key)
        assert np.array_equal(together.gradients[copy], alone.gradients[0])
        assert np.array_equal(together.models[copy], alone.models[0])


def test_what_is_seen_is_the_gradient_and_the_noise(system: AuditSystem) -> None:
    events, p = events_of(system), system.dimension
    own = releases_of(events)
    noise = np.random.default_rng(1).laplace(size=(2, own.agents.size, p))
    held = pairs(system.limits, p)["one coordinate"]
    seen = system.play(held, events, noise, np.zeros(2, np.uint64))
    for row, agent in enumerate(own.agents):
        record = held[int(agent)]
        mean = gradients(system.limits, record.x, record.y, seen.models[:, row]) / system.divisors[agent]
        assert np.allclose(seen.gradients[:, row], mean + noise[:, row], atol=1e-8)


def test_a_record_with_no_gradient_changes_nothing(system: AuditSystem) -> None:
    events, p = events_of(system), system.dimension
    made = releases_of(events).agents.size
    nothing = Record(np.zeros(p), 1.0, np.zeros(p))
    seen = system.play([nothing, nothing], events, np.zeros((1, made, p)), np.zeros(2, np.uint64))
    assert not np.abs(seen.gradients).max() > 1e-12
