"""Rounds of agents: all that are there send their models, and when the round closes all of them update."""

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from network_cases import (
    COMMIT,
    DELIVER,
    DROP,
    SEND,
    WAKE,
    Channel,
    Graph,
    Network,
    Synchronous,
    complete,
    connected_graphs,
    of_kind,
    ring,
    star,
)

from p2psim.core.distributions import Distribution
from p2psim.core.errors import MeaningError
from p2psim.core.events import BEGIN, LOSS, NEIGHBOURS, NOBODY, NONE, OFFLINE, OK, SPENT, SUPERSEDED
from p2psim.core.randomness import Streams
from p2psim.network.availability import AnyAvailability, Bernoulli, Renewal, Scripted
from p2psim.network.channels.channel import ResendSame
from p2psim.network.compute import Compute
from p2psim.network.graph import links
from p2psim.network.members import Members
from p2psim.network.simulation import simulate_events
from p2psim.network.tally import LostReleases
from p2psim.network.verify import EventsError, verify

ENGINES = pytest.mark.parametrize("engine", ["simpy", "array"])
UPDATES = pytest.mark.parametrize("updates", ["wake", "hear"])


def network(
    where: Graph,
    exchange: Synchronous | None = None,
    channel: Channel | None = None,
    availability: AnyAvailability | None = None,
    **rest: object,
) -> Network:
    members = Members.unnamed(where.agents)
    known = {} if availability is None else {"availability": availability}
    return Network(where, exchange or Synchronous(), channel or Channel(), members=members, **known, **rest)


def play(world: Network, engine: str = "auto", seed: int = 1, limits: np.ndarray | None = None, **end: float):
    """All events of a run, which are verified, and how it ended."""
    stream = simulate_events(world, Streams(seed), engine=engine, limits=limits, **end)
    events = stream.read()
    check(world, events, limits)
    return events, stream.ended


def check(world: Network, events: np.ndarray, limits: np.ndarray | None = None) -> None:
    verify(
        [events],
        world.links,
        limits,
        world.goes_on,
        resending=world.channel.resending,
        order=world.ordering,
        conduct=world.conduct,
    )


