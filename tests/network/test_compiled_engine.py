"""Parts of the compiled engine, each against NumPy's generators or a plain implementation.

That whole runs are those of the SimPy engine is in `test_whole_networks`.
"""

import heapq
import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from network_cases import Gossip, Network, Poll, ring, star

from p2psim.core.distributions import Distribution
from p2psim.core.events import EVENT, join
from p2psim.core.philox import uniform
from p2psim.core.randomness import Rewound, Streams, generator, stream_key
from p2psim.network.availability import Renewal
from p2psim.network.availability.renewal import (
    ConstantSpans,
    ExponentialSpans,
    LognormalSpans,
    RenewalTurns,
    SpanDistribution,
    WeibullSpans,
)
from p2psim.network.channels.channel import Channel
from p2psim.network.compiled_engine import state
from p2psim.network.compiled_engine.calendar import appoint, take_first, timer
from p2psim.network.compiled_engine.ends import online_below
from p2psim.network.compiled_engine.run import MachineRun
from p2psim.network.compiled_engine.travel import Tables
from p2psim.network.compiled_engine.turns import Turns
from p2psim.network.members import Members
from p2psim.network.section import RunSetup
from p2psim.network.simulation import EventStream, simulate_events

LAWS = st.sampled_from(
    [
        Distribution(exponential=0.3),
        Distribution.model_validate({"lognormal": {"mean": 1.0, "sigma": 0.5}}),
        Distribution.model_validate({"weibull": {"mean": 1.0, "shape": 0.7}}),
        Distribution.model_validate({"gamma": {"mean": 1.0, "shape": 0.4}}),
    ]
)
SPANS = st.sampled_from([ExponentialSpans(), LognormalSpans(), WeibullSpans(), ConstantSpans()])
KEY = stream_key(4, 0, "latency")


def machine(network: Network) -> MachineRun:
    """A run before its time begins."""
    return MachineRun(RunSetup(network, np.ones(network.links.agents), Streams(2), None, None, 100.0, 64))


class TestStreams:
    @settings(max_examples=100, deadline=None)
    @given(
        agent=st.integers(-1, 2**31),
        lane=st.integers(0, 1),
        sizes=st.lists(st.integers(0, 40), max_size=8),
        law=LAWS,
    )
    def test_go_on_where_they_were_left(
        self, agent: int, lane: int, sizes: list[int], law: Distribution
    ) -> None:
        """Whatever another agent has drawn from the same generator in between."""
        rewound, place, drawn = Rewound(KEY), (0, -1), []
        for size in sizes:
            drawn.append(law.sample(rewound.at(agent, lane, *place), size))
            place = rewound.place()
            rewound.at(agent + 1).integers(7, size=3)
        whole = law.sample(generator(KEY, agent, lane), sum(sizes))
        assert (np.concatenate([*drawn, []]) == whole).all()

    def test_go_on_with_half_a_word(self) -> None:
        """A whole number below 2³² takes half a word, and leaves the other half for the next."""
        rewound, place, drawn = Rewound(KEY), (0, -1), []
        for size in (1, 2, 3, 5, 8):
            drawn.append(rewound.at(3, 0, *place).integers(1000, size=size))
            place = rewound.place()
        assert (np.concatenate(drawn) == generator(KEY, 3).integers(1000, size=19)).all()

    @given(agent=st.integers(-1, 2**40), lane=st.integers(0, 3), place=st.integers(0, 50))
    def test_compiled_draws_have_lanes(self, agent: int, lane: int, place: int) -> None:
        assert uniform(KEY, agent, place, lane) == generator(KEY, agent, lane).random(place + 1)[-1]

    @settings(max_examples=30, deadline=None)
    @given(law=LAWS, uses=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 90)), max_size=12))
    def test_tables_hold_the_draws_of_every_agent(
        self, law: Distribution, uses: list[tuple[int, int]]
    ) -> None:
        """Agents use theirs in any order; the last is the learner."""
        agents, streams = 3, Streams(6)
        tables = Tables(np.zeros(agents + 1, state.AGENT))
        tables.add(state.RESPONSE_TIME, law, streams, "response")
        places, drawn = tables.places[state.RESPONSE_TIME], [[] for _ in range(agents + 1)]
        for agent, count in uses:
            for _ in range(count):
                if places[agent] == tables.cursors["count"][agent]:
                    tables.fill(int(state.RESPONSE_TIME))
                drawn[agent].append(tables.table[tables.cursors["first"][agent] + places[agent]])
                places[agent] += 1
        for agent, numbers in enumerate(drawn):
            address = agent if agent < agents else -1
            assert numbers == law.sample(streams.generator("response", address), len(numbers)).tolist()

    @settings(max_examples=60, deadline=None)
    @given(agent=st.integers(0, 4), bounds=st.lists(st.integers(1, 2**31), min_size=1, max_size=30))
    def test_whole_numbers_are_those_of_numpy(self, agent: int, bounds: list[int]) -> None:
        network = Network(ring(5), Gossip(), availability=Renewal(up=1.0, down=1.0, rejoin="fetch"))
        run, random = machine(network), Streams(2).generator("rejoin", agent)
        found = [online_below(run._m, np.int64(agent), np.int64(bound)) for bound in bounds]
        assert found == [int(random.integers(bound)) for bound in bounds]


