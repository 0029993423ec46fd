"""How runs end, and the runs that are refused."""

import re
from typing import Any

import networkx as nx
import numpy as np
import pytest
from network_cases import (
    COMMIT,
    LEARNER,
    SEND,
    WAKE,
    Broadcast,
    Channel,
    Gossip,
    Network,
    Poll,
    Request,
    complete,
    of_kind,
    play,
    ring,
    star,
)

from p2psim.core.distributions import Distribution
from p2psim.core.errors import InputError, MeaningError
from p2psim.core.events import SPENT
from p2psim.core.randomness import Streams
from p2psim.network.channels.channel import ResendSame
from p2psim.network.channels.effects import GilbertElliott
from p2psim.network.graph import links
from p2psim.network.simulation import simulate_events

RUNS = {
    "request, array": (star(4), Request(), "array"),
    "request, simpy": (star(4), Request(service=0.1), "simpy"),
    "poll": (star(4), Poll(response=0.2), "simpy"),
    "broadcast, array": (complete(4), Broadcast(), "array"),
    "broadcast, simpy": (complete(4), Broadcast(), "simpy"),
    "gossip, array": (ring(4), Gossip(), "array"),
    "gossip, simpy": (ring(4), Gossip(), "simpy"),
}


def until(events: np.ndarray, end: float) -> np.ndarray:
    """The events up to a time: a slice, since a mask would not copy the padding."""
    return events[: int(np.searchsorted(events["time"], end, side="right"))]


@pytest.mark.parametrize("run", RUNS)
class TestEnds:
    @pytest.mark.parametrize("commits", [1, 7, 100])
    def test_commits(self, run: str, commits: int) -> None:
        where, exchange, engine = RUNS[run]
        events, ended = play(where, exchange, engine=engine, commits=commits)
        assert ended == "commits"
        assert of_kind(events, COMMIT).size == commits
        assert events["kind"][-1] == COMMIT

    def test_time_holds_just_the_events_until_then(self, run: str) -> None:
        where, exchange, engine = RUNS[run]
        longer, _ = play(where, exchange, engine=engine, time=30.0)
        events, ended = play(where, exchange, engine=engine, time=12.0)
        assert ended == "time"
        assert events.tobytes() == until(longer, 12.0).tobytes()

    def test_an_event_at_the_very_end_happens(self, run: str) -> None:
        where, exchange, engine = RUNS[run]
        longer, _ = play(where, exchange, engine=engine, time=30.0)
        end = float(longer["time"][40])
        events, _ = play(where, exchange, engine=engine, time=end)
        assert events.tobytes() == until(longer, end).tobytes()

    def test_a_time_before_anything_happens(self, run: str) -> None:
        where, exchange, engine = RUNS[run]
        events, ended = play(where, exchange, engine=engine, time=1e-9)
        assert (events.size, ended) == (0, "time")

    def test_exhausted_when_nobody_may_release_any_more(self, run: str) -> None:
        where, exchange, engine = RUNS[run]
        limits = np.array([1, 2, 3, 4])
        events, ended = play(where, exchange, engine=engine, commits=10_000, limits=limits)
        assert ended == "exhausted"
        commits = of_kind(events, COMMIT)
        whose = commits["peer"] if where.star else commits["agent"]
        assert np.bincount(whose).tolist() == limits.tolist()

    def test_the_last_commit_wins_over_exhaustion(self, run: str) -> None:
        where, exchange, engine = RUNS[run]
        _, ended = play(where, exchange, engine=engine, commits=8, limits=np.full(4, 2))
        assert ended == "commits"

    def test_limits_out_of_reach_change_nothing(self, run: str) -> None:
        where, exchange, engine = RUNS[run]
        free, _ = play(where, exchange, engine=engine, commits=50)
        bound, _ = play(where, exchange, engine=engine, commits=50, limits=np.full(4, 1000))
        assert free.tobytes() == bound.tobytes()


class TestSpent:
    @pytest.mark.parametrize("exchange", [Broadcast(), Gossip()])
    def test_spent_agents_wake_but_do_nothing(self, exchange: Any) -> None:
        limits = np.array([1, 50, 50, 50])
        events, _ = play(complete(4), exchange, time=20.0, limits=limits)
        own = events[events["agent"] == 0]
        assert np.sum(own["kind"] == SEND) == 1
        wakes = of_kind(own, WAKE)
        assert wakes.size > 5
        assert (wakes["outcome"][1:] == SPENT).all()

    def test_messages_under_way_still_arrive(self) -> None:
        events, ended = play(
            complete(3), Broadcast(), Channel(latency=5.0), commits=100, limits=np.ones(3, np.int64)
        )
        assert ended == "exhausted"
        assert np.sum(np.isin(events["kind"], [2, 3])) == 6


GOOD: dict[str, Any] = {"network": Network(star(3), Request()), "commits": 5}


