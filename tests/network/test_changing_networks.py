"""Events on graphs that change, in both engines: sends follow the links of their moment, and nothing else does."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from drawn_networks import Scheduled, changing
from hypothesis import given, settings
from hypothesis import strategies as st
from neighbours import Neighbours
from network_cases import of_kind

import p2psim
from p2psim.core.events import (
    ALONE,
    COMMIT,
    DELIVER,
    NEIGHBOURS,
    OK,
    SEND,
    WAKE,
)
from p2psim.core.randomness import Streams
from p2psim.network.changes import Change, LinkChanges
from p2psim.network.graph import Graph, TopologyInputs, links
from p2psim.network.simulation import simulate_events
from p2psim.network.topologies import Topology
from p2psim.network.verify import EventsError, verify

TOPOLOGIES = [
    p2psim.OnePeerExponential(agents=8, interval=0.7),
    p2psim.RandomMatching(agents=9, interval=0.3),
    p2psim.Rewired.model_validate({"of": {"kind": "ring", "agents": 10}, "share": 0.4, "interval": 0.5}),
    p2psim.RandomWaypoint(agents=12, radius=0.3, speed=(0.1, 0.3), interval=0.25),
]
ENGINES = ("simpy", "array")


def scripted(
    graph: "nx.Graph[int]", *moments: tuple[float, list[tuple[int, int]], list[tuple[int, int]]]
) -> Graph:
    changes = tuple(Change(time, comes, goes) for time, comes, goes in moments)
    return replace(
        links(graph), changes=LinkChanges(Scheduled(changes), TopologyInputs(), np.zeros(2, np.uint64))
    )


@settings(max_examples=60, deadline=None)
@given(
    topology=st.sampled_from(TOPOLOGIES),
    exchange=st.sampled_from(
        [p2psim.Broadcast(), *(p2psim.Gossip(mode=mode) for mode in ("push", "pull", "push-pull", "edge"))]
    ),
    latency=st.sampled_from([0.0, 0.4]),
    engine=st.sampled_from(ENGINES),
    seed=st.integers(0, 2**31),
)
def test_sends_go_over_links_that_are_there(
    topology: Topology, exchange: p2psim.Exchange, latency: float, engine: str, seed: int
) -> None:
    network = p2psim.Network.of_graph(topology, exchange, p2psim.Channel(latency=latency), seed=seed)
    events = simulate_events(network, seed=seed, time=4.0, engine=engine).read()
    neighbours = Neighbours(network.links)
    heard_by: dict[int, set[int]] = {}
    for event in events:
        near = neighbours.at(float(event["time"]), int(event["agent"]))
        if event["kind"] == SEND:
            to = near if event["peer"] == NEIGHBOURS else {int(event["peer"])}
            assert to
            assert to <= near
            if isinstance(exchange, p2psim.Broadcast):
                assert to == near
            heard_by[int(event["seq"])] = set(to)
        elif event["kind"] == WAKE:
            assert (event["outcome"] == ALONE) == (not near)
        elif event["kind"] == DELIVER:
            # Whatever has become of the link: each receiver hears once.
            heard_by[int(event["cause"])].remove(int(event["agent"]))
    if not latency:
        assert not any(heard_by.values())
    # Whoever wakes alone does nothing.
    alone = events["seq"][(events["kind"] == WAKE) & (events["outcome"] == ALONE)]
    assert not np.isin(events["cause"], alone).any()


@pytest.mark.parametrize("engine", ENGINES)
def test_partners_are_drawn_among_those_of_the_moment(engine: str) -> None:
    """Agent 0 has neighbours 1, 2, 3 of weights 1, 2, 1, and in turn only two of them."""
    star: nx.Graph[int] = nx.star_graph(3)
    star.edges[0, 2]["weight"] = 2.0
    star.edges[0, 1]["weight"] = star.edges[0, 3]["weight"] = 1.0
    end = 12_000 if engine == "array" else 2_500
    turns = [(0.0, [(0, 1), (0, 2)], [])]
    turns += [
        (float(k), [(0, 1), (0, 3)][k % 2 : k % 2 + 1], [(0, 3), (0, 1)][k % 2 : k % 2 + 1])
        for k in range(1, end)
    ]
    graph = scripted(star, *turns)
    for partner, chance in (("uniform", 1 / 2), ("weight", 2 / 3)):
        network = p2psim.Network(graph, p2psim.Gossip(partner=partner))
        events = simulate_events(network, seed=4, time=float(end), engine=engine).read()
        sent = events[(events["kind"] == SEND) & (events["agent"] == 0)]
        count = sent.size
        chosen = int((sent["peer"] == 2).sum())
        assert count > 0.9 * end
        assert abs(chosen - chance * count) < 4 * np.sqrt(count * chance * (1 - chance))


class TestWhatIsUnderWay:
    """Agents 0 and 1 are linked until 1.0; messages take 0.6."""

    def play(self, mode: str, engine: str, channel: p2psim.Channel) -> np.ndarray:
        graph = scripted(nx.path_graph(2), (0.0, [(0, 1)], []), (1.0, [], [(0, 1)]))
        network = p2psim.Network(
            graph, p2psim.Gossip(mode=mode), channel, rates=np.full(2, 5.0), updates="hear"
        )
        return simulate_events(network, seed=8, time=6.0, engine=engine).read()

    @pytest.mark.parametrize("engine", ENGINES)
    @pytest.mark.parametrize("mode", ["push", "pull", "push-pull", "edge"])
    def test_arrives_and_is_not_answered(self, mode: str, engine: str) -> None:
        events = self.play(mode, engine, p2psim.Channel(latency=0.6))
        woken = events[(events["kind"] == WAKE) & (events["outcome"] == OK)]
        assert woken.size
        assert (woken["time"] < 1).all()
        late = of_kind(events, DELIVER)
        late = late[late["time"] > 1]
        assert late.size
        answered = np.isin(late["seq"], of_kind(events, SEND)["cause"])
        assert not answered.any()
        commits = np.isin(late["seq"], of_kind(events, COMMIT)["cause"])
        assert commits.all() if mode in ("push", "push-pull") else not commits[late["version"] < 0].any()
        assert (events["outcome"][(events["kind"] == WAKE) & (events["time"] >= 1)] == ALONE).all()

    @pytest.mark.parametrize("engine", ENGINES)
    def test_is_sent_again(self, engine: str) -> None:
        """On an air that collides never and loses half, what was sent before 1.0 arrives after many retries."""
        channel = p2psim.Channel.model_validate(
            {
                "airtime": 0.2, "collision": "slotted", "loss": 0.5,
                "retransmit": {"kind": "same", "limit": 30, "backoff": 0.3},
            }
        )  # fmt: skip
        events = self.play("push", engine, channel)
        assert of_kind(events, SEND).size == of_kind(events, DELIVER).size > 0


@pytest.mark.parametrize("engine", ENGINES)
def test_links_change_before_anything_else_at_their_instant(engine: str) -> None:
    """A link that comes when its agent wakes is there for it, and one that goes then is not."""
    path = nx.path_graph(2)
    static = p2psim.Network(links(path), p2psim.Gossip())
    first, second = of_kind(simulate_events(static, seed=2, time=9.0, engine=engine).read(), WAKE)["time"][:2]
    graph = scripted(path, (0.0, [], []), (float(first), [(0, 1)], []), (float(second), [], [(0, 1)]))
    events = simulate_events(p2psim.Network(graph, p2psim.Gossip()), seed=2, time=9.0, engine=engine).read()
    woken = of_kind(events, WAKE)
    assert woken["time"][0] == first
    assert woken["outcome"][0] == OK
    assert (woken["outcome"][1:] == ALONE).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_who_comes_back_fetches_from_a_neighbour_of_the_moment(engine: str) -> None:
    triangle = nx.complete_graph(3)
    graph = scripted(triangle, (0.0, [(0, 1), (1, 2)], []), (1.0, [(0, 2)], [(0, 1)]))
    away = p2psim.Scripted.model_validate(
        {"intervals": [{"agent": 0, "begin": 0.5, "end": 1.0}], "spans_are": "absent", "rejoin": "fetch"}
    )
    network = p2psim.Network(graph, p2psim.Gossip(), availability=away)
    events = simulate_events(network, seed=1, time=3.0, engine=engine).read()
    (peer,) = events["peer"][events["kind"] == 5]
    assert peer == 2


@pytest.mark.parametrize("engine", ENGINES)
def test_hearing_follows_links_on_a_shared_medium(engine: str) -> None:
    """Agent 1 hears 0 and 2, which do not hear each other; once 2 is not near any more, its air is quiet for 1."""
    path = nx.path_graph(4)
    near = (0.0, [(0, 1), (1, 2), (2, 3)], [])
    channel = p2psim.Channel.model_validate({"airtime": 0.5, "collision": "aloha", "while_sending": "skip"})
    rates = np.array([1.0, 1e-9, 1.0, 1e-9])

    def collisions(*moments: tuple[float, list[tuple[int, int]], list[tuple[int, int]]]) -> int:
        network = p2psim.Network(scripted(path, *moments), p2psim.Broadcast(), channel, rates=rates)
        events = simulate_events(network, seed=3, time=200.0, engine=engine).read()
        return int(((events["outcome"] == 5) & (events["agent"] == 1)).sum())

    assert collisions(near) > 50
    assert collisions(near, (0.1, [], [(1, 2)])) == 0


def test_long_runs_read_changes_block_by_block() -> None:
    """Many more links change than are read at once."""
    topology = p2psim.RandomMatching(agents=40, interval=0.01)
    network = p2psim.Network.of_graph(topology, p2psim.Gossip(mode="push-pull"), seed=5)
    ours, others = (
        simulate_events(network, seed=5, commits=2000, engine=engine).read() for engine in ENGINES
    )
    assert ours.tobytes() == others.tobytes()
    assert verify([ours], network.links) == ours.size


def test_a_graph_that_never_changes_is_like_one_without_changes() -> None:
    ring = links(nx.cycle_graph(6))
    always = changing(ring, np.zeros(1), 1.1, np.random.default_rng(0))
    made = [
        simulate_events(
            p2psim.Network(graph, p2psim.Gossip(mode="pull")), Streams(3), time=50.0, engine=engine
        ).read()
        for graph in (ring, always)
        for engine in ENGINES
    ]
    assert len({events.tobytes() for events in made}) == 1


class TestVerifier:
    def events(self) -> tuple[np.ndarray, Graph]:
        graph = scripted(
            nx.cycle_graph(4), (0.0, [(0, 1), (2, 3)], []), (2.0, [(1, 2), (0, 3)], [(0, 1), (2, 3)])
        )
        network = p2psim.Network(graph, p2psim.Gossip(mode="push"), updates="hear")
        return simulate_events(network, seed=1, time=4.0).read(), graph

    def test_accepts_what_was_made(self) -> None:
        events, graph = self.events()
        assert verify([events], graph) == events.size

    def test_a_send_over_a_link_that_has_gone(self) -> None:
        events, graph = self.events()
        late = int(np.flatnonzero((events["kind"] == SEND) & (events["time"] > 2))[0])
        partner = {0: 1, 1: 0, 2: 3, 3: 2}[int(events["agent"][late])]
        events["peer"][late] = partner
        with pytest.raises(EventsError, match="its link is not there now"):
            verify([events], graph)

    def test_a_wake_alone_of_who_has_neighbours(self) -> None:
        events, graph = self.events()
        events["outcome"][events["kind"] == WAKE] = ALONE
        with pytest.raises(EventsError, match="the agent has neighbours"):
            verify([events], graph)
