"""The array engine gives SimPy's events, bit for bit."""

import heapq

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from network_cases import (
    Broadcast,
    Gossip,
    Graph,
    Network,
    Poll,
    Request,
    Round,
    connected_graphs,
    is_edge,
    of_kind,
    play,
    star,
)

from p2psim.core.events import DROP, LEARNER, LOSS
from p2psim.core.randomness import Streams
from p2psim.network.availability import Bernoulli, Renewal
from p2psim.network.channels.channel import Channel
from p2psim.network.compiled_engine.ideal import sift_down
from p2psim.network.graph import links
from p2psim.network.simulation import simulate_events
from p2psim.network.verify import verify


def weighted(graph: "nx.Graph[int]") -> Graph:
    """Weights from tiny to large and a loss on each link, the same for the same graph."""
    random = np.random.default_rng(graph.number_of_edges())
    for a, b in graph.edges:
        graph.edges[a, b]["weight"] = float(10.0 ** random.uniform(-3, 3))
        graph.edges[a, b]["fading"] = float(random.choice([0.0, random.uniform(0, 0.8)]))
    return links(graph)


def fading_star(owners: int) -> Graph:
    graph = nx.relabel_nodes(nx.star_graph(owners), {node: node - 1 for node in range(owners + 1)})
    return weighted(graph)


ASKING = st.just(Request()) | st.builds(
    Round, interval=st.sampled_from([0.01, 0.1, 0.3]), deadline=st.just(0.05)
)
STARS = st.tuples(st.integers(1, 30).map(star), ASKING)
GOSSIPS = st.builds(
    Gossip,
    mode=st.sampled_from(["push", "pull", "push-pull", "edge"]),
    partner=st.sampled_from(["uniform", "weight"]),
)
GRAPHS = st.tuples(connected_graphs().map(weighted), st.just(Broadcast()) | GOSSIPS)
FADING_STARS = st.tuples(st.integers(1, 30).map(fading_star), ASKING)
LOSSES = st.sampled_from([0.0, 1e-3, 0.3, 0.8]) | st.just({"edge": "fading"})
DROPS = st.sampled_from([0.0, 1e-3, 0.5, 0.9])
RATES = st.floats(0.01, 100.0) | st.just(1.0)

ENDS = (
    st.builds(dict, commits=st.integers(1, 300))
    | st.builds(dict, time=st.floats(1e-3, 3.0))
    | st.builds(dict, commits=st.integers(1, 300), time=st.floats(1e-3, 3.0))
)