class TestIdealRounds:
    @ENGINES
    @UPDATES
    @given(graph=connected_graphs(most=9), rounds=st.integers(1, 6))
    def test_everybody_wakes_sends_hears_and_commits_once(
        self, graph, rounds: int, updates: str, engine: str
    ) -> None:
        where = links(graph)
        n, degrees = where.agents, np.diff(where.indptr)
        world = network(where, Synchronous(interval=0.25), updates=updates)
        events, ended = play(world, engine, time=0.25 * rounds)
        assert ended == "time"
        assert events.size == rounds * (3 * n + degrees.sum())
        for kind, count in ((WAKE, 1), (SEND, 1), (COMMIT, 1), (DELIVER, degrees)):
            counts = np.bincount(of_kind(events, kind)["agent"], minlength=n)
            assert (counts == rounds * count).all()
        times = np.repeat(0.25 * np.arange(1, rounds + 1), 3 * n + degrees.sum())
        assert (events["time"] == times).all()
        sends, commits = of_kind(events, SEND), of_kind(events, COMMIT)
        assert sends["agent"].tolist() == commits["agent"].tolist() == list(range(n)) * rounds
        assert (sends["version"] == np.repeat(np.arange(rounds), n)).all()
        assert (commits["version"] == np.repeat(np.arange(1, rounds + 1), n)).all()
        assert (commits["peer"] == NEIGHBOURS).all()
        wakes = of_kind(events, WAKE)["seq"]
        assert (sends["cause"] == wakes).all()
        assert (commits["cause"] == wakes).all()
        # Either the send or the commit touches data, once a round.
        makes, other = (sends, commits) if updates == "wake" else (commits, sends)
        assert (makes["release"] == np.repeat(np.arange(rounds), n)).all()
        assert (other["release"] == NONE).all()

    @ENGINES
    def test_commits_end_a_run_within_a_round(self, engine: str) -> None:
        events, ended = play(network(complete(5)), engine, commits=13)
        assert ended == "commits"
        assert of_kind(events, COMMIT)["agent"].tolist() == [0, 1, 2, 3, 4] * 2 + [0, 1, 2]
        assert events[-1]["kind"] == COMMIT

    @ENGINES
    @UPDATES
    def test_rounds_end_when_nobody_may_release_any_more(self, engine: str, updates: str) -> None:
        limits = np.array([2, 4, 1, 3])
        events, ended = play(network(complete(4), updates=updates), engine, limits=limits, time=100.0)
        assert ended == "exhausted"
        assert events["time"][-1] == 4.0
        # Whoever has made all its releases sends nothing, and does not update.
        assert np.bincount(of_kind(events, COMMIT)["agent"]).tolist() == limits.tolist()
        assert np.bincount(of_kind(events, SEND)["agent"]).tolist() == limits.tolist()
        spent = events[(events["kind"] == WAKE) & (events["outcome"] == SPENT)]
        assert np.bincount(spent["agent"], minlength=4).tolist() == (4 - limits).tolist()

    @ENGINES
    @UPDATES
    def test_agents_go_on_without_their_data(self, engine: str, updates: str) -> None:
        limits = np.array([2, 4, 0, 3])
        world = network(complete(4), updates=updates, goes_on=True)
        events, ended = play(world, engine, limits=limits, time=10.0)
        assert ended == "time"
        assert events.size == 10 * (3 * 4 + 12)
        made = of_kind(events, SEND if updates == "wake" else COMMIT)
        for agent, most in enumerate(limits.tolist()):
            releases = made["release"][made["agent"] == agent]
            assert releases.tolist() == [*range(most), *[NONE] * (10 - most)]


class TestRoundsThatTakeTime:
    @ENGINES
    @pytest.mark.parametrize("latency", [0.25, 0.75, 1.0, 1.5])
    def test_a_round_closes_with_its_last_message_and_the_next_follows(
        self, engine: str, latency: float
    ) -> None:
        """A constant latency of at most the interval delays commits alone; a longer one delays rounds."""
        events, _ = play(network(ring(5), None, Channel(latency=latency)), engine, time=12.0)
        between = max(1.0, latency)
        begins = np.unique(of_kind(events, WAKE)["time"])
        assert begins.tolist() == [1.0 + between * k for k in range(begins.size)]
        closes = np.unique(of_kind(events, COMMIT)["time"])
        assert closes.tolist() == [begin + latency for begin in begins.tolist() if begin + latency <= 12.0]

    @ENGINES
    def test_a_message_that_comes_after_the_deadline_arrives_and_waits_for_nobody(self, engine: str) -> None:
        world = network(ring(5), Synchronous(deadline=0.5), Channel(latency=0.75))
        events, _ = play(world, engine, time=10.75)
        assert np.unique(of_kind(events, COMMIT)["time"]).tolist() == [k + 0.5 for k in range(1, 11)]
        heard = of_kind(events, DELIVER)
        assert np.unique(heard["time"]).tolist() == [k + 0.75 for k in range(1, 11)]
        # When it arrives its sender has a newer model already.
        assert (heard["version"] == np.floor(heard["time"]) - 1).all()

    @ENGINES
    @given(
        seed=st.integers(0, 2**30), deadline=st.none() | st.floats(0.2, 2.0), loss=st.sampled_from([0.0, 0.3])
    )
    def test_a_round_closes_at_its_last_end_or_at_its_deadline(
        self, engine: str, seed: int, deadline: float | None, loss: float
    ) -> None:
        channel = Channel(latency=Distribution(exponential=0.5), loss=loss)
        world = network(complete(4), Synchronous(interval=0.7, deadline=deadline), channel)
        events, _ = play(world, engine, seed, time=20.0)
        ends = events[np.isin(events["kind"], [DELIVER, DROP])]
        begun = dict(zip(events["seq"].tolist(), events["time"].tolist(), strict=True))
        last: dict[float, list[float]] = {}
        for cause, time in zip(ends["cause"].tolist(), ends["time"].tolist(), strict=True):
            last.setdefault(begun[cause], []).append(time)
        commits = of_kind(events, COMMIT)
        closes = {
            begun[cause]: time
            for cause, time in zip(commits["cause"].tolist(), commits["time"].tolist(), strict=True)
        }
        begins = sorted({begun[seq] for seq in of_kind(events, WAKE)["seq"].tolist()})
        for begin, close in closes.items():
            times = last[begin]
            expected = max(times) if len(times) == 12 else np.inf
            if deadline is not None:
                expected = min(expected, begin + deadline)
            assert close == pytest.approx(expected, rel=1e-12)
        for begin, after in itertools.pairwise(begins):
            assert after == pytest.approx(max(closes[begin], begin + 0.7), rel=1e-12)

    @ENGINES
    def test_what_is_sent_again_is_waited_for(self, engine: str) -> None:
        again = Channel(loss=0.5, retransmit=ResendSame(limit=50, backoff=0.1))
        events, _ = play(network(ring(4), None, again), engine, commits=400)
        ends = of_kind(events, DELIVER)
        commits = of_kind(events, COMMIT)
        # All that was sent in a round arrives before anybody commits in it.
        assert np.bincount(ends["agent"]).tolist() == [200] * 4
        assert (commits["version"] == np.repeat(np.arange(1, 101), 4)).all()
        for version in range(100):
            arrived = ends["seq"][ends["version"] == version].max()
            assert arrived < commits["seq"][commits["version"] == version + 1].min()


