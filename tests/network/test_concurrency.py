"""A learner that serves several owners at once, and rounds in which some owners are drawn."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
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
    Network,
    Request,
    Round,
    of_kind,
    play,
    star,
)
from scipy import stats

from p2psim.core.distributions import Distribution
from p2psim.core.errors import InputError, MeaningError
from p2psim.core.events import NEIGHBOURS, NONE, OK
from p2psim.core.randomness import Streams
from p2psim.network.availability import LearnerOutage, Renewal
from p2psim.network.channels.channel import ResendFresh

ENGINES = pytest.mark.parametrize("engine", ["simpy", "array"])
LEVEL = 1e-4
SLOW = Distribution(exponential=0.5)


def in_service(events: np.ndarray) -> list[set[int]]:
    """Who is served just before each event: from the learner's send until the exchange's last message has ended."""
    served: set[int] = set()
    before = []
    for event in events:
        before.append(set(served))
        if event["kind"] == SEND and event["agent"] == LEARNER:
            served.add(int(event["peer"]))
        elif event["kind"] == COMMIT:
            served.discard(int(event["peer"]))
        elif event["kind"] == DROP and event["peer"] >= LEARNER:
            served.discard(int(max(event["agent"], event["peer"])))
    return before


class TestSeveralAtOnce:
    @ENGINES
    @pytest.mark.parametrize("busy", ["refuse", "queue"])
    @pytest.mark.parametrize("concurrency", [1, 2, 3, "all"])
    @pytest.mark.parametrize("service", [0.5, SLOW], ids=["constant", "exponential"])
    def test_no_more_than_so_many_are_served(self, service, concurrency, busy: str, engine: str) -> None:
        exchange = Request.model_validate({"service": service, "busy": busy, "concurrency": concurrency})
        channel = Channel(latency=Distribution(exponential=0.1), loss=0.2)
        events, _ = play(star(5), exchange, channel, engine=engine, time=60.0)
        served, places = in_service(events), exchange.places(5)
        assert places == (5 if concurrency == "all" else concurrency)
        assert min(places, 4) <= max(map(len, served)) <= places
        waiting: dict[int, int] = {}
        for event, who in zip(events, served, strict=True):
            agent, peer = int(event["agent"]), int(event["peer"])
            if event["kind"] == WAKE:
                # Whoever can be served is served at once.
                assert (event["outcome"] == OK) == (len(who) < places and agent not in who)
                if event["outcome"] == QUEUED:
                    waiting[int(event["seq"])] = agent
            elif event["kind"] == SEND and agent == LEARNER and int(event["cause"]) in waiting:
                # First come, first served, but for those that are being served.
                assert int(event["cause"]) == min(seq for seq, owner in waiting.items() if owner not in who)
                del waiting[int(event["cause"])]
                assert peer not in who
        assert (of_kind(events, WAKE)["outcome"] == (QUEUED if busy == "queue" else BUSY)).any()

    @pytest.mark.parametrize("busy", ["refuse", "queue"])
    def test_one_place_is_what_there_was(self, busy: str) -> None:
        one, plain = (
            Request.model_validate({"service": SLOW, "busy": busy, **rest})
            for rest in ({"concurrency": 1}, {})
        )
        events = [play(star(4), exchange, time=50.0)[0].tobytes() for exchange in (one, plain)]
        assert events[0] == events[1]

    @ENGINES
    def test_without_time_nobody_is_in_another_s_way(self, engine: str) -> None:
        events = [
            play(star(4), Request(concurrency=places), engine=engine, time=50.0)[0].tobytes()
            for places in (1, 3, "all")
        ]
        assert len(set(events)) == 1

    @pytest.mark.parametrize("service", [0.5, SLOW], ids=["constant", "exponential"])
    @pytest.mark.parametrize(("owners", "places", "load"), [(12, 3, 6.0), (400, 4, 3.0), (6, 6, 4.0)])
    def test_a_loss_system_accepts_as_many_as_theory_says(
        self, owners: int, places: int, load: float, service: float | Distribution
    ) -> None:
        """Engset's system: k of N owners are served with probability p_k ∝ C(N, k)(λs)^k, k ≤ c, whatever the law of s.

        So (N − k)λ are accepted per unit of time, at k < c. With many owners that is Erlang's loss formula. Means of 24
        runs, of which the first part is left out; Student's t, false alarms 1e-4 each.
        """
        rate, mean = load / owners, 0.5
        weights = np.array([math.comb(owners, k) * (rate * mean) ** k for k in range(places + 1)])
        chances = weights / weights.sum()
        expected = rate * float((owners - np.arange(places)) @ chances[:-1])
        exchange = Request.model_validate({"service": service, "concurrency": places})
        accepted = []
        for seed in range(24):
            events, _ = play(
                star(owners), exchange, rates=np.full(owners, rate), engine="array", time=320.0, seed=seed
            )
            served = events[(events["kind"] == SEND) & (events["agent"] == LEARNER)]
            accepted.append((served["time"] > 20.0).sum() / 300.0)
        assert stats.ttest_1samp(accepted, expected).pvalue > LEVEL
        if owners == 400:
            terms = np.array([(load * mean) ** k / math.factorial(k) for k in range(places + 1)])
            erlang = load * (1 - terms[-1] / terms.sum())
            assert expected == pytest.approx(erlang, rel=4e-3)

    @ENGINES
    def test_answers_are_to_older_models(self, engine: str) -> None:
        exchange = Request(service=SLOW, concurrency="all")
        events, _ = play(star(5), exchange, engine=engine, time=100.0)
        commits = of_kind(events, COMMIT)
        answered = events["version"][commits["cause"]]
        lags = commits["version"] - 1 - answered
        assert lags.min() == 0
        assert lags.max() > 2
        assert (of_kind(events, WAKE)["outcome"] == BUSY).any()

    @ENGINES
    def test_a_learner_that_is_away_serves_on_and_takes_nobody(self, engine: str) -> None:
        exchange = Request(service=SLOW, busy="queue", concurrency=3)
        away = LearnerOutage(up=2.0, down=1.0)
        channel = Channel(loss=0.3, retransmit=ResendFresh(limit=2, backoff=0.2))
        events, _ = play(star(6), exchange, channel, engine=engine, availability=away, time=80.0)
        assert of_kind(events, COMMIT).size > 20

    def test_it_is_a_number_or_all(self) -> None:
        for wrong in (0, -1, 1.5, "some"):
            with pytest.raises(InputError, match="concurrency"):
                Request(concurrency=wrong)


def queries(events: np.ndarray) -> np.ndarray:
    return events[(events["kind"] == SEND) & (events["agent"] == LEARNER)]


class TestParticipants:
    @ENGINES
    @given(owners=st.integers(2, 9), data=st.data(), seed=st.integers(0, 2**40))
    def test_so_many_are_asked_in_each_round(
        self, engine: str, owners: int, data: st.DataObject, seed: int
    ) -> None:
        some = data.draw(st.integers(1, owners - 1))
        events, _ = play(
            star(owners), Round(interval=0.5, participants=some), engine=engine, seed=seed, commits=7
        )
        asked = queries(events)
        assert events.size == 7 * (1 + 4 * some)
        assert (asked["version"] == np.repeat(np.arange(7), some)).all()
        assert (asked["time"] == np.repeat(0.5 * np.arange(1, 8), some)).all()
        chosen = asked["peer"].reshape(7, some)
        assert (np.diff(chosen, axis=1) > 0).all()
        commits = of_kind(events, COMMIT)
        assert (commits["cause"] == asked["seq"][::some]).all()
        assert (commits["peer"] == NEIGHBOURS).all()
        # Nobody else is touched.
        released = events[(events["kind"] == SEND) & (events["agent"] >= 0)]
        assert released["agent"].tolist() == chosen.ravel().tolist()
        # By the address of each draw: Floyd's sample, from the learner's stream.
        draws = Streams(seed).generator("participants", LEARNER).random(7 * some).reshape(7, some)
        for row, of_round in zip(chosen.tolist(), draws.tolist(), strict=True):
            sample: set[int] = set()
            for last, draw in zip(range(owners - some, owners), of_round, strict=True):
                one = math.floor(draw * (last + 1))
                sample |= {last} if one in sample else {one}
            assert row == sorted(sample)

    def test_every_set_is_as_likely_as_the_others(self) -> None:
        """Ten pairs of five owners in 20,000 rounds: χ², false alarms 1e-4; so are those of the rounds that follow."""
        events, _ = play(star(5), Round(participants=2), engine="array", commits=20_000)
        pairs = queries(events)["peer"].reshape(-1, 2) @ [5, 1]
        _, counts = np.unique(pairs, return_counts=True)
        assert counts.size == 10
        assert stats.chisquare(counts).pvalue > LEVEL
        _, places = np.unique(pairs, return_inverse=True)
        after = np.zeros((10, 10))
        np.add.at(after, (places[:-1], places[1:]), 1)
        assert stats.chi2_contingency(after).pvalue > LEVEL

    @ENGINES
    def test_all_of_them_are_what_there_was(self, engine: str) -> None:
        runs = [play(star(4), Round(participants=some), engine=engine, time=20.0)[0] for some in (None, 4)]
        assert runs[0].tobytes() == runs[1].tobytes()

    @ENGINES
    def test_a_round_waits_for_those_that_were_asked(self, engine: str) -> None:
        late = Round(response=0.25, participants=2)
        events, _ = play(
            star(5),
            late,
            Channel(latency=0.125),
            engine=engine,
            availability=Renewal(up=3.0, down=1.0),
            time=60.0,
        )
        commits, asked = of_kind(events, COMMIT), queries(events)
        assert (commits["time"] <= np.unique(asked["time"])[: commits.size] + 0.5).all()
        answers = events[(events["kind"] == DELIVER) & (events["agent"] == LEARNER)]
        assert np.isin(answers["version"], asked["version"]).all()
        assert (commits["release"] == NONE).all()

    def test_no_more_than_there_are(self) -> None:
        with pytest.raises(MeaningError, match="must be at most the number of owners, 3, got 4"):
            Network(star(3), Round(participants=4))
        with pytest.raises(InputError, match="participants"):
            Round(participants=0)
