"""Polling: the learner asks everyone at intervals, owners answer later, newer queries supersede."""

import numpy as np
import pytest
from network_cases import COMMIT, DELIVER, DROP, LEARNER, SEND, WAKE, Channel, Poll, of_kind, play, star

from p2psim.core.distributions import Distribution
from p2psim.core.events import NEIGHBOURS, OFFLINE, SUPERSEDED

SLOW = Poll(interval=0.5, response=Distribution(exponential=0.5))


def of_learner(events: np.ndarray) -> np.ndarray:
    return events[(events["kind"] == SEND) & (events["agent"] == LEARNER)]


def of_owners(events: np.ndarray) -> np.ndarray:
    return events[(events["kind"] == SEND) & (events["agent"] >= 0)]


class TestQueries:
    @pytest.mark.parametrize("interval", [0.1, 0.5, 3.0])
    def test_leave_at_multiples_of_the_interval(self, interval: float) -> None:
        events, _ = play(star(3), Poll(interval=interval), Channel(latency=0.02), time=200.5 * interval)
        queries = of_learner(events)
        np.testing.assert_allclose(queries["time"], interval * np.arange(1, 201), rtol=1e-12)
        assert (queries["peer"] == NEIGHBOURS).all()

    def test_carry_the_model_of_that_moment(self) -> None:
        events, _ = play(star(3), SLOW, Channel(latency=0.3), time=100.0)
        queries = of_learner(events)
        assert (queries["version"] == np.cumsum(events["kind"] == COMMIT)[queries["seq"]]).all()
        assert (queries["release"] == -1).all()

    def test_nobody_wakes_by_a_clock(self) -> None:
        assert of_kind(play(star(3), Poll(), time=20.0)[0], WAKE).size == 0


class TestAnswers:
    @pytest.mark.parametrize("channel", [Channel(), Channel(latency=0.2, loss=0.3)])
    def test_each_heard_query_is_answered_or_superseded_once(self, channel: Channel) -> None:
        events, _ = play(star(4), SLOW, channel, time=200.0)
        heard = events[(events["kind"] == DELIVER) & (events["agent"] >= 0)]
        superseded = events[(events["kind"] == DROP) & (events["outcome"] == SUPERSEDED)]
        used = np.concatenate([of_owners(events)["cause"], superseded["cause"]])
        assert np.unique(used).size == used.size
        assert set(used) <= set(heard["seq"])
        # What is left is what each owner owed at the end.
        assert heard.size - used.size <= 4
        assert superseded.size > 100

    def test_pending_answer_is_dropped_at_the_next_query(self) -> None:
        """Answers that are given came within the interval, when queries arrive at regular times."""
        events, _ = play(star(4), SLOW, Channel(latency=0.2), time=200.0)
        answers = of_owners(events)
        waited = answers["time"] - events["time"][answers["cause"]]
        assert waited.max() < SLOW.interval
        # A dropped answer touches no data: releases count answers alone.
        for owner in range(4):
            numbers = answers["release"][answers["agent"] == owner]
            assert numbers.tolist() == list(range(numbers.size))

    def test_share_of_answers_given_in_time(self) -> None:
        """P(S < interval) = 1 − e⁻¹. Fixed seed; three standard errors of 8000 answers are 0.016 (0.3 %)."""
        events, _ = play(star(4), SLOW, time=1000.0, seed=2)
        heard = np.sum((events["kind"] == DELIVER) & (events["agent"] >= 0))
        assert of_owners(events).size / heard == pytest.approx(1 - np.exp(-1), abs=0.016)

    def test_at_once_all_answer_in_the_moment_of_the_query(self) -> None:
        events, ended = play(star(3), Poll(interval=2.0), commits=30)
        commits = of_kind(events, COMMIT)
        assert ended == "commits"
        assert commits["peer"].tolist() == [0, 1, 2] * 10
        assert commits["time"].tolist() == np.repeat(2.0 * np.arange(1, 11), 3).tolist()
        assert events["version"][commits["cause"]].tolist() == np.repeat(3 * np.arange(10), 3).tolist()

    def test_an_overtaken_query_is_not_answered(self) -> None:
        """Versions of an owner's answers never go back, however queries overtake each other."""
        late = Channel(latency=Distribution(exponential=5.0))
        events, _ = play(star(3), Poll(response=Distribution(exponential=0.3)), late, time=500.0)
        heard = events[(events["kind"] == DELIVER) & (events["agent"] >= 0)]
        answers = of_owners(events)
        for owner in range(3):
            assert (np.diff(heard["version"][heard["agent"] == owner]) < 0).any()
            assert (np.diff(answers["version"][answers["agent"] == owner]) >= 0).all()

    def test_response_equal_to_the_interval_still_answers(self) -> None:
        events, _ = play(star(2), Poll(interval=1.0, response=1.0), time=20.5)
        assert of_owners(events).size > 0


class TestSpent:
    def test_spent_owners_are_silent(self) -> None:
        limits = np.array([1, 4, 9])
        events, ended = play(star(3), SLOW, Channel(latency=0.1, loss=0.2), time=500.0, limits=limits)
        assert ended == "exhausted"
        assert np.bincount(of_owners(events)["agent"]).tolist() == limits.tolist()
        for owner, limit in enumerate(limits):
            last = of_owners(events)
            last = last["seq"][last["agent"] == owner][limit - 1]
            after = events[last + 1 :]
            own = after[after["agent"] == owner]
            assert set(own["kind"].tolist()) <= {DELIVER, DROP}
            assert not np.isin(own["outcome"], [SUPERSEDED, OFFLINE]).any()

    @pytest.mark.parametrize("latency", [0.0, 0.1, 2.5, 20.0])
    def test_ends_although_queries_are_always_under_way(self, latency: float) -> None:
        """With a latency above the interval there is no moment without a query in the air."""
        events, ended = play(star(2), Poll(), Channel(latency=latency), commits=1000, limits=np.array([2, 3]))
        assert ended == "exhausted"
        assert of_kind(events, COMMIT).size == 5
        assert events["kind"][-1] == COMMIT