class TestAbsence:
    @ENGINES
    def test_who_is_away_takes_no_part(self, engine: str) -> None:
        away = Scripted.model_validate(
            {"intervals": [{"agent": 1, "begin": 1.5, "end": 3.5}], "spans_are": "absent"}
        )
        events, _ = play(network(complete(3), availability=away), engine, time=5.0)
        assert of_kind(events, WAKE)["agent"].tolist() == [0, 1, 2, 0, 2, 0, 2, 0, 1, 2, 0, 1, 2]
        assert np.bincount(of_kind(events, COMMIT)["agent"]).tolist() == [5, 3, 5]
        lost = of_kind(events, DROP)
        assert lost["agent"].tolist() == [1] * 4
        assert (lost["outcome"] == OFFLINE).all()

    @ENGINES
    @UPDATES
    def test_who_has_left_when_a_round_closes_does_not_update(self, engine: str, updates: str) -> None:
        """Agent 1 leaves between its send and the close: its wake is dropped, and its neighbours hear its model."""
        away = Scripted.model_validate(
            {"intervals": [{"agent": 1, "begin": 1.2, "end": 1.7}], "spans_are": "absent"}
        )
        world = network(complete(3), None, Channel(latency=0.5), away, updates=updates)
        events, _ = play(world, engine, time=2.6)
        wake = events[(events["kind"] == WAKE) & (events["agent"] == 1)][0]
        (drop,) = events[(events["kind"] == DROP) & (events["peer"] == NOBODY)]
        assert (drop["agent"], drop["cause"], drop["outcome"], drop["time"]) == (1, wake["seq"], OFFLINE, 1.5)
        assert (drop["version"], drop["release"]) == (NONE, NONE)
        assert of_kind(events, COMMIT)["agent"].tolist() == [0, 2, 0, 1, 2]
        # The model that it sends next is the one that it had.
        assert events["version"][(events["kind"] == SEND) & (events["agent"] == 1)].tolist() == [0, 0]
        heard = events[(events["kind"] == DELIVER) & (events["peer"] == 1) & (events["time"] == 1.5)]
        assert heard["agent"].tolist() == [0, 2]
        made = events[
            (events["agent"] == 1) & (events["release"] >= 0) & np.isin(events["kind"], [SEND, COMMIT])
        ]
        assert made["release"].tolist() == ([0, 1] if updates == "wake" else [0])

    @ENGINES
    def test_a_message_held_for_who_is_away_is_waited_for(self, engine: str) -> None:
        away = Scripted.model_validate(
            {
                "intervals": [{"agent": 1, "begin": 0.5, "end": 3.25}],
                "spans_are": "absent",
                "messages": "held",
            }
        )
        events, _ = play(network(complete(3), availability=away), engine, time=5.0)
        commits = of_kind(events, COMMIT)
        assert commits["agent"].tolist() == [0, 2, 0, 1, 2, 0, 1, 2]
        assert commits["time"].tolist() == [3.25] * 5 + [4.25] * 3
        deadline = network(complete(3), Synchronous(deadline=0.5), availability=away)
        events, _ = play(deadline, engine, time=5.0)
        assert of_kind(events, COMMIT)["time"][:6].tolist() == [1.5, 1.5, 2.5, 2.5, 3.25, 3.25]

    def test_missed_wakes_are_drawn_for_each_agent_and_round(self) -> None:
        """Binomial with 2,000 rounds each: false alarms 6e-5 an agent at four standard deviations."""
        world = network(ring(5), availability=Bernoulli(drop=0.3))
        events, _ = play(world, "array", time=2_000.0)
        counts = np.bincount(of_kind(events, WAKE)["agent"])
        assert np.abs(counts - 1_400).max() < 4 * np.sqrt(2_000 * 0.21)


