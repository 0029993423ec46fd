"""Waiting in SimPy: moments are met exactly, processes begin at once, and ties go by key and not by SimPy's queue."""

import itertools
import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pytest
import simpy
from hypothesis import example, given, settings
from hypothesis import strategies as st
from network_cases import Network, complete, of_kind, play
from pydantic import Field

import p2psim
from p2psim.core import registry
from p2psim.core.errors import InputError, MeaningError
from p2psim.core.events import COMMIT, NOBODY, WAKE
from p2psim.network.simpy_engine.base import Turns, begin, exactly
from p2psim.network.simulation import simulate_events
from p2psim.network.spec import RunningNetwork, Steps
from p2psim.network.verify import verify
from p2psim.testing import check_part

TIMES = st.floats(0.0, 1e12) | st.floats(0.0, 1.0) | st.integers(0, 10**6).map(lambda k: k * 0.1)


class TestExactly:
    @settings(max_examples=500, deadline=None)
    @given(moments=st.lists(TIMES, min_size=1, max_size=8).map(sorted))
    @example(moments=[0.1, 0.3])
    @example(moments=[5e-324, 1.0])
    @example(moments=[1.0, 1.0])
    @example(moments=[2.0**-53, 1.0 + 2.0**-52])
    def test_meets_every_moment(self, moments: list[float]) -> None:
        env = simpy.Environment()
        met = []

        def wait() -> Steps:
            for moment in moments:
                yield from exactly(env, moment)
                met.append(env.now)

        env.process(wait())
        env.run()
        assert met == moments

    def test_a_timeout_of_the_difference_would_not(self) -> None:
        random = np.random.default_rng(0)
        now, moment = np.sort(random.exponential(size=(2, 100_000)), axis=0)
        assert 0.02 < np.mean(now + (moment - now) != moment) < 0.05

    @pytest.mark.parametrize("moment", [1.0, 1.0 + 1e-300])
    def test_a_moment_that_is_now_comes_when_what_goes_on_is_done(self, moment: float) -> None:
        env, seen = simpy.Environment(initial_time=1.0), []

        def steps() -> Steps:
            yield from exactly(env, moment)
            seen.append(f"met at {env.now}")

        begin(env, steps())
        seen.append("has begun it")
        env.run()
        assert seen == ["has begun it", "met at 1.0"]

    @pytest.mark.parametrize("moment", [0.5, float("nan"), -1.0])
    def test_refuses_what_is_past_or_no_number(self, moment: float) -> None:
        env = simpy.Environment(initial_time=1.0)
        with pytest.raises(InputError, match=r"must be 1\.0 or later"):
            next(exactly(env, moment))


class TestBegin:
    def test_runs_to_the_first_wait_within_the_call(self) -> None:
        env, seen = simpy.Environment(), []

        def steps(name: str, delay: float | None) -> Steps:
            seen.append((name, "begins"))
            if delay is not None:
                yield env.timeout(delay)
            seen.append((name, env.now))

        begin(env, steps("without a wait", None))
        begin(env, steps("with a wait", 2.0))
        assert seen == [("without a wait", "begins"), ("without a wait", 0), ("with a wait", "begins")]
        env.run()
        assert seen[3:] == [("with a wait", 2.0)]


class TestTurns:
    @settings(max_examples=200, deadline=None)
    @given(
        due=st.lists(
            st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(-1, 5)), max_size=20, unique=True
        ),
        data=st.data(),
    )
    def test_what_is_due_goes_by_time_and_key_however_it_was_scheduled(
        self, due: list[tuple[int, int, int]], data: st.DataObject
    ) -> None:
        env = simpy.Environment()
        turns, seen = Turns(env), []

        def steps(time: int, *key: int) -> Steps:
            yield env.timeout(time)
            yield from turns.take(*key)
            seen.append((time, *key))

        for one in data.draw(st.permutations(due)):
            env.process(steps(*one))
        env.run()
        assert seen == sorted(due)

    def test_what_becomes_due_at_this_instant_takes_part(self) -> None:
        env = simpy.Environment()
        turns, seen = Turns(env), []

        def steps(key: int, then: int | None = None) -> Steps:
            yield env.timeout(1.0)
            yield from turns.take(key)
            seen.append(key)
            if then is not None:
                yield from turns.take(then)
                seen.append(then)

        for key, then in ((5, None), (1, 3), (2, 7), (6, None)):
            env.process(steps(key, then))
        env.run()
        assert seen == [1, 2, 3, 5, 6, 7]

    def test_what_follows_is_over_before_the_next_turn(self) -> None:
        """A chain of events of SimPy at this instant, which an exchange of one's own may bring about."""
        env = simpy.Environment()
        turns, seen = Turns(env), []

        def chain() -> Iterator[Any]:
            for link in range(5):
                yield env.timeout(0)
                seen.append(f"follows {link}")

        def steps(key: int) -> Steps:
            yield env.timeout(1.0)
            yield from turns.take(key)
            seen.append(f"turn {key}")
            if key == 1:
                env.process(chain())

        for key in (2, 1):
            env.process(steps(key))
        env.run()
        assert seen == ["turn 1", *(f"follows {link}" for link in range(5)), "turn 2"]


