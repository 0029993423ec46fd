"""The ticks of all clocks in order, against sums of each agent's own draws."""

import heapq
import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psim.core.events import OK, WAKE
from p2psim.core.randomness import Streams, generator, stream_key
from p2psim.network.availability import Bernoulli
from p2psim.network.compiled_engine.ideal import ticks
from p2psim.network.exchanges import Broadcast
from p2psim.network.graph import from_edges
from p2psim.network.members import Members
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events


def together(key: np.ndarray, rates: np.ndarray) -> Iterator[tuple[float, int]]:
    """Ticks one by one."""
    for times, agents in ticks(key, rates):
        yield from zip(times.tolist(), agents.tolist(), strict=True)


def alone(key: np.ndarray, agent: int, rate: float) -> Iterator[tuple[float, int]]:
    """Ticks of one agent: running sums of exponential gaps, drawn by NumPy's generator."""
    random, now = generator(key, agent), 0.0
    while True:
        now += -np.log(1.0 - random.random()) / rate
        yield now, agent


@given(rates=st.lists(st.floats(0.01, 100), min_size=1, max_size=12), seed=st.integers(0, 99))
def test_are_those_of_each_agent_merged(rates: list[float], seed: int) -> None:
    key = stream_key(seed, 0, "clocks")
    merged = heapq.merge(*(alone(key, agent, rate) for agent, rate in enumerate(rates)))
    many = 300
    expected = list(itertools.islice(merged, many))
    found = list(itertools.islice(together(key, np.array(rates)), many))
    assert [agent for _, agent in found] == [agent for _, agent in expected]
    # NumPy's logarithm may differ from C's in the last place.
    assert [time for time, _ in found] == pytest.approx([time for time, _ in expected], rel=1e-12)


@pytest.mark.parametrize("agents", [4095, 5000])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_of_many_agents_wake_them_in_order(agents: int, missing: float) -> None:
    """More than a tick each; which are missed is drawn at the place of the tick in the agent's stream."""
    around, streams = np.arange(agents), Streams(5)
    rates = np.random.default_rng(2).uniform(0.2, 5.0, agents)
    ring = from_edges(agents, around, (around + 1) % agents)
    away, members = Bernoulli(drop=missing), Members(tuple(map(str, range(agents))), None, {}, {})
    network = Network(ring, Broadcast(), availability=away, rates=rates, members=members)
    events = simulate_events(network, streams, time=2.0).read()
    woken = events[(events["kind"] == WAKE) & (events["outcome"] == OK)]

    expected: list[tuple[float, int]] = []
    for agent, rate in enumerate(rates.tolist()):
        misses = generator(streams.key("availability"), agent)
        for tick in itertools.takewhile(
            lambda tick: tick[0] <= 2.0, alone(streams.key("clocks"), agent, rate)
        ):
            if misses.random() >= missing:
                expected.append(tick)
    expected.sort()
    assert woken["agent"].tolist() == [agent for _, agent in expected]
    assert woken["time"] == pytest.approx([time for time, _ in expected], rel=1e-12)
    counts = np.bincount(woken["agent"], minlength=agents)
    assert counts.max() > 3


def test_of_few_agents_among_many_come_as_often_as_their_rates() -> None:
    """Counts until time 50 are Poisson; 5 standard deviations: a false alarm in 1e6, and the seed is fixed."""
    rates = np.where(np.arange(200) < 20, 10.0, 0.5)
    before = itertools.takewhile(lambda tick: tick[0] < 50, together(stream_key(1, 0, "clocks"), rates))
    counts = np.bincount([agent for _, agent in before], minlength=200)
    for group in (slice(0, 20), slice(20, 200)):
        mean = 50 * rates[group].sum()
        assert abs(counts[group].sum() - mean) < 5 * np.sqrt(mean)