@ENGINES
def test_a_release_that_nobody_hears_is_lost(engine: str) -> None:
    """On a pair each release reaches the other agent or nobody; where models carry releases the last is on its way."""
    for updates in ("wake", "hear"):
        world = network(complete(2), None, Channel(loss=0.4), updates=updates)
        events, _ = play(world, engine, time=300.0)
        losses = LostReleases(world)
        losses.read(events)
        drops = events[(events["kind"] == DROP) & (events["outcome"] == LOSS)]
        # Before any commit there is no release in a model.
        drops = drops[drops["version"] > 0] if updates == "hear" else drops
        assert losses.releases.tolist() == np.bincount(drops["peer"], minlength=2).tolist()
        assert losses.deliveries.tolist() == losses.releases.tolist()


@given(seed=st.integers(0, 2**30), engine=st.sampled_from(["simpy", "array"]))
def test_the_order_of_the_model_is_kept_where_times_are_constant(seed: int, engine: str) -> None:
    away = Renewal(up=2.0, down=1.0, up_law="constant", down_law="constant")
    world = network(ring(4), Synchronous(interval=0.5, deadline=0.5), Channel(latency=0.5), away)
    events, _ = play(world, engine, seed, time=10.0)
    assert events.size


class TestBrokenStreams:
    """The verifier refuses what is no round of agents."""

    world = network(complete(3), updates="hear")

    def events(self) -> np.ndarray:
        return play(self.world, time=3.0)[0].copy()

    def place(self, events: np.ndarray, kind: int, number: int = 4) -> int:
        return int(np.flatnonzero(events["kind"] == kind)[number])

    @pytest.mark.parametrize(
        ("what", "change"),
        [
            ("its cause is not its sender's part in this round", lambda e, at: at(SEND, cause=e["seq"][0])),
            ("it is not sent to all neighbours", lambda e, at: at(SEND, peer=0)),
            ("it does not carry its sender's model", lambda e, at: at(SEND, version=0)),
            ("a release that another event of its round makes", lambda e, at: at(SEND, release=0)),
            ("its release should be number 1", lambda e, at: at(COMMIT, release=0)),
            ("its release should be number 1", lambda e, at: at(COMMIT, release=NONE)),
            ("with what one agent has sent", lambda e, at: at(COMMIT, peer=0)),
            ("agents of a round have not all closed it", lambda e, at: at(COMMIT, cause=e["seq"][0])),
            ("its version should be 2", lambda e, at: at(COMMIT, version=3)),
            ("agents begin a round in their order", lambda e, at: at(WAKE, agent=0)),
        ],
    )
    def test_one_field_is_wrong(self, what: str, change: Callable[..., None]) -> None:
        events = self.events()

        def at(kind: int, **fields: int) -> None:
            for name, value in fields.items():
                events[name][self.place(events, kind)] = value

        change(events, at)
        with pytest.raises(EventsError, match=what):
            check(self.world, events)

    def test_a_message_is_on_its_way_when_agents_commit(self) -> None:
        slow = network(complete(3), Synchronous(deadline=0.5), Channel(latency=0.75), updates="hear")
        events, _ = play(slow, time=3.0)
        waiting = replace(slow, exchange=Synchronous())
        with pytest.raises(EventsError, match="messages of its round are on their way"):
            check(waiting, events)

    def test_commits_are_out_of_order(self) -> None:
        events = self.events()
        first = self.place(events, COMMIT, 0)
        for name in ("agent", "cause"):
            events[name][[first, first + 1]] = events[name][[first + 1, first]]
        with pytest.raises(EventsError, match="another agent closes this round before it"):
            check(self.world, events)

    def test_an_agent_commits_not_at_all(self) -> None:
        events = self.events()
        at = self.place(events, COMMIT, 1)
        events = np.delete(events, at)
        later = events["cause"] >= at
        events["cause"][later] -= 1
        events["seq"] = np.arange(events.size)
        with pytest.raises(EventsError, match="another agent closes this round before it"):
            check(self.world, events)

    def test_who_is_online_is_not_left_out(self) -> None:
        events = self.events()
        at = self.place(events, COMMIT, 1)
        for name, value in (
            ("kind", DROP),
            ("peer", NOBODY),
            ("version", NONE),
            ("release", NONE),
            ("outcome", OFFLINE),
        ):
            events[name][at] = value
        with pytest.raises(EventsError, match="it takes part in the round, and is online"):
            check(self.world, events)

    def test_releases_are_made_by_sends_where_updates_are_on_waking(self) -> None:
        with pytest.raises(EventsError):
            check(replace(self.world, updates="wake"), self.events())
        assert self.events()["outcome"].tolist() == [OK] * self.events().size