class TestRefused:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"commits": None}, "needs an end"),
            ({"commits": None, "time": np.inf}, "a finite time"),
            ({"commits": 0}, "must be positive"),
            ({"commits": -3}, "must be positive"),
            ({"time": 0.0}, "must be positive"),
            ({"time": -1.0}, "must be positive"),
            ({"time": np.nan}, "must be positive"),
            ({"chunk": 0}, "must be positive"),
            ({"engine": "arrays"}, "unknown engine 'arrays'; known: auto, simpy, array"),
            ({"engine": ""}, "unknown engine"),
            ({"limits": np.array([1, 0, 1])}, "limits must be 3 whole numbers of at least 1"),
            ({"limits": np.array([1, -1, 1])}, "limits must be 3 whole numbers"),
            ({"limits": np.array([1, 1])}, "limits must be 3 whole numbers"),
            ({"limits": np.array([1.0, np.nan, 1.0])}, "limits must be 3 whole numbers"),
            (
                {"network": Network(star(3), Request(), rates=np.array([1.0, -1.0, 1.0]))},
                "3 positive finite numbers",
            ),
            (
                {"network": Network(star(3), Request(), rates=np.array([1.0, 0.0, 1.0]))},
                "3 positive finite numbers",
            ),
            (
                {"network": Network(star(3), Request(), rates=np.array([1.0, np.nan, 1.0]))},
                "3 positive finite numbers",
            ),
            (
                {"network": Network(star(3), Request(), rates=np.array([1.0, np.inf, 1.0]))},
                "3 positive finite numbers",
            ),
            ({"network": Network(star(3), Request(), rates=np.ones(2))}, "3 positive finite numbers"),
            ({"network": Network(star(3), Broadcast())}, "needs a graph without a central learner"),
            ({"network": Network(star(3), Gossip())}, "needs a graph without a central learner"),
            ({"network": Network(ring(3), Request())}, "needs a star with a central learner"),
            ({"network": Network(ring(3), Poll())}, "needs a star with a central learner"),
            ({"network": Network(star(3), Request(), Channel(loss=1.0))}, "no commit would ever be made"),
            ({"network": Network(star(3), Poll(), Channel(loss=1.0))}, "no commit would ever be made"),
        ],
    )
    @pytest.mark.parametrize("engine", ["auto", "simpy"])
    def test_with_a_clear_message(self, change: dict[str, Any], message: str, engine: str) -> None:
        given = {"engine": engine} | GOOD | change
        with pytest.raises(InputError, match=re.escape(message)):
            simulate_events(given.pop("network"), Streams(), **given)

    @pytest.mark.parametrize(
        "network",
        [
            Network(star(3), Request(), Channel(latency=0.1)),
            Network(star(3), Request(), Channel(loss=0.1, retransmit=ResendSame())),
            Network(star(3), Request(), Channel(loss=GilbertElliott(mean=0.1, burst=1.0))),
            Network(star(3), Request(service=0.1)),
            Network(star(3), Request(service=Distribution(exponential=1.0))),
            Network(star(3), Poll()),
        ],
    )
    def test_array_engine_takes_what_ships(self, network: Network) -> None:
        runs = [
            simulate_events(network, Streams(), commits=5, engine=engine) for engine in ("array", "simpy")
        ]
        compiled, reference = (run.read().tobytes() for run in runs)
        assert compiled == reference


def edges(*pairs: tuple[Any, Any]) -> "nx.Graph[Any]":
    return nx.Graph(pairs)


def with_nodes(graph: "nx.Graph[Any]", *nodes: Any) -> "nx.Graph[Any]":
    graph.add_nodes_from(nodes)
    return graph


class TestGraphs:
    @pytest.mark.parametrize(
        ("graph", "message"),
        [
            (nx.DiGraph([(0, 1), (1, 0)]), "directed"),
            (edges((0, 1), (1, 3)), "nodes must be 0 … 2"),
            (edges((1, 2), (2, 3)), "nodes must be 0 … 2"),
            (edges(("a", "b")), "nodes must be 0 … 1"),
            (edges((0, 1), (1, -2)), "nodes must be 0 … 2"),
            (nx.Graph(), "nodes must be"),
            (with_nodes(nx.Graph(), LEARNER), "nodes must be"),
            (edges((0, 1), (1, 1)), "agent 1 is linked with itself"),
            (with_nodes(edges((0, 1)), 2), "agent 2 has no link"),
            (with_nodes(nx.Graph(), 0), "agent 0 has no link"),
            (
                edges((LEARNER, 0), (LEARNER, 1), (0, 1)),
                r"agent 0 must be linked with it and nobody else; got [-1, 1]",
            ),
            (with_nodes(edges((LEARNER, 0)), 1), "agent 1 must be linked with it and nobody else; got []"),
            (edges((LEARNER, 0), (LEARNER, LEARNER)), "the learner is linked with itself"),
        ],
    )
    def test_refused(self, graph: "nx.Graph[Any]", message: str) -> None:
        with pytest.raises(InputError, match=re.escape(message)):
            links(graph)

    def test_arrays_hold_the_neighbours(self) -> None:
        graph = nx.gnm_random_graph(20, 60, seed=1)
        arrays = links(graph)
        assert (arrays.agents, arrays.star) == (20, False)
        assert all(arrays.of(agent).tolist() == sorted(graph.adj[agent]) for agent in graph)

    def test_star(self) -> None:
        arrays = star(3)
        assert (arrays.agents, arrays.star) == (3, True)
        assert all(arrays.of(owner).tolist() == [LEARNER] for owner in range(3))

    def test_a_ring_of_two(self) -> None:
        with pytest.raises(MeaningError, match="at least 3 agents, got 2"):
            ring(2)

    def test_rates_are_read_from_nodes(self) -> None:
        graph = nx.path_graph(3)
        graph.nodes[1]["rate"] = 7.0
        network = Network.of_graph(graph, Gossip())
        assert network.rates is not None
        assert network.rates.tolist() == [1.0, 7.0, 1.0]

    def test_negative_rate_of_a_node(self) -> None:
        graph = nx.path_graph(3)
        graph.nodes[1]["rate"] = -7.0
        with pytest.raises(MeaningError, match="positive finite") as caught:
            simulate_events(Network.of_graph(graph, Gossip()), Streams(), commits=1)
        assert caught.value.faults[0].key == "network.clock.rate"