class Hourly(p2psim.Exchange):
    """Agents update their models at each full hour, in processes of SimPy, and send them to all neighbours."""

    kind: Literal["hourly"] = "hourly"
    length: float = Field(0.1, description="of an hour")
    nap: float = Field(0.0, description="from an hour to the update")

    has_clocks = False
    sends_to_all = True

    def start(self, world: RunningNetwork) -> None:
        receivers = [itertools.repeat(world.links.of(agent).tolist()) for agent in range(world.links.agents)]

        def tell(agent: int) -> Steps:
            for hour in itertools.count(1):
                yield from world.until(hour * self.length, agent)
                yield from world.wait(self.nap, agent, hour)
                if world.present[agent]:
                    world.update_and_send(agent, receivers, lambda *_: None)

        # Against their order on purpose.
        for agent in reversed(range(world.links.agents)):
            world.begin(tell(agent))


class Shared(p2psim.Exchange):
    """Agents that have woken use a resource of SimPy, one after the other, and then update and send their models."""

    kind: Literal["shared-resource"] = "shared-resource"
    service: float = Field(0.3, description="time of a use")

    sends_to_all = True

    def start(self, world: RunningNetwork) -> None:
        desk = simpy.Resource(world.env)

        def use(agent: int, wake: int) -> Steps:
            with desk.request() as turn:
                yield turn
                yield from world.wait(self.service, agent, wake)
            release = world.release(agent)
            commit = world.commit(agent, NOBODY, wake, release)
            version, ignore = world.versions[agent], lambda *_: None
            world.send(agent, world.neighbours(agent), version, commit, release, ignore, ignore)

        world.start_clocks(lambda agent: world.begin(use(agent, world.wake(agent))))


class TestExchangeOfOnesOwn:
    def test_waits_for_a_resource_of_simpy(self) -> None:
        """Each use begins when the one before has ended (Lindley 1952), and the invariants hold."""
        where = complete(4)
        network = Network(where, Shared())
        events = simulate_events(network, seed=3, time=40.0).read()
        verify([events], where, end=40.0, order=network.ordering, conduct=network.conduct)
        wakes, commits = of_kind(events, WAKE), of_kind(events, COMMIT)
        ends, end = [], 0.0
        for time in wakes["time"].tolist():
            end = max(end, time) + 0.3
            ends.append(end)
        assert len(commits) > 50
        assert commits["time"].tolist() == ends[: len(commits)]
        assert commits["cause"].tolist() == wakes["seq"][: len(commits)].tolist()

    @pytest.mark.parametrize("nap", [0.0, 0.03])
    def test_keeps_times_and_order(self, nap: float) -> None:
        events, ended = play(complete(4), Hourly(nap=nap), time=3.05)
        wakes = of_kind(events, WAKE)
        assert ended == "time"
        assert wakes["agent"].tolist() == [0, 1, 2, 3] * 30
        assert wakes["time"].tolist() == [hour * 0.1 + nap for hour in range(1, 31) for _ in range(4)]

    def test_is_a_part(self) -> None:
        registry.register(Hourly)
        try:
            check_part(Hourly(nap=0.03))
        finally:
            registry.forget("exchange", "hourly")

    @pytest.mark.parametrize("nap", [-1.0, math.nan])
    def test_a_wait_that_is_none(self, nap: float) -> None:
        with pytest.raises(InputError, match=f"a wait must be a time of 0 or more, got {nap}"):
            play(complete(3), Hourly.model_construct(length=1.0, nap=nap), time=3.0)

    def test_errors_are_those_that_were_raised(self) -> None:
        """SimPy raises a copy of what a process raised; ours have places that a copy could lose."""

        class Failing(Hourly):
            def start(self, world: RunningNetwork) -> None:
                def fail() -> Steps:
                    yield world.env.timeout(1.0)
                    raise MeaningError("network.exchange", "it fails")

                world.env.process(fail())

        with pytest.raises(MeaningError, match="it fails") as caught:
            play(complete(3), Failing(), time=3.0)
        assert caught.value.faults[0].key == "network.exchange"