def test_a_star_has_no_rounds_of_agents() -> None:
    with pytest.raises(MeaningError, match="a graph without a central learner"):
        simulate_events(Network(star(3), Synchronous()), time=1.0)


class TestTimeToCompute:
    """Agents compute before they send, or when the round closes, as the algorithm updates on waking or on hearing."""

    SLOW = Compute(time=0.5, slowdown={"0": 1.0, "1": 2.0, "2": 1.0})

    @ENGINES
    def test_work_comes_before_the_send_where_updates_are_on_waking(self, engine: str) -> None:
        """Agent 1 takes twice as long: others wait for its model."""
        world = network(complete(3), None, Channel(latency=0.25), compute=self.SLOW)
        events, _ = play(world, engine, time=3.5)
        begins, sends, commits = (of_kind(events, kind) for kind in (BEGIN, SEND, COMMIT))
        assert begins["time"].tolist() == [1.0] * 3 + [2.25] * 3 + [3.5] * 3
        assert (begins["cause"] == of_kind(events, WAKE)["seq"]).all()
        assert sends["agent"].tolist() == [0, 2, 1] * 2
        assert sends["time"].tolist() == [1.5, 1.5, 2.0, 2.75, 2.75, 3.25]
        assert sends["cause"].tolist() == begins["seq"][[0, 2, 1, 3, 5, 4]].tolist()
        assert sends["release"].tolist() == [0] * 3 + [1] * 3
        assert commits["time"].tolist() == [2.25] * 3 + [3.5] * 3
        assert commits["agent"].tolist() == [0, 1, 2] * 2
        assert (commits["cause"] == of_kind(events, WAKE)["seq"][:6]).all()

    @ENGINES
    def test_work_comes_after_the_close_where_updates_are_on_hearing(self, engine: str) -> None:
        world = network(complete(3), None, Channel(latency=0.25), compute=self.SLOW, updates="hear")
        events, _ = play(world, engine, time=3.5)
        begins, sends, commits = (of_kind(events, kind) for kind in (BEGIN, SEND, COMMIT))
        assert sends["time"].tolist() == [1.0] * 3 + [2.25] * 3 + [3.5] * 3
        assert begins["time"].tolist() == [1.25] * 3 + [2.5] * 3
        assert (begins["cause"] == of_kind(events, WAKE)["seq"][:6]).all()
        assert commits["agent"].tolist() == [0, 2, 1] * 2
        assert commits["time"].tolist() == [1.75, 1.75, 2.25, 3.0, 3.0, 3.5]
        assert commits["cause"].tolist() == begins["seq"][[0, 2, 1, 3, 5, 4]].tolist()
        assert commits["release"].tolist() == [0] * 3 + [1] * 3
        assert (commits["peer"] == NEIGHBOURS).all()

    @ENGINES
    def test_who_is_too_slow_for_the_deadline_stops_and_touches_no_data(self, engine: str) -> None:
        world = network(complete(3), Synchronous(deadline=0.75), compute=self.SLOW)
        events, _ = play(world, engine, time=10.9)
        (late,) = {int(event["agent"]) for event in of_kind(events, DROP)}
        drops = of_kind(events, DROP)
        assert late == 1
        assert drops["outcome"].tolist() == [SUPERSEDED] * 10
        assert drops["time"].tolist() == [k + 0.75 for k in range(1, 11)]
        assert (drops["peer"] == NOBODY).all()
        assert set(of_kind(events, COMMIT)["agent"].tolist()) == {0, 2}
        assert not ((events["agent"] == 1) & (events["release"] >= 0) & (events["kind"] == SEND)).any()

    @ENGINES
    @UPDATES
    @pytest.mark.parametrize("absence", ["interrupt", "cancel"])
    def test_a_round_waits_for_who_comes_back_and_not_for_who_is_cancelled(
        self, engine: str, updates: str, absence: str
    ) -> None:
        """Agent 1 is away from 1.25 to 2: half of its work is left, or none."""
        away = Scripted.model_validate(
            {"intervals": [{"agent": 1, "begin": 1.25, "end": 2.0}], "spans_are": "absent"}
        )
        compute = Compute(time=0.5, absence=absence)
        world = network(complete(3), availability=away, compute=compute, updates=updates)
        events, _ = play(world, engine, time=2.4)
        commits = of_kind(events, COMMIT)
        if absence == "interrupt":
            own = [2.25] if updates == "hear" else [2.25] * 3
            assert commits["time"].tolist() == ([1.5, 1.5, *own] if updates == "hear" else own)
            return
        drops = events[(events["kind"] == DROP) & (events["peer"] == NOBODY)]
        assert (drops["agent"].tolist(), drops["time"].tolist()) == ([1], [1.25])
        assert commits["time"].tolist() == [1.5, 1.5]
        assert of_kind(events, WAKE)["time"].tolist() == [1.0] * 3 + [2.0] * 3

    @ENGINES
    def test_no_time_is_no_time(self, engine: str) -> None:
        """Beginnings apart, events are those without a time to compute; what work has led to names it as its cause."""
        for updates in ("wake", "hear"):
            plain = network(ring(5), None, Channel(latency=0.3, loss=0.2), updates=updates)
            events, _ = play(replace(plain, compute=Compute(time=0.0)), engine, time=10.0)
            others, _ = play(plain, engine, time=10.0)
            events = events[events["kind"] != BEGIN]
            for name in ("time", "agent", "peer", "version", "release", "kind", "outcome"):
                assert (events[name] == others[name]).all()