class TestEnginesAgree:
    @settings(max_examples=150, deadline=None)
    @given(case=STARS | GRAPHS, end=ENDS, seed=st.integers(-(2**70), 2**70), data=st.data())
    def test_bit_for_bit(
        self, case: tuple[Graph, Request], end: dict[str, float], seed: int, data: st.DataObject
    ) -> None:
        where, exchange = case
        n = where.agents
        rates = np.array(data.draw(st.lists(RATES, min_size=n, max_size=n)))
        rates *= min(1.0, 200 / rates.sum())  # a few hundred wakes at most
        goes_on = not where.star and data.draw(st.booleans(), label="agents go on without their data")
        hears = isinstance(exchange, Gossip) and data.draw(st.booleans(), label="updates on hearing")
        least = 0 if goes_on else 1
        limits = data.draw(st.none() | st.lists(st.integers(least, 20), min_size=n, max_size=n).map(np.array))
        made = {}
        for engine in ("simpy", "array"):
            chunk = data.draw(st.integers(1, 400), label=f"chunk of {engine}")
            made[engine] = play(
                where,
                exchange,
                rates=rates,
                seed=seed,
                limits=limits,
                engine=engine,
                chunk=chunk,
                goes_on=goes_on,
                updates="hear" if hears else "wake",
                **end,
            )
        (events, ended), (others, ended_too) = made["simpy"], made["array"]
        assert events.tobytes() == others.tobytes()
        assert ended == ended_too
        assert ended in ("commits", "time", "exhausted")
        verify([events], where, limits, goes_on, by_edge=is_edge(exchange))

    @settings(max_examples=150, deadline=None)
    @given(case=FADING_STARS | GRAPHS, end=ENDS, seed=st.integers(-(2**70), 2**70), data=st.data())
    def test_where_messages_are_lost_and_wakes_missed(
        self, case: tuple[Graph, Request], end: dict[str, float], seed: int, data: st.DataObject
    ) -> None:
        where, exchange = case
        n = where.agents
        goes_on = not where.star and data.draw(st.booleans(), label="agents go on without their data")
        hears = isinstance(exchange, Gossip) and data.draw(st.booleans(), label="updates on hearing")
        least = 0 if goes_on else 1
        limits = data.draw(st.none() | st.lists(st.integers(least, 20), min_size=n, max_size=n).map(np.array))
        drops = data.draw(st.lists(DROPS, min_size=n, max_size=n), label="drops")
        channel = Channel.model_validate({"loss": data.draw(LOSSES, label="loss")})
        # Not the chance that everything is lost: then there may be no end.
        end = {"time": 20.0} | end
        made = [
            play(
                where, exchange, channel, seed=seed, limits=limits, goes_on=goes_on,
                updates="hear" if hears else "wake", engine=engine, chunk=data.draw(st.integers(1, 400)),
                availability=Bernoulli.model_validate({"drop": {str(i): drop for i, drop in enumerate(drops)}}),
                **end,
            )
            for engine in ("simpy", "array")
        ]  # fmt: skip
        (events, ended), (others, ended_too) = made
        assert events.tobytes() == others.tobytes()
        assert ended == ended_too
        verify([events], where, limits, goes_on, by_edge=is_edge(exchange))

    def test_queries_and_answers_are_lost_each_for_itself(self) -> None:
        """At loss q a query ends in a commit with chance (1 − q)², and 1 − q of the lost are lost on the way out.

        The bounds are four standard deviations: false alarms 6e-5 each.
        """
        loss, size = 0.3, 20_000
        events, _ = play(star(5), Request(), Channel(loss=loss), commits=size, engine="array")
        lost = of_kind(events, DROP)
        assert (lost["outcome"] == LOSS).all()
        queries, answers = lost[lost["peer"] == LEARNER], lost[lost["agent"] == LEARNER]
        assert (queries["release"] == -1).all()
        assert (answers["release"] >= 0).all()
        # Answers lost before the last commit, and queries lost before its query, are negative binomial.
        for found, among in ((answers.size, size), (queries.size, size + answers.size)):
            spread = np.sqrt(among * loss) / (1 - loss)
            assert abs(found - among * loss / (1 - loss)) < 4 * spread

    @settings(max_examples=20, deadline=None)
    @given(seed=st.integers(0, 10**9), replica=st.integers(0, 100), variant=st.text(max_size=3))
    def test_whatever_the_streams(self, seed: int, replica: int, variant: str) -> None:
        streams = Streams(seed, replica, {"clocks": variant, "peers": variant})
        network = Network(links(simple_grid()), Gossip())
        made = [simulate_events(network, streams, commits=60, engine=engine) for engine in ("simpy", "array")]
        assert [stream.engine for stream in made] == ["simpy", "array"]
        assert made[0].read().tobytes() == made[1].read().tobytes()

    def test_auto_takes_the_array_engine_for_every_network_that_ships(self) -> None:
        for exchange in (Request(), Request(service=0.1), Round(response=0.1), Poll()):
            for channel in (
                {},
                {"loss": 0.5, "retransmit": "same"},
                {"retransmit": "fresh"},
                {"latency": 0.1},
            ):
                network = Network(star(2), exchange, Channel.model_validate(channel))
                assert simulate_events(network, Streams(), commits=1).engine == "array"
        for availability in (Bernoulli(drop=0.5), Renewal(up=1.0, down=1.0)):
            network = Network(star(2), Request(), availability=availability)
            assert simulate_events(network, Streams(), commits=1).engine == "array"


def simple_grid() -> "nx.Graph[int]":
    return nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 3))


class TestTies:
    """Clocks that tick at one moment have their turns by agent."""

    @settings(max_examples=100, deadline=None)
    @given(
        start=st.lists(st.integers(0, 3), min_size=1, max_size=20),
        gaps=st.lists(st.integers(0, 3), min_size=1, max_size=100),
    )
    def test_compiled_heap_pops_as_heapq(self, start: list[int], gaps: list[int]) -> None:
        size = len(start)
        times, agents = np.array(start, float), np.arange(size, dtype=np.int32)
        for place in range(size // 2, -1, -1):
            sift_down(times, agents, place, size)
        plain = [(float(time), agent) for agent, time in enumerate(start)]
        heapq.heapify(plain)
        for gap in gaps:
            now, agent = plain[0]
            assert (times[0], agents[0]) == (now, agent)
            heapq.heapreplace(plain, (now + gap, agent))
            times[0] = now + gap
            sift_down(times, agents, 0, size)