class TestTurns:
    @settings(max_examples=60, deadline=None)
    @given(
        agent=st.integers(-1, 99), up=st.floats(0.1, 9), down=st.floats(0.1, 9), up_law=SPANS, down_law=SPANS
    )
    def test_of_a_renewal_process_are_sums_of_its_spans(
        self, agent: int, up: float, down: float, up_law: SpanDistribution, down_law: SpanDistribution
    ) -> None:
        """First what is left of the span at time 0, then others by turns, from blocks of 32 of each kind."""
        random = generator(KEY, agent)
        begins = random.random() < up / (up + down)
        spans = [(up_law if begins else down_law).residual(up if begins else down, random)]
        for _ in range(3):
            ups, downs = up_law.durations(up, random, 32), down_law.durations(down, random, 32)
            for pair in zip(ups.tolist(), downs.tolist(), strict=True):
                spans += pair[::-1] if begins else pair
        process = RenewalTurns(rewound := Rewound(KEY), agent, up, down, up_law, down_law)
        RenewalTurns(rewound, agent + 1, up, down, up_law, down_law)
        assert process.begins == begins
        assert list(itertools.islice(process, len(spans))) == list(itertools.accumulate(spans))

    @settings(max_examples=40, deadline=None)
    @given(
        seed=st.integers(0, 99), up=st.floats(0.05, 9), end=st.floats(1, 60) | st.just(np.inf), data=st.data()
    )
    def test_come_in_order_and_all_of_them(
        self, seed: int, up: float, end: float, data: st.DataObject
    ) -> None:
        availability = Renewal(up={str(i): up * 10**i for i in range(3)}, down=0.5, up_law=WeibullSpans())
        turns = Turns(ring(3), Members.unnamed(3), availability, Streams(seed), end)
        turns.MANY = data.draw(st.integers(1, 300))
        first = turns.first()
        found = []
        while turns.known < min(end, 30.0):
            before, span = turns.known, turns.more()
            assert (np.diff(span["time"]) >= 0).all()
            assert ((span["time"] > before) & (span["time"] <= turns.known)).all() or not before
            found += [(float(turn["time"]), int(turn["group"])) for turn in span]
        upto = min(end, turns.known)
        expected = []
        for agent in range(3):
            process = RenewalTurns(
                Rewound(Streams(seed).key("availability")),
                agent,
                up * 10**agent,
                0.5,
                WeibullSpans(),
                ExponentialSpans(),
            )
            assert (agent in first["group"]) == (not process.begins)
            expected += [(turn, agent) for turn in itertools.takewhile(lambda turn: turn <= upto, process)]
        assert found == sorted(expected)


