"""The learner's desk: one owner at a time, others refused or queued; messages that get lost."""

import numpy as np
import pytest
from network_cases import (
    BUSY,
    COMMIT,
    DELIVER,
    DROP,
    LEARNER,
    QUEUED,
    SEND,
    WAKE,
    Channel,
    Request,
    of_kind,
    play,
    star,
)
from scipy import stats

from p2psim.core.distributions import Distribution
from p2psim.core.events import LOSS, OK, SPENT

SERVICES = {
    "constant": 0.1,
    "exponential": Distribution(exponential=0.1),
    "uniform": Distribution(uniform=(0.0, 0.2)),
}
CHANNELS = {
    "ideal": Channel(),
    "lossy": Channel(loss=0.4),
    "late": Channel(latency=Distribution(exponential=0.2)),
    "late and lossy": Channel(latency=0.2, loss=0.4),
}


def exchanges(events: np.ndarray) -> np.ndarray:
    """Begin and end of each exchange that ended, in order of beginning: shape (m, 2)."""
    times, rows, begun = events["time"], [], {}
    for event in events:
        if event["kind"] == SEND and event["agent"] == LEARNER:
            begun[int(event["seq"])] = times[event["seq"]]
        last_leg = event["kind"] == DROP and event["outcome"] == LOSS
        if last_leg or event["kind"] == COMMIT:
            send = int(event["cause"] if last_leg else events["cause"][event["cause"]])
            if events["agent"][send] != LEARNER:  # an answer: back over the query's delivery to the query
                send = int(events["cause"][events["cause"][send]])
            rows.append((begun.pop(send), event["time"]))
    assert len(begun) <= 1  # the one that the end of the run cut off
    return np.array(rows)


@pytest.mark.parametrize("busy", ["refuse", "queue"])
@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("service", SERVICES)
class TestOneAtATime:
    def test_exchanges_do_not_overlap_and_are_never_stale(
        self, service: str, channel: str, busy: str
    ) -> None:
        how = Request(service=SERVICES[service], busy=busy)
        events, _ = play(star(5), how, CHANNELS[channel], time=150.0, seed=1)
        times = exchanges(events)
        assert len(times) > 100
        assert (times[:, 0] <= times[:, 1]).all()
        assert (times[1:, 0] >= times[:-1, 1]).all()
        commits_before = np.cumsum(events["kind"] == COMMIT)
        queries = events[(events["kind"] == SEND) & (events["agent"] == LEARNER)]
        assert (queries["version"] == commits_before[queries["seq"]]).all()
        commits = of_kind(events, COMMIT)
        answers = events[commits["cause"]]
        assert (answers["version"] == commits["version"] - 1).all()

    def test_a_tick_is_refused_or_queued_just_while_busy(self, service: str, channel: str, busy: str) -> None:
        how = Request(service=SERVICES[service], busy=busy)
        events, _ = play(star(5), how, CHANNELS[channel], time=150.0, seed=2)
        begun, ended = exchanges(events).T
        wakes = of_kind(events, WAKE)
        wakes = wakes[wakes["time"] < ended[-1]]
        last = (
            np.searchsorted(begun, wakes["time"], side="left") - 1
        )  # the exchange that began before the tick
        is_busy = (last >= 0) & (wakes["time"] < ended[last])
        turned = BUSY if busy == "refuse" else QUEUED
        assert (wakes["outcome"] == np.where(is_busy, turned, OK)).all()
        assert is_busy.any()


class TestRefusal:
    def test_the_served_owner_is_refused_too(self) -> None:
        """With one owner alone, whoever is refused is being served."""
        events, _ = play(star(1), Request(service=1.0), time=200.0)
        assert np.any(of_kind(events, WAKE)["outcome"] == BUSY)

    @pytest.mark.parametrize("service", SERVICES)
    def test_blocking_is_a_over_one_plus_a(self, service: str) -> None:
        """B = a / (1 + a), a = N·E[S], for any distribution of service, since a served owner's ticks count as refused.

        The share of refused ticks is a ratio over renewal cycles: (n of them) refused M per accepted tick, with
        mean a and variance a + N²Var S. False alarm 1e-4 (normal approximation over 10⁴ cycles).
        """
        owners, mean = 5, 0.1
        variance = {"constant": 0.0, "exponential": 0.01, "uniform": 0.04 / 12}[service]
        events, _ = play(star(owners), Request(service=SERVICES[service]), commits=10_000, seed=3)
        outcomes = of_kind(events, WAKE)["outcome"]
        a = owners * mean
        refused, served = np.sum(outcomes == BUSY), np.sum(outcomes == OK)
        error = np.sqrt((a + owners**2 * variance) / served) / (1 + a) ** 2  # delta method
        assert refused / outcomes.size == pytest.approx(a / (1 + a), abs=stats.norm.isf(0.5e-4) * error)

    def test_the_desk_is_busy_for_the_whole_exchange(self) -> None:
        """Latency both ways counts as service: a = N (2·latency + S). False alarm 1e-4."""
        events, _ = play(star(4), Request(service=0.05), Channel(latency=0.1), commits=10_000, seed=4)
        outcomes = of_kind(events, WAKE)["outcome"]
        a = 4 * 0.25
        error = np.sqrt(a / np.sum(outcomes == OK)) / (1 + a) ** 2
        assert np.mean(outcomes == BUSY) == pytest.approx(a / (1 + a), abs=stats.norm.isf(0.5e-4) * error)


