"""Rounds: the learner asks everyone, waits, and makes one step of all the answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from network_cases import (
    COMMIT,
    DELIVER,
    DROP,
    LEARNER,
    SEND,
    WAKE,
    Channel,
    Network,
    Round,
    of_kind,
    play,
    ring,
    star,
)

from p2psim.core.distributions import Distribution
from p2psim.core.errors import MeaningError
from p2psim.core.events import NEIGHBOURS, NONE, OFFLINE
from p2psim.core.randomness import Streams
from p2psim.network.availability import Bernoulli, LearnerOutage, Renewal
from p2psim.network.channels.channel import ResendFresh, ResendSame
from p2psim.network.exchanges.rounds import RoundTimes
from p2psim.network.simulation import simulate_events
from p2psim.network.verify import EventsError, verify


def queries_of(events: np.ndarray) -> np.ndarray:
    return events[(events["kind"] == SEND) & (events["agent"] == LEARNER)]


def answers_of(events: np.ndarray) -> np.ndarray:
    return events[(events["kind"] == SEND) & (events["agent"] >= 0)]


def arrivals_of(events: np.ndarray) -> np.ndarray:
    return events[(events["kind"] == DELIVER) & (events["agent"] == LEARNER)]


class TestIdealNetwork:
    def test_each_round_has_one_answer_of_each_owner_and_one_commit(self) -> None:
        events, ended = play(star(3), Round(interval=2.0), commits=10)
        commits = of_kind(events, COMMIT)
        assert ended == "commits"
        assert events.size == 10 * (2 + 3 * 3)
        assert commits["time"].tolist() == (2.0 * np.arange(1, 11)).tolist()
        assert (commits["peer"] == NEIGHBOURS).all()
        assert (commits["release"] == NONE).all()
        assert commits["version"].tolist() == list(range(1, 11))
        assert commits["cause"].tolist() == queries_of(events)["seq"].tolist()
        answers = answers_of(events)
        assert answers["agent"].tolist() == [0, 1, 2] * 10
        assert answers["version"].tolist() == np.repeat(np.arange(10), 3).tolist()
        assert answers["release"].tolist() == np.repeat(np.arange(10), 3).tolist()

    def test_nobody_wakes_by_a_clock(self) -> None:
        assert of_kind(play(star(3), Round(), time=20.0)[0], WAKE).size == 0

    def test_ends_when_nobody_may_answer_any_more(self) -> None:
        events, ended = play(star(3), Round(), commits=100, limits=np.array([5, 7, 3]))
        assert ended == "exhausted"
        assert np.bincount(answers_of(events)["agent"]).tolist() == [5, 7, 3]
        # The last answer is still used.
        assert of_kind(events, COMMIT).size == 7


class TestStragglers:
    @pytest.mark.parametrize("deadline", [None, 0.8])
    def test_a_round_waits_for_all_or_until_its_deadline(self, deadline: float | None) -> None:
        slow = Round(interval=0.1, response=Distribution(exponential=0.5), deadline=deadline)
        events, _ = play(star(6), slow, commits=300)
        commits = of_kind(events, COMMIT)
        asked = events["time"][commits["cause"]]
        took = commits["time"] - asked
        arrivals = arrivals_of(events)
        for commit, query, waited in zip(commits, asked, took, strict=True):
            mine = arrivals[arrivals["version"] == commit["version"] - 1]
            before = mine[mine["seq"] < commit["seq"]]
            if deadline is None or waited < deadline * (1 - 1e-9):
                assert before.size == 6
                assert waited == before["time"].max() - query
            else:
                assert waited == pytest.approx(deadline)
                assert before.size < 6
        if deadline is None:
            assert arrivals.size == 6 * 300
        else:
            assert 10 < np.count_nonzero(took < deadline * (1 - 1e-9)) < 290

    def test_the_next_round_begins_an_interval_after_the_last_or_when_that_closes(self) -> None:
        events, _ = play(star(4), Round(response=Distribution(exponential=0.5)), commits=200)
        began = queries_of(events)["time"]
        closed = of_kind(events, COMMIT)["time"]
        np.testing.assert_allclose(
            began[1:], np.maximum(began[:-1] + 1.0, closed[:-1])[: began.size - 1], rtol=1e-12
        )
        assert 20 < np.count_nonzero(closed[:-1] > began[:-1] + 1.0) < 180

    def test_who_is_away_or_lost_is_not_waited_for(self) -> None:
        network = Network(star(5), Round(), Channel(loss=0.3), Bernoulli(drop=0.2))
        events = simulate_events(network, Streams(0), commits=400).read()
        assert of_kind(events, COMMIT)["time"].tolist() == list(range(1, 401))
        # Both messages arrive, and the owner takes part: .7·.8·.7; five standard errors of 2,000 trials, 6e-7.
        share = arrivals_of(events).size / 2000
        assert share == pytest.approx(0.392, abs=5 * np.sqrt(0.392 * 0.608 / 2000))
        offline = of_kind(events, DROP)
        assert np.count_nonzero(offline["outcome"] == OFFLINE) > 200

    def test_a_learner_that_is_away_closes_the_round_when_it_returns(self) -> None:
        held = LearnerOutage(up=1.0, down=1.5)
        network = Network(star(3), Round(interval=0.3, response=0.4), Channel(), held)
        events = simulate_events(network, Streams(4), time=200.0).read()
        verify([events], network.links)
        commits = of_kind(events, COMMIT)
        late = commits["time"] - events["time"][commits["cause"]] > 0.41
        assert 10 < np.count_nonzero(late) < commits.size


CHANNELS = st.sampled_from(
    [
        Channel(),
        Channel(latency=Distribution(uniform=(0.0, 2.0))),
        Channel(loss=0.4),
        Channel(latency=Distribution(exponential=0.5), loss=0.3, retransmit=ResendSame(limit=2, backoff=0.2)),
        Channel(loss=0.5, retransmit=ResendFresh(limit=2, backoff=Distribution(exponential=0.3))),
        Channel(airtime=0.1, collision="aloha"),
    ]
)


@given(
    owners=st.integers(1, 6),
    exchange=st.builds(
        Round,
        interval=st.sampled_from([0.2, 1.0]),
        response=st.sampled_from([0.0, 0.5, Distribution(exponential=0.6)]),
        deadline=st.sampled_from([None, 0.3, 2.0]),
    ),
    channel=CHANNELS,
    availability=st.sampled_from(
        [Bernoulli(drop=0.3), Renewal(up=3.0, down=1.0), LearnerOutage(up=2.0, down=1.0)]
    ),
    seed=st.integers(0, 1000),
    limit=st.none() | st.integers(1, 8),
)
def test_streams_keep_the_invariants(owners, exchange, channel, availability, seed, limit):
    """A round has at most one commit, of its query; an owner answers a query once; a run that can end does."""
    links = star(owners)
    limits = None if limit is None else np.full(owners, limit)
    network = Network(links, exchange, channel, availability)
    stream = simulate_events(network, Streams(seed), commits=40, time=60.0, limits=limits)
    events = stream.read()
    verify([events], links, limits, resending=channel.resending)
    commits = of_kind(events, COMMIT)
    assert np.unique(commits["cause"]).size == commits.size
    queries = queries_of(events)
    assert np.isin(commits["cause"], queries["seq"]).all()
    answers = answers_of(events)
    if channel.fresh is None:
        assert np.unique(answers[["agent", "version"]]).size == answers.size
    assert stream.ended in ("commits", "time", "exhausted")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda commits: commits["cause"].__setitem__(1, commits["cause"][0]), "closes no round"),
        (lambda commits: commits["cause"].__setitem__(1, NONE), "closes no round"),
        (lambda commits: commits["release"].__setitem__(1, 0), "release of one owner"),
        (lambda commits: commits["version"].__setitem__(1, 9), "its version should be"),
    ],
)
def test_a_broken_round_is_refused(change, said) -> None:
    events, _ = play(star(3), Round(), commits=4)
    places = np.flatnonzero(events["kind"] == COMMIT)
    commits = events[places]
    change(commits)
    events[places] = commits
    with pytest.raises(EventsError, match=said):
        verify([events], star(3))


def test_it_needs_a_central_learner() -> None:
    with pytest.raises(MeaningError, match="central learner"):
        play(ring(3), Round(), commits=2)


@given(
    interval=st.sampled_from([0.1, 0.3, 1 / 3, 1.0]),
    deadline=st.sampled_from([5e-324, 1e-300, 1e-17, 0.1, 1.0]),
    steps=st.lists(st.integers(-4, 4), min_size=1, max_size=40),
)
def test_a_deadline_is_not_before_its_round_begins(
    interval: float, deadline: float, steps: list[int]
) -> None:
    """Whenever the round before has closed, be it some last places beside a multiple of the interval."""
    times, begins = RoundTimes(interval, deadline), 0.0
    for number, step in enumerate(steps, 2):
        now = number * interval * (1 + step * 2.0**-52) if number > 2 else 0.0
        begins = times.next(max(now, begins), timed_out=False)
        assert times.deadline() >= begins >= now
