"""Time to compute: answers from mathematics, on both engines.

Seeds are fixed; bounds on means are four standard errors, false alarms 6e-5 each if the seeds were not.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_networks import numbered_network
from network_cases import Channel, Graph, Poll, Request, Round, complete, of_kind, ring, star
from scipy import stats

from p2psim.core.errors import MeaningError
from p2psim.core.events import (
    BEGIN,
    BUSY,
    COMMIT,
    DELIVER,
    DROP,
    LEARNER,
    NOBODY,
    NONE,
    OFFLINE,
    OK,
    SEND,
    SUPERSEDED,
    WAKE,
)  # fmt: skip
from p2psim.core.randomness import Streams
from p2psim.network.availability import Always, AnyAvailability, Leave, Renewal, Scripted
from p2psim.network.compute import Compute
from p2psim.network.exchanges import Broadcast, Gossip
from p2psim.network.exchanges.protocol import Exchange
from p2psim.network.members import Members
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events
from p2psim.network.verify import verify

ENGINES = pytest.mark.parametrize("engine", ["simpy", "array"])


def network(
    where: Graph, exchange: Exchange, availability: AnyAvailability | None = None, **keys: Any
) -> Network:
    """A network whose agents take time to compute; ``updates``, ``work`` and ``members`` are not keys of that time."""
    of_network = {name: keys.pop(name) for name in ("updates", "work", "members", "rates") if name in keys}
    compute = Compute.model_validate(keys)
    return Network(where, exchange, availability=availability or Always(), compute=compute, **of_network)


def play(of: Network, engine: str, time: float = 1000.0, **how: Any) -> np.ndarray:
    """Events of a run, which keep the invariants."""
    events = simulate_events(of, Streams(3), engine=engine, time=time, **how).read()
    options = {"by_edge": of.exchange.by_edge, "polled": of.exchange.polled, "order": of.ordering}
    verify([events], of.links, end=time, resending=of.channel.resending, **options)
    return events


def works(events: np.ndarray) -> np.ndarray:
    """Times of works that led to something, commits or answers, in their order."""
    ends = events[np.isin(events["kind"], (COMMIT, SEND)) & (events["cause"] >= 0)]
    ends = ends[events["kind"][ends["cause"]] == BEGIN]
    return np.asarray(ends["time"] - events["time"][ends["cause"]])


def near(values: np.ndarray, mean: float) -> None:
    """The mean of independent values is what it should be."""
    assert values.size > 500
    assert values.mean() == pytest.approx(mean, abs=4 * values.std() / math.sqrt(values.size))


class TestWaking:
    @ENGINES
    @pytest.mark.parametrize("exchange", [Gossip(), Broadcast()])
    def test_commits_are_a_renewal_process(self, exchange: Exchange, engine: str) -> None:
        """Ticks meanwhile are refused, so that between commits are an exponential gap and a work."""
        rate, work = 2.0, 0.7
        of = network(ring(4), exchange, time=work, rates=np.full(4, rate))
        events = play(of, engine)
        gaps = [
            np.diff(of_kind(events, COMMIT)["time"][of_kind(events, COMMIT)["agent"] == i]) for i in range(4)
        ]
        gap = np.concatenate(gaps)
        near(gap, 1 / rate + work)
        assert stats.kstest(gap - work, stats.expon(scale=1 / rate).cdf).pvalue > 1e-3
        wakes = of_kind(events, WAKE)["outcome"]
        assert set(wakes.tolist()) == {OK, BUSY}
        near((wakes == BUSY).astype(float), rate * work / (1 + rate * work))
        assert works(events) == pytest.approx(work)

    @ENGINES
    def test_times_are_drawn_anew_for_each_agent(self, engine: str) -> None:
        of = network(
            ring(4), Gossip(), time={"exponential": 0.5}, slowdown={"0": 3.0, "1": 1.0, "2": 1.0, "3": 1.0}
        )
        events = play(of, engine, time=4000.0)
        agents = of_kind(events, COMMIT)["agent"]
        times = works(events)
        assert stats.kstest(times[agents == 0], stats.expon(scale=1.5).cdf).pvalue > 1e-3
        assert stats.kstest(times[agents != 0], stats.expon(scale=0.5).cdf).pvalue > 1e-3

    @ENGINES
    def test_time_per_record_counts_records_and_slowness(self, engine: str) -> None:
        members = Members(("a", "b", "c"), ("old", "new", "new"))
        of = network(
            ring(3), Gossip(), seconds_per_record=0.25, slowdown={"old": 4.0, "new": 0.5},
            work=np.array([2.0, 3.0, 0.0]), members=members,
        )  # fmt: skip
        events = play(of, engine, time=200.0)
        agents, times = of_kind(events, COMMIT)["agent"], works(events)
        for agent, expected in enumerate((2.0, 0.375, 0.0)):
            assert times[agents == agent] == pytest.approx(expected, abs=1e-12)
        assert of.mean_work() == pytest.approx([2.0, 0.375, 0.0])


class TestHearing:
    @ENGINES
    def test_one_model_waits_at_most(self, engine: str) -> None:
        """Models arrive as a Poisson process, one waits and newer ones take its place: M/D/1/2, whose cycle is the
        work and, where nobody has come during the one before (probability exp(−λd)), the time until one comes."""
        work = 0.8
        of = network(complete(5), Gossip(), updates="hear", time=work)
        events = play(of, engine, time=3000.0)
        commits = of_kind(events, COMMIT)
        gaps = np.concatenate([np.diff(commits["time"][commits["agent"] == i]) for i in range(5)])
        near(gaps, work + math.exp(-work))
        near((gaps > work + 1e-9).astype(float), math.exp(-work))
        heard = of_kind(events, DELIVER).size
        superseded = of_kind(events, DROP)
        assert set(superseded["outcome"].tolist()) == {SUPERSEDED}
        assert 0 <= heard - superseded.size - of_kind(events, BEGIN).size <= 5
        assert (events["kind"][superseded["cause"]] == DELIVER).all()
        # Nobody stops telling its model while it computes.
        assert set(of_kind(events, WAKE)["outcome"].tolist()) == {OK}

    @ENGINES
    @pytest.mark.parametrize("mode", ["pull", "push-pull"])
    def test_agents_answer_while_they_compute(self, mode: Any, engine: str) -> None:
        of = network(ring(6), Gossip(mode=mode), updates="hear", time=5.0)
        events = play(of, engine, time=300.0)
        sends = of_kind(events, SEND)
        answers = sends[events["kind"][sends["cause"]] == DELIVER]
        begins = of_kind(events, BEGIN)
        meanwhile = [
            ((begins["agent"] == e["agent"]) & (begins["time"] < e["time"]) & (begins["time"] + 5 > e["time"])).any()
            for e in answers
        ]  # fmt: skip
        assert np.mean(meanwhile) > 0.3

    @ENGINES
    def test_both_ends_of_a_link_compute(self, engine: str) -> None:
        of = network(ring(2 + 1), Gossip(mode="edge"), time=1.0)
        events = play(of, engine, time=500.0)
        for commit in of_kind(events, COMMIT):
            answer = events[events[commit["cause"]]["cause"]]
            second = events[answer["cause"]]
            first = events[events[events[second["cause"]]["cause"]]["cause"]]
            assert (first["kind"], second["kind"]) == (BEGIN, BEGIN)
            # The other end may compute something else before.
            assert commit["time"] >= first["time"] + 2.0 - 1e-9


class TestAbsence:
    AWAY = Renewal(up=2.0, down=1.5)

    @ENGINES
    def test_interrupted_work_takes_longer(self, engine: str) -> None:
        """Poisson(d/up) interruptions of mean length ``down`` each."""
        work = 1.2
        of = network(ring(10), Gossip(), self.AWAY, time=work)
        times = works(play(of, engine, time=2000.0))
        near(times, work * (1 + 1.5 / 2.0))
        near((np.abs(times - work) < 1e-9).astype(float), math.exp(-work / 2.0))
        assert times.min() > work - 1e-9

    @ENGINES
    @pytest.mark.parametrize("exchange", [Gossip(), Broadcast()])
    def test_cancelled_work_is_dropped(self, exchange: Exchange, engine: str) -> None:
        work = 1.2
        of = network(ring(10), exchange, self.AWAY, time=work, absence="cancel")
        events = play(of, engine, time=2000.0)
        begins, commits = of_kind(events, BEGIN), of_kind(events, COMMIT)
        is_done = np.isin(begins["seq"], commits["cause"])
        near(is_done[begins["time"] < 1990].astype(float), math.exp(-work / 2.0))
        drops = of_kind(events, DROP)
        drops = drops[drops["peer"] == NOBODY]
        assert set(drops["outcome"].tolist()) == {OFFLINE}
        assert np.isin(
            begins["seq"][begins["time"] < 1990][~is_done[begins["time"] < 1990]], drops["cause"]
        ).all()

    @ENGINES
    def test_cancelled_work_of_random_length(self, engine: str) -> None:
        of = network(star(10), Round(), self.AWAY, time={"exponential": 3.0}, absence="cancel")
        events = play(of, engine, time=4000.0)
        begins = of_kind(events, BEGIN)
        begins = begins[begins["time"] < 3900]
        sends = of_kind(events, SEND)
        near(np.isin(begins["seq"], sends["cause"]).astype(float), 2.0 / (2.0 + 3.0))

    @ENGINES
    @pytest.mark.parametrize("absence", ["interrupt", "cancel"])
    def test_of_who_is_gone_for_good_work_is_dropped(self, absence: Any, engine: str) -> None:
        of = network(star(3), Round(), Leave(after=4.5, share=1.0), time=2.0, absence=absence)
        events = play(of, engine, time=50.0)
        last = of_kind(events, BEGIN)[-3:]
        drops = of_kind(events, DROP)
        assert set(drops["cause"].tolist()) == set(last["seq"].tolist())
        assert set(drops["time"].tolist()) == {4.5}

    @ENGINES
    def test_work_that_ends_as_its_agent_leaves_is_not_done(self, engine: str) -> None:
        """It ends when the agent returns, with nothing left to compute."""
        away = Scripted.model_validate(
            {"intervals": [{"agent": 1, "begin": 1.5, "end": 2.25}], "spans_are": "absent"}
        )
        events = play(network(star(2), Round(), away, time=0.5), engine, time=3.0)
        begins, sends = of_kind(events, BEGIN), of_kind(events, SEND)
        sends = sends[sends["agent"] >= 0]
        assert begins["time"].tolist() == [1.0, 1.0, 2.25, 2.25]
        assert sends["time"].tolist() == [1.5, 2.25, 2.75, 2.75]


class TestStars:
    CASES = (
        (Request(service=0.3), {"time": 60.0}),
        (Request(service=0.3, busy="queue", served_clock="stops"), {"time": 60.0}),
        (Poll(response=0.7), {"time": 60.0}),
        (Round(response=1.7, deadline=1.5), {"time": 60.0}),
        (Round(response=0.4, deadline=0.5, interval=0.5), {"time": 60.0}),
    )

    @ENGINES
    @pytest.mark.parametrize("number", range(len(CASES)))
    @pytest.mark.parametrize("loss", [0.0, 0.2])
    def test_a_constant_time_is_a_constant_service_or_response(
        self, number: int, loss: float, engine: str
    ) -> None:
        """The same events, but for beginnings, where nobody leaves."""
        exchange, how = self.CASES[number]
        delay = getattr(exchange, exchange.delay_key)
        channel = Channel(latency=0.05, loss=loss)
        other = Network(star(4), exchange.model_copy(update={exchange.delay_key: 0.0}), channel)
        of = replace(other, compute=Compute(time=delay))
        ours, theirs = play(of, engine, **how), play(replace(other, exchange=exchange), engine, **how)
        assert (ours["kind"] == BEGIN).any()
        assert without_begins(ours).tobytes() == theirs.tobytes()

    @ENGINES
    def test_throughput_of_a_learner_that_serves(self, engine: str) -> None:
        """A cycle is the time until somebody asks, and the work of whoever did."""
        slow = {"0": 1.0, "1": 2.0, "2": 6.0}
        of = network(star(3), Request(), time=0.2, slowdown=slow)
        times = of_kind(play(of, engine, time=3000.0), COMMIT)["time"]
        near(np.diff(times), 1 / 3 + 0.2 * np.mean(list(slow.values())))

    @ENGINES
    def test_an_answer_that_is_lost_is_given_again_at_once(self, engine: str) -> None:
        channel = Channel.model_validate({"loss": 0.5, "retransmit": {"kind": "fresh", "backoff": 0.1}})
        of = replace(network(star(3), Request(), time=0.4), channel=channel)
        events = play(of, engine, time=300.0)
        sends = of_kind(events, SEND)
        answers = sends[sends["agent"] >= 0]
        assert (events["kind"][answers["cause"]] == BEGIN).all()
        again = answers[np.concatenate([[False], answers["cause"][1:] == answers["cause"][:-1]])]
        assert again.size > 20
        assert answers.size - again.size <= of_kind(events, BEGIN).size


def without_begins(events: np.ndarray) -> np.ndarray:
    """Events without beginnings; what names one as its cause names what led to it."""
    is_begin = events["kind"] == BEGIN
    cause = events["cause"].copy()
    follows = cause >= 0
    follows[follows] = is_begin[cause[follows]]
    cause[follows] = events["cause"][cause[follows]]
    numbers = np.cumsum(~is_begin) - 1
    kept = np.zeros(int((~is_begin).sum()), events.dtype)
    kept[:] = events[~is_begin]
    kept["seq"] = np.arange(kept.size)
    left = cause[~is_begin]
    kept["cause"] = np.where(left >= 0, numbers[left], left)
    return kept


@pytest.mark.parametrize("part", range(4))
def test_work_that_takes_no_time_changes_nothing_else(part: int) -> None:
    """Of drawn networks: the same events but for beginnings."""
    for number in range(part, 120, 4):
        drawn = numbered_network(number)
        exchange = drawn.network.exchange
        if exchange.delay_key:
            exchange = exchange.model_copy(update={exchange.delay_key: 0.0})
        base = replace(drawn.network, exchange=exchange)
        with_time = replace(base, compute=Compute(time=0.0, absence="cancel"))
        made: list[np.ndarray] = []
        for of in (base, with_time):
            events, _ = replace(drawn, network=of).play("array")
            made.append(events)
        assert without_begins(made[1]).tobytes() == made[0].tobytes(), f"network {number}"


class TestRefused:
    @pytest.mark.parametrize(
        ("exchange", "where", "key"),
        [
            (Request(service=0.1), star(2), "network.exchange.service"),
            (Poll(response=0.1), star(2), "network.exchange.response"),
            (Round(response=0.1), star(2), "network.exchange.response"),
        ],
    )
    def test_two_times_of_one_thing(self, exchange: Exchange, where: Graph, key: str) -> None:
        with pytest.raises(MeaningError, match="takes the place of") as refused:
            play(network(where, exchange, time=1.0), "array")
        assert refused.value.faults[0].key == key

    def test_another_model_for_work_that_goes_on(self) -> None:
        away = Renewal(up=1.0, down=1.0, rejoin="reset")
        with pytest.raises(MeaningError, match="take stale"):
            play(network(ring(3), Gossip(), away, time=1.0), "array")
        assert play(network(ring(3), Gossip(), away, time=1.0, absence="cancel"), "array").size

    def test_a_poll_that_nobody_can_answer_in_time(self) -> None:
        with pytest.raises(MeaningError, match="supersede every answer"):
            play(network(star(2), Poll(interval=1.0), time=0.6, slowdown=2.0), "array")
        some = network(star(2), Poll(interval=1.0), time=0.6, slowdown={"0": 1.0, "1": 2.0})
        assert set(of_kind(play(some, "array", time=50.0), COMMIT)["peer"].tolist()) == {0}

    def test_records_that_nobody_knows(self) -> None:
        with pytest.raises(MeaningError, match="give Network its work"):
            play(network(ring(3), Gossip(), seconds_per_record=1.0), "array")
        with pytest.raises(MeaningError, match="3 finite numbers"):
            play(network(ring(3), Gossip(), seconds_per_record=1.0, work=np.ones(2)), "array")

    @pytest.mark.parametrize("keys", [{}, {"time": 1.0, "seconds_per_record": 1.0}])
    def test_one_time_is_given(self, keys: dict[str, float]) -> None:
        with pytest.raises(ValueError, match="exactly one of time and seconds_per_record"):
            Compute.model_validate(keys)

    def test_a_slowdown_without_end(self) -> None:
        with pytest.raises(MeaningError, match="finite"):
            play(network(ring(3), Gossip(), time=1.0, slowdown=math.inf), "array")


def test_slowdowns_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "devices.csv"
    path.write_text("slowdown,agent\n4,2\n1,0\n2,1\n", encoding="utf-8")
    of = network(ring(3), Gossip(), time=0.5, slowdown={"path": str(path)})
    assert of.mean_work() == pytest.approx([0.5, 1.0, 2.0])
    path.write_text("slowdown,agent\n4,2\n0,0\n2,1\n", encoding="utf-8")
    with pytest.raises(
        MeaningError, match=r"devices\.csv:3: slowdown must be a positive finite number, got '0'"
    ):
        of.mean_work()


def test_an_exchange_of_ones_own_says_that_it_computes() -> None:
    class Silent(Exchange):
        kind: str = "silent"

        def start(self, world: Any) -> None:
            world.start_clocks(lambda agent: world.work(agent, 0, world.wake(agent), self.done, self.done))

        @staticmethod
        def done(_: int) -> None:
            """Nothing follows."""

    with pytest.raises(MeaningError, match="sets computes"):
        play(network(ring(3), Silent(), time=1.0), "simpy")


def test_messages_take_as_long_as_their_model_is_large() -> None:
    """With a bandwidth in numbers: 3 vectors of 20 numbers at 40 numbers per unit of time take 1.5."""
    channel = Channel.model_validate({"airtime": 0.25, "bandwidth": {"numbers": 40.0}})
    for engine in ("simpy", "array"):
        for dimension, time in ((20, 1.75), (2000, 150.25)):
            of = Network(ring(3), Gossip(), channel, vectors=3, dimension=dimension)
            events = play(of, engine, time=400.0)
            delivered = of_kind(events, DELIVER)
            taken = delivered["time"] - events["time"][delivered["cause"]]
            assert taken == pytest.approx(time)
    with pytest.raises(MeaningError, match="dimension"):
        play(Network(ring(3), Gossip(), channel), "array")


def test_a_beginning_is_written_as_the_format_says() -> None:
    of = network(ring(3), Gossip(), time=0.5)
    events = play(of, "array", time=20.0)
    begins = of_kind(events, BEGIN)
    assert (begins["peer"] == NOBODY).all()
    assert (begins["release"] == NONE).all()
    assert (events["kind"][begins["cause"]] == WAKE).all()
    of = network(star(3), Poll(), time=0.5)
    events = play(of, "array", time=20.0)
    begins = of_kind(events, BEGIN)
    queries = events[begins["cause"]]
    assert (queries["kind"] == DELIVER).all()
    assert (queries["peer"] == LEARNER).all()
    assert (begins["version"] == queries["version"]).all()