class TestQueue:
    def test_first_in_first_out_and_nobody_forgotten(self) -> None:
        events, _ = play(star(5), Request(service=0.15, busy="queue"), commits=3000, seed=5)
        queries = events[(events["kind"] == SEND) & (events["agent"] == LEARNER)]
        assert (np.diff(queries["cause"]) > 0).all()
        wakes = of_kind(events, WAKE)
        assert queries["cause"].tolist() == wakes["seq"][: queries.size].tolist()
        assert not np.any(wakes["outcome"] == BUSY)

    def test_who_waits_is_served_when_the_desk_is_free(self) -> None:
        """Against the recursion of a queue: begin = max(arrival, end of the one before)."""
        service = 0.15
        events, _ = play(star(5), Request(service=service, busy="queue"), commits=2000, seed=6)
        queries = events[(events["kind"] == SEND) & (events["agent"] == LEARNER)]
        free = 0.0
        for arrival, begun in zip(events["time"][queries["cause"]], queries["time"], strict=True):
            free = max(arrival, free)
            assert begun == pytest.approx(free, abs=1e-9)
            free += service

    def test_waiting_time_of_mm1(self) -> None:
        """M/M/1: wait before service is ρE[S]/(1 − ρ) = 0.1 at ρ = 0.5.

        Its standard error is near 0.002 here (waits correlate over some 1/(1 − ρ)² ticks); 10 % is over four.
        """
        how = Request(service=Distribution(exponential=0.1), busy="queue")
        events, _ = play(star(5), how, commits=50_000, seed=7)
        queries = events[(events["kind"] == SEND) & (events["agent"] == LEARNER)]
        waits = queries["time"] - events["time"][queries["cause"]]
        assert waits.mean() == pytest.approx(0.1, rel=0.1)

    def test_who_is_spent_while_waiting_is_turned_away(self) -> None:
        limits = np.array([1, 1, 3])
        events, ended = play(star(3), Request(service=2.0, busy="queue"), time=1000.0, limits=limits)
        assert ended == "exhausted"
        turned = of_kind(events, DROP)
        assert turned.size > 0
        assert set(turned["outcome"].tolist()) == {SPENT}
        answers = events[(events["kind"] == SEND) & (events["agent"] >= 0)]
        assert np.bincount(answers["agent"]).tolist() == limits.tolist()
        for drop in turned:
            before = answers[answers["seq"] < drop["seq"]]
            assert np.sum(before["agent"] == drop["agent"]) == limits[drop["agent"]]

    def test_a_long_queue_needs_no_deep_stack(self) -> None:
        """Thousands waiting are served or turned away in one moment when all are spent."""
        limits = np.ones(2, np.int64)
        events, ended = play(star(2), Request(service=3000.0, busy="queue"), time=1e5, limits=limits)
        assert ended == "exhausted"
        assert of_kind(events, DROP).size > 5000


class TestLoss:
    @pytest.mark.parametrize("busy", ["refuse", "queue"])
    def test_a_lost_answer_is_a_release_all_the_same(self, busy: str) -> None:
        events, _ = play(star(3), Request(busy=busy), Channel(loss=0.5), time=300.0, seed=8)
        answers = events[(events["kind"] == SEND) & (events["agent"] >= 0)]
        lost = events[(events["kind"] == DROP) & (events["agent"] == LEARNER)]
        assert lost.size > 50
        assert lost.size + of_kind(events, COMMIT).size == answers.size
        for owner in range(3):
            numbers = answers["release"][answers["agent"] == owner]
            assert numbers.tolist() == list(range(numbers.size))

    def test_a_lost_query_touches_no_data(self) -> None:
        events, _ = play(star(3), Request(), Channel(loss=0.5), time=300.0, seed=8)
        lost = events[(events["kind"] == DROP) & (events["agent"] >= 0)]
        assert lost.size > 50
        assert (lost["release"] == -1).all()
        answers = events[(events["kind"] == SEND) & (events["agent"] >= 0)]
        heard = events[(events["kind"] == DELIVER) & (events["agent"] >= 0)]
        assert answers["cause"].tolist() == heard["seq"].tolist()

    def test_the_learner_is_free_after_a_loss(self) -> None:
        """Nothing takes time here, so nobody ever finds the learner busy."""
        events, _ = play(star(3), Request(), Channel(loss=0.5), time=300.0, seed=8)
        assert (of_kind(events, WAKE)["outcome"] == OK).all()

    def test_lost_answers_spend_the_limit(self) -> None:
        limits = np.full(3, 5)
        events, ended = play(star(3), Request(), Channel(loss=0.5), time=1e4, limits=limits)
        answers = events[(events["kind"] == SEND) & (events["agent"] >= 0)]
        assert ended == "exhausted"
        assert np.bincount(answers["agent"]).tolist() == [5, 5, 5]
        assert of_kind(events, COMMIT).size < 15
