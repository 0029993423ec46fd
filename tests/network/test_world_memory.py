"""A long run holds no more than a short one, and its queue is a heap."""

import gc
from collections import deque

import numpy as np
import pytest
import simpy
from network_cases import (
    Broadcast,
    Channel,
    Gossip,
    Graph,
    Network,
    Poll,
    Request,
    Round,
    complete,
    ring,
    star,
)

from p2psim.core.distributions import Distribution
from p2psim.core.randomness import Streams
from p2psim.network.availability import Renewal
from p2psim.network.channels.loss import GilbertElliott
from p2psim.network.channels.retransmission import ResendFresh, ResendSame
from p2psim.network.exchanges.protocol import Exchange
from p2psim.network.simpy_engine.world import World
from p2psim.network.simulation import simulate_events

RADIOS = {
    "aloha": Channel(airtime=0.02, collision="aloha", half_duplex=True),
    "slotted": Channel(airtime=0.02, collision="slotted", shared=True, capture=0.5, latency=0.1),
    "sensing": Channel(airtime=0.02, collision="carrier-sense", shared=True),
    "apart": Channel(airtime=0.02, collision="carrier-sense", shared=False, while_sending="overlap"),
    "again": Channel(
        airtime=0.02, collision="aloha", while_sending="skip", retransmit=ResendSame(acknowledge=0.3)
    ),
    "bursts": Channel(
        loss=GilbertElliott(mean=0.3, burst=2.0), latency=0.1, retransmit=ResendSame(acknowledge=0.3)
    ),
    "fresh": Channel(airtime=0.02, collision="aloha", loss=0.3, retransmit=ResendFresh()),
}
LOSSY = Channel(latency=Distribution(exponential=0.5), loss=0.5)
CASES: dict[str, tuple[Graph, Exchange]] = {
    "request": (star(5), Request(service=0.05)),
    "request, queued": (star(2), Request(service=0.01, busy="queue")),
    "poll": (star(5), Poll(response=Distribution(exponential=3.0))),
    "round": (star(5), Round(response=Distribution(exponential=3.0), deadline=2.0)),
    "broadcast": (complete(5), Broadcast()),
    "gossip": (ring(5), Gossip()),
    "pull": (ring(5), Gossip(mode="pull", partner="weight")),
    "push-pull": (ring(5), Gossip(mode="push-pull")),
    "edge": (ring(5), Gossip(mode="edge")),
}


def world_of(case: str, channel: Channel = LOSSY, time: float = 1e9) -> World:
    where, exchange = CASES[case]
    world = World(Network(where, exchange, channel), np.ones(where.agents), Streams(), None, None, time, 256)
    exchange.start(world)
    return world


def pass_time(world: World, until: float) -> None:
    """Let time pass, and take the chunks away as a reader would."""
    while world.env.peek() < until:
        world.env.step()
        while world.log.chunk_ready:
            world.log.take()


def held(world: World) -> int:
    """Entries of all lists, dictionaries, sets and queues that are reachable from a world, apart from code."""
    seen: set[int] = set()
    waiting: list[object] = [world]
    total = 0
    while waiting:
        one = waiting.pop()
        kind = type(one)
        if (
            id(one) in seen
            or isinstance(one, type)
            or kind.__name__ == "module"
            or "numba" in kind.__module__
        ):
            continue
        seen.add(id(one))
        if isinstance(one, list | dict | set | deque):
            total += len(one)
        # A function's globals are its module: code, not the world's state.
        code = getattr(one, "__globals__", None)
        waiting += [other for other in gc.get_referents(one) if other is not code]
    return total


class TestMemory:
    @pytest.mark.parametrize("case", CASES)
    def test_half_of_the_messages_lost_leave_nothing_behind(self, case: str) -> None:
        """After 30 times as long, containers hold what they held, up to the messages now under way."""
        short, long = world_of(case), world_of(case)
        if case == "request, queued":
            # Loss and latency would make the desk slower than the clocks, and a queue that grows is right then.
            short, long = (world_of(case, Channel(loss=0.5)) for _ in range(2))
        pass_time(short, 100.0)
        pass_time(long, 3000.0)
        assert long.log.seq > 25 * short.log.seq
        assert held(long) < 2 * held(short) + 200
        assert len(long.env._queue) < 2 * len(short.env._queue) + 60

    @pytest.mark.parametrize(
        ("case", "radio"),
        [
            (case, radio)
            for case in ("request", "poll", "broadcast", "push-pull")
            for radio in RADIOS
            if CASES[case][0].star or radio != "fresh"
        ],
    )
    def test_shared_media_forget_what_is_over(self, case: str, radio: str) -> None:
        short, long = world_of(case, RADIOS[radio]), world_of(case, RADIOS[radio])
        pass_time(short, 60.0)
        pass_time(long, 900.0)
        assert long.log.seq > 10 * short.log.seq
        assert held(long) < 2 * held(short) + 200
        assert len(long.env._queue) < 2 * len(short.env._queue) + 60

    @pytest.mark.parametrize("case", CASES)
    def test_messages_that_count_as_under_way_have_a_timer(self, case: str) -> None:
        world = world_of(case)
        pass_time(world, 500.0)
        assert 0 <= world._answers_in_flight <= len(world.env._queue)

    def test_chunks_are_handed_over(self) -> None:
        world = world_of("gossip")
        chunks = world.run()
        for _ in range(20):
            assert next(chunks).size == 256
            assert len(world.log.full) == 0


class TestQueue:
    @pytest.mark.parametrize("case", CASES)
    def test_is_a_heap_and_not_kept_sorted(self, case: str) -> None:
        where, exchange = CASES[case]
        if case != "request, queued":
            where = star(64) if where.star else complete(64)
        world = World(Network(where, exchange, LOSSY), np.ones(where.agents), Streams(), None, None, 1e9, 256)
        exchange.start(world)
        assert type(world.env) is simpy.Environment
        was_sorted = []
        for step in range(3000):
            world.env.step()
            if step % 100 == 0:
                keys = [entry[:3] for entry in world.env._queue]
                assert all(keys[(place - 1) // 2] <= keys[place] for place in range(1, len(keys)))
                was_sorted.append(keys == sorted(keys))
        assert where.agents < 64 or not all(was_sorted)


class TestLoop:
    @pytest.mark.parametrize(
        ("case", "radio"),
        [(case, radio) for case in CASES for radio in RADIOS if CASES[case][0].star or radio != "fresh"],
    )
    def test_makes_what_simpys_own_loop_makes(self, case: str, radio: str) -> None:
        """Events that are used again, and called directly, are events like others to SimPy."""
        where, exchange = CASES[case]
        network = Network(where, exchange, RADIOS[radio], Renewal(up=3.0, down=1.0))
        ours = simulate_events(network, Streams(), time=30.0, engine="simpy").read()
        world = World(network, np.ones(where.agents), Streams(), None, None, 30.0, 1 << 15)
        exchange.start(world)
        while not world.ended:
            world.env.step()
        assert world.log.rest().tobytes() == ours.tobytes()
        assert ours.size > 50
