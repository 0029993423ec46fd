"""What follows a wake in each mode of gossip, who is counted as spent, and how runs end."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from network_cases import (
    COMMIT,
    DELIVER,
    DROP,
    SEND,
    WAKE,
    Broadcast,
    Channel,
    Gossip,
    Graph,
    Network,
    of_kind,
    play,
    ring,
)

from p2psim.core.errors import InputError, MeaningError
from p2psim.core.events import BUSY, NOBODY, NONE, OK, SPENT
from p2psim.core.randomness import Streams
from p2psim.network.graph import from_edges
from p2psim.network.simulation import simulate_events
from p2psim.network.spec import Conduct
from p2psim.network.verify import EventsError, verify

ENGINES = ["simpy", "array"]
PAIR = from_edges(2, np.array([0]), np.array([1]))

# (kind, whose, peer, version, event that caused it, release) of the first exchange; w wakes, o is the other.
FLOWS = {
    ("push", "wake"): [
        (WAKE, "w", None, NONE, None, NONE),
        (COMMIT, "w", None, 1, 0, 0),
        (SEND, "w", "o", 1, 1, 0),
        (DELIVER, "o", "w", 1, 2, 0),
    ],
    ("push", "hear"): [
        (WAKE, "w", None, NONE, None, NONE),
        (SEND, "w", "o", 0, 0, NONE),
        (DELIVER, "o", "w", 0, 1, NONE),
        (COMMIT, "o", "w", 1, 2, 0),
    ],
    ("pull", "wake"): [
        (WAKE, "w", None, NONE, None, NONE),
        (SEND, "w", "o", NONE, 0, NONE),
        (DELIVER, "o", "w", NONE, 1, NONE),
        (SEND, "o", "w", 0, 2, NONE),
        (DELIVER, "w", "o", 0, 3, NONE),
        (COMMIT, "w", "o", 1, 4, 0),
    ],
    ("push-pull", "wake"): [
        (WAKE, "w", None, NONE, None, NONE),
        (SEND, "w", "o", 0, 0, NONE),
        (DELIVER, "o", "w", 0, 1, NONE),
        (SEND, "o", "w", 0, 2, NONE),
        (DELIVER, "w", "o", 0, 3, NONE),
        (COMMIT, "w", "o", 1, 4, 0),
        (COMMIT, "o", "w", 1, 2, 0),
    ],
    ("edge", "wake"): [
        (WAKE, "w", None, NONE, None, NONE),
        (SEND, "w", "o", 0, 0, 0),
        (DELIVER, "o", "w", 0, 1, 0),
        (SEND, "o", "w", 0, 2, 0),
        (DELIVER, "w", "o", 0, 3, 0),
        (COMMIT, "w", "o", 1, 4, NONE),
    ],
}
FLOWS["pull", "hear"] = FLOWS["pull", "wake"]
FLOWS["push-pull", "hear"] = FLOWS["push-pull", "wake"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("mode", "updates"), FLOWS)
def test_what_follows_a_wake(mode: str, updates: str, engine: str) -> None:
    expected = FLOWS[mode, updates]
    events, _ = play(PAIR, Gossip(mode=mode), updates=updates, engine=engine, time=10.0)  # type: ignore[arg-type]
    woken = int(events["agent"][0])
    who = {"w": woken, "o": 1 - woken, None: NOBODY}
    for event, (kind, whose, peer, version, cause, release) in zip(
        events[: len(expected)], expected, strict=True
    ):
        assert (event["kind"], event["agent"], event["peer"]) == (kind, who[whose], who[peer])
        assert (event["version"], event["release"]) == (version, release)
        assert event["cause"] == (NONE if cause is None else cause)
        assert event["outcome"] == OK
    assert events["kind"][len(expected)] == WAKE


def exchanges_of(events: np.ndarray) -> Iterator[np.ndarray]:
    """Events from each wake to the next, on an ideal channel."""
    yield from np.split(events, np.flatnonzero(events["kind"] == WAKE)[1:])


@pytest.mark.parametrize("engine", ENGINES)
class TestSpentAgents:
    """Agent 0 may make one release, agent 1 fifty."""

    LIMITS = np.array([1, 50])

    def late(self, mode: str, engine: str, updates: str = "wake") -> tuple[np.ndarray, str]:
        """Events once agent 0 is spent."""
        events, ended = play(
            PAIR, Gossip(mode=mode), updates=updates, engine=engine, time=1e3, limits=self.LIMITS
        )  # type: ignore[arg-type]
        made = np.isin(events["kind"], [COMMIT, SEND]) & (events["release"] >= 0)
        mine = np.flatnonzero((events["agent"] == 0) & made)
        last = mine[-1] if mode != "edge" else np.flatnonzero(events["kind"] == COMMIT)[0]
        wakes = np.flatnonzero(events["kind"] == WAKE)
        return events[wakes[wakes > last][0] :], ended

    @pytest.mark.parametrize("mode", ["push", "pull", "push-pull", "edge"])
    def test_their_wakes_are_spent(self, mode: str, engine: str) -> None:
        events, ended = self.late(mode, engine)
        wakes = of_kind(events, WAKE)
        assert (wakes["outcome"][wakes["agent"] == 0] == SPENT).all()
        assert (wakes["outcome"][wakes["agent"] == 1] == OK).all()
        assert ended == "exhausted"
        assert not (of_kind(events, COMMIT)["agent"] == 0).any()

    @pytest.mark.parametrize("mode", ["pull", "push-pull"])
    def test_they_still_answer(self, mode: str, engine: str) -> None:
        for exchange in exchanges_of(self.late(mode, engine)[0]):
            if exchange["agent"][0] == 1:
                assert exchange["kind"].tolist() == [WAKE, SEND, DELIVER, SEND, DELIVER, COMMIT]

    def test_they_still_tell_where_waking_makes_no_update(self, engine: str) -> None:
        events, ended = self.late("push", engine, "hear")
        assert (of_kind(events, WAKE)["outcome"] == OK).all()
        assert (of_kind(events, COMMIT)["agent"] == 1).all()
        assert ended == "exhausted"

    def test_they_make_no_local_steps(self, engine: str) -> None:
        for exchange in exchanges_of(self.late("edge", engine)[0]):
            if exchange["agent"][0] == 1:
                assert exchange["kind"].tolist() == [WAKE, SEND, DELIVER]


class TestLoss:
    def test_ends_the_exchange(self) -> None:
        """Who asks commits with what it hears alone: as often as question and answer both arrive."""
        events, _ = play(ring(6), Gossip(mode="pull"), Channel(loss=0.5), time=500.0)
        asked = (of_kind(events, SEND)["version"] == NONE).sum()
        share = of_kind(events, COMMIT).size / asked
        assert abs(share - 0.25) < 4.5 * np.sqrt(0.25 * 0.75 / asked)
        assert (of_kind(events, DROP)["outcome"] != OK).all()

    @pytest.mark.parametrize("exchange", [Gossip(mode=mode) for mode in ("pull", "push-pull", "edge")])
    def test_of_everything_is_refused_where_no_commit_could_follow(self, exchange: Gossip) -> None:
        with pytest.raises(MeaningError, match="no commit would ever be made"):
            simulate_events(Network(ring(4), exchange, Channel(loss=1.0)), Streams(), commits=1)
        simulate_events(Network(ring(4), exchange, Channel(loss=1.0)), Streams(), time=1.0).read()


class TestPartners:
    @pytest.mark.parametrize("engine", ENGINES)
    @pytest.mark.parametrize("partner", ["uniform", "weight"])
    def test_are_drawn_as_asked(self, partner: str, engine: str) -> None:
        """Agent 0 of a triangle with W_01 = 1, W_02 = 3; a false alarm in 1e5 at 4.5 standard errors."""
        links: Graph = from_edges(3, np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([1.0, 3.0, 2.0]))
        events, _ = play(links, Gossip(partner=partner), engine=engine, commits=12_000)  # type: ignore[arg-type]
        sends = of_kind(events, SEND)
        peers = sends["peer"][sends["agent"] == 0]
        expected = {"uniform": 0.5, "weight": 0.75}[partner]
        error = np.sqrt(expected * (1 - expected) / peers.size)
        assert abs((peers == 2).mean() - expected) < 4.5 * error

    def test_do_not_depend_on_the_mode(self) -> None:
        """The k-th exchange that an agent begins is with the same neighbour in every mode: common random numbers."""
        seen = []
        for mode in ("push", "pull", "push-pull", "edge"):
            events, _ = play(ring(5), Gossip(mode=mode), time=20.0)  # type: ignore[arg-type]
            begun = np.isin(events["cause"], np.flatnonzero(events["kind"] == WAKE)) & (
                events["kind"] == SEND
            )
            if mode == "push":
                begun = events["kind"] == SEND
            seen.append(
                list(zip(events["agent"][begun].tolist(), events["peer"][begun].tolist(), strict=True))
            )
        assert seen[0]
        assert all(other == seen[0] for other in seen)


def test_updates_on_hearing_need_gossip() -> None:
    with pytest.raises(MeaningError, match="needs exchange: gossip"):
        simulate_events(Network(ring(4), Broadcast(), updates="hear"), Streams(), commits=1)


class TestAnAnswererThatMakesNoRelease:
    """AD-PSGD: both ends of a push-pull average, and only who woke takes a gradient."""

    def play(
        self, engine: str, channel: Channel | None = None, limits: np.ndarray | None = None, **rest: object
    ) -> tuple[np.ndarray, str]:
        world = Network(
            ring(5), Gossip(mode="push-pull"), channel or Channel(), answerer_releases=False, **rest
        )
        stream = simulate_events(world, Streams(3), engine=engine, limits=limits, time=60.0)
        events = stream.read()
        verify([events], world.links, limits, world.goes_on, order=world.ordering, conduct=world.conduct)
        return events, stream.ended

    @pytest.mark.parametrize("engine", ENGINES)
    @pytest.mark.parametrize("channel", [Channel(), Channel(latency=0.3), Channel(loss=0.3)])
    def test_one_release_an_exchange(self, engine: str, channel: Channel) -> None:
        events, _ = self.play(engine, channel)
        plain = simulate_events(
            Network(ring(5), Gossip(mode="push-pull"), channel), Streams(3), engine=engine, time=60.0
        ).read()
        for name in ("time", "kind", "agent", "peer", "version", "cause", "outcome"):
            assert (events[name] == plain[name]).all()
        commits = of_kind(events, COMMIT)
        # An answer's own cause is what its sender has heard; the first message's is a wake.
        first = events["kind"][events["cause"][events["cause"][commits["cause"]]]] == WAKE
        assert first.any()
        assert not first.all()
        assert (commits["release"][first] == NONE).all()
        for agent in range(5):
            own = commits["release"][~first & (commits["agent"] == agent)]
            assert own.tolist() == list(range(own.size))

    @pytest.mark.parametrize("engine", ENGINES)
    @pytest.mark.parametrize("channel", [Channel(), Channel(latency=0.3)])
    def test_who_may_release_nothing_more_still_averages_when_it_is_asked(
        self, engine: str, channel: Channel
    ) -> None:
        limits = np.array([1, 30, 1, 30, 1])
        events, ended = self.play(engine, channel, limits)
        commits = of_kind(events, COMMIT)
        assert ended in ("time", "exhausted")
        assert np.bincount(commits["agent"][commits["release"] >= 0]).tolist() <= limits.tolist()
        last = events["time"][(events["agent"] == 0) & (events["release"] >= 0)].max()
        later = commits[(commits["agent"] == 0) & (commits["time"] > last)]
        assert later.size > 5
        assert (later["release"] == NONE).all()

    @pytest.mark.parametrize("engine", ENGINES)
    def test_the_last_release_s_answerer_still_averages(self, engine: str) -> None:
        events, ended = self.play(engine, limits=np.ones(5, np.int64))
        assert ended == "exhausted"
        commits = of_kind(events, COMMIT)
        assert commits.size == 2 * (commits["release"] >= 0).sum() == 10

    def test_the_verifier_knows_which(self) -> None:
        events, _ = self.play("array")
        with pytest.raises(EventsError, match="its release should be number"):
            verify([events], ring(5))
        both, _ = play(ring(5), Gossip(mode="push-pull"), time=10.0)
        with pytest.raises(EventsError, match="an agent that answers makes no release"):
            verify([both], ring(5), conduct=Conduct("wakers"))


class TestWhoWaitsAnswersNobody:
    """Blocking exchanges, as AD-PSGD is printed: one side of a bipartite graph asks, and the other answers."""

    def play(
        self, engine: str, links: Graph, channel: Channel | None = None, time: float = 400.0, **rest: Any
    ) -> np.ndarray:
        world = Network(
            links,
            Gossip(mode="push-pull", blocking=True),
            channel or Channel(),
            answerer_releases=False,
            **rest,
        )
        events = simulate_events(world, Streams(5), engine=engine, time=time).read()
        verify([events], world.links, order=world.ordering, conduct=world.conduct)
        return events

    @pytest.mark.parametrize("engine", ENGINES)
    @pytest.mark.parametrize("latency", [0.0, 0.5])
    def test_one_side_asks_and_the_other_updates_alone(self, engine: str, latency: float) -> None:
        events = self.play(engine, ring(6), Channel(latency=latency))
        sends, commits = of_kind(events, SEND), of_kind(events, COMMIT)
        first = events["kind"][sends["cause"]] == WAKE
        assert set(sends["agent"][first].tolist()) == {0, 2, 4}
        assert set(sends["agent"][~first].tolist()) == {1, 3, 5}
        alone = commits["peer"] == NOBODY
        assert set(commits["agent"][alone].tolist()) == {1, 3, 5}
        # Each update with a release is that of an agent that woke; who answers averages without.
        averages = ~alone & np.isin(commits["agent"], [1, 3, 5])
        assert (commits["release"][averages] == NONE).all()
        assert (commits["release"][~averages] >= 0).all()
        # Who waits answers nobody, so that its model does not change until it has its answer.
        for agent in (0, 2, 4):
            own = commits["version"][commits["agent"] == agent]
            sent = sends["version"][(sends["agent"] == agent)][: own.size]
            assert sent.tolist() == (own - 1).tolist()

    @pytest.mark.parametrize("engine", ENGINES)
    def test_exchanges_of_an_agent_are_a_renewal_process(self, engine: str) -> None:
        """Between the beginnings of two are a round trip of 2d, in which ticks are refused, and an exponential gap.

        Four standard deviations: false alarms 6e-5 for each agent that asks.
        """
        time, trip = 2_000.0, 2 * 0.75
        events = self.play(engine, ring(4), Channel(latency=0.75), time)
        for agent in (0, 2):
            own = events[(events["agent"] == agent) & (events["kind"] == WAKE)]
            accepted = own[own["outcome"] == OK]
            expected = time / (1.0 + trip)
            # Of a renewal process, the variance is that of a gap times t by the cube of its mean.
            assert abs(accepted.size - expected) < 4 * np.sqrt(time / (1.0 + trip) ** 3)
            assert np.diff(accepted["time"]).min() >= trip * (1 - 1e-12)
            assert set(own["outcome"].tolist()) == {OK, BUSY}

    @pytest.mark.parametrize("engine", ENGINES)
    def test_a_lost_question_or_answer_ends_the_wait(self, engine: str) -> None:
        events = self.play(engine, ring(4), Channel(latency=0.25, loss=0.5))
        own = events[(events["kind"] == WAKE) & np.isin(events["agent"], [0, 2])]
        # Losses shorten waits, and nobody waits for ever.
        assert (own["outcome"] == OK).mean() > 1 / (1 + 0.5)
        assert own["time"][own["outcome"] == OK].max() > 390.0

    @pytest.mark.parametrize("agents", [3, 5, 7])
    def test_an_odd_ring_deadlocks_and_is_refused(self, agents: int) -> None:
        with pytest.raises(MeaningError, match=r"cycle of odd length.* deadlock; it needs a bipartite graph"):
            Network(ring(agents), Gossip(mode="push-pull", blocking=True))
        Network(ring(agents + 1), Gossip(mode="push-pull", blocking=True))

    def test_it_is_for_push_pull_in_which_who_answers_makes_no_release(self) -> None:
        with pytest.raises(InputError, match="blocking: is for push-pull"):
            Gossip(mode="pull", blocking=True)
        world = Network(ring(4), Gossip(mode="push-pull", blocking=True))
        with pytest.raises(MeaningError, match="the agent that answers makes no release"):
            simulate_events(world, time=1.0)

    def test_the_verifier_knows_who_may_wait_and_answer(self) -> None:
        plain = Network(ring(4), Gossip(mode="push-pull"), Channel(latency=0.5), answerer_releases=False)
        free = simulate_events(plain, Streams(5), time=50.0).read()
        blocks = replace(plain, exchange=Gossip(mode="push-pull", blocking=True))
        with pytest.raises(EventsError, match=r"it answers, and is of those that ask|it asks"):
            verify([free], plain.links, order=blocks.ordering, conduct=blocks.conduct)
        waiting = self.play("array", ring(4), Channel(latency=0.5))
        with pytest.raises(EventsError, match="it is not busy"):
            verify([waiting], plain.links, order=plain.ordering, conduct=plain.conduct)