class TestAppointments:
    @settings(max_examples=60, deadline=None)
    @given(
        st.lists(
            st.tuples(
                st.integers(0, 2), st.integers(1, 3), st.integers(-1, 2), st.integers(0, 2), st.integers(0, 7),
                st.integers(-1, 3),
            ) | st.none(),
            max_size=120,
        )
    )  # fmt: skip
    def test_come_up_in_the_order_of_their_keys(
        self, steps: list[tuple[int, int, int, int, int, int] | None]
    ) -> None:
        """Each step makes an appointment (time, class, agent, number, kind, peer), or takes the first."""
        run, plain = machine(Network(star(3), Poll(), Channel(latency=0.1))), []
        m, s = run._m, run._state
        take_first(m)  # the first poll
        for step in steps:
            if step is not None:
                time, order, agent, number, kind, peer = step
                place = timer(m, np.int64(agent), np.int64(number), np.int64(0))
                run._arrays["messages"]["receiver"][place] = agent
                codes = [np.int64(code) for code in (order, kind, number, peer)]
                appoint(m, float(time), place, *codes)
                heapq.heappush(plain, step)
            elif plain:
                e = run._arrays["messages"][take_first(m)]
                found = s["now"], e["order"], e["sender"], e["number"], e["kind"], e["peer"]
                assert found == heapq.heappop(plain)


def test_rooms_grow() -> None:
    """Of a slow channel thousands of messages are on their way at once."""
    network = Network(ring(30), Gossip(mode="push-pull"), Channel(latency=40.0))
    run = machine(network)
    events = join(list(run.run()))
    assert run._arrays["messages"].size > 1000
    assert (
        events.tobytes() == simulate_events(network, Streams(2), time=100.0, engine="simpy").read().tobytes()
    )


#: What may be kept of a chunk: nothing, all of it, a part, a column.
_KEPT = (lambda part: None, lambda part: part, lambda part: part[1:3], lambda part: part["seq"])


@given(st.integers(1, 9), st.integers(1, 4), st.lists(st.sampled_from(_KEPT), min_size=1, max_size=30))
def test_what_somebody_keeps_of_a_chunk_stays_as_it_is(
    chunk: int, room: int, kept: list[Callable[[np.ndarray], np.ndarray | None]]
) -> None:
    """Memory of chunks that nobody looks at any more may be written over, and no other."""
    numbers, seen = itertools.count(), [np.empty(0, np.int64)]

    def write(out: np.ndarray, at: int) -> int:
        while out.size - at >= room:
            out["seq"][at] = next(numbers)
            at += 1
        return at

    pairs = []
    for part, keep in zip(state.in_chunks(chunk, room, lambda: True, write), kept, strict=False):
        seen.append(part["seq"].copy())
        if (one := keep(part)) is not None:
            pairs.append((one, one.tobytes()))
    assert np.concatenate(seen).tolist() == list(range(chunk * len(kept)))
    assert all(one.tobytes() == was for one, was in pairs)


@pytest.mark.parametrize("latency", [0.0, 0.5])
def test_chunks_read_one_by_one_are_those_read_together(latency: float) -> None:
    """Their bytes, padding counted."""
    network = Network(ring(8), Gossip(mode="push-pull"), Channel(latency=latency, loss=0.2))

    def play() -> EventStream:
        return simulate_events(network, Streams(2), time=50.0, engine="array", chunk=11)

    one_by_one = b"".join(chunk.tobytes() for chunk in play())
    assert one_by_one == play().read().tobytes()
    assert len(one_by_one) > 50 * 11 * EVENT.itemsize


@given(st.integers(1, 9), st.integers(1, 4), st.integers(0, 40), st.floats(0, 50) | st.just(np.inf))
def test_chunks_are_the_same_whatever_number_of_events_is_expected(
    chunk: int, room: int, events: int, expected: float
) -> None:
    numbers = itertools.count()
    made = 0

    def write(out: np.ndarray, kept: int) -> int:
        nonlocal made
        while out.size - kept >= room and made < events:
            out["seq"][kept] = next(numbers)
            kept, made = kept + 1, made + 1
        return kept

    parts = list(state.in_chunks(chunk, room, lambda: made < events, write, expected))
    assert [part.size for part in parts[:-1]] == [chunk] * (len(parts) - 1)
    assert join(parts)["seq"].tolist() == list(range(events))
