"""Sending again: what is written, what the checker refuses, and what it costs."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from network_cases import (
    COMMIT,
    DELIVER,
    DROP,
    LEARNER,
    SEND,
    Broadcast,
    Channel,
    Gossip,
    Graph,
    Network,
    Poll,
    Request,
    complete,
    of_kind,
    play,
    ring,
    star,
)
from scipy import stats

from p2psim.core.distributions import Distribution
from p2psim.core.errors import MeaningError
from p2psim.core.events import COLLISION, KINDS, LOSS, OFFLINE, OK, RETRY, UNACKNOWLEDGED
from p2psim.core.randomness import Streams
from p2psim.network.availability import AllOf, Renewal, Scripted
from p2psim.network.availability.schedules import ScriptedInterval
from p2psim.network.channels.channel import ResendFresh, ResendSame
from p2psim.network.channels.draws import EdgeValue
from p2psim.network.channels.effects import GilbertElliott
from p2psim.network.exchanges.protocol import Exchange
from p2psim.network.simulation import simulate_events
from p2psim.network.verify import EventsError, verify
from p2psim.network.verify_messages import Resending

LEVEL = 1e-5
LATE = Distribution(exponential=0.2)


def counts(events: np.ndarray) -> Counter[tuple[str, int]]:
    return Counter((KINDS[event["kind"]], int(event["outcome"])) for event in events)


class TestSame:
    def test_ends_are_as_many_losses_apart_as_the_limit_allows(self) -> None:
        """A message is lost for good with probability loss^(1 + limit); attempts before are geometric."""
        loss, limit = 0.5, 3
        channel = Channel(loss=loss, latency=0.01, retransmit=ResendSame(limit=limit, backoff=0.1))
        events, _ = play(complete(4), Broadcast(), channel, time=400.0, seed=3)
        ends = events[np.isin(events["kind"], [DELIVER, DROP])]
        retries = events[events["kind"] == RETRY]
        assert (retries["outcome"] == LOSS).all()
        again = Counter(zip(retries["cause"].tolist(), retries["peer"].tolist(), strict=True))
        tries = np.array([again[int(end["cause"]), int(end["agent"])] for end in ends])
        dropped = ends["kind"] == DROP
        assert (tries[dropped] == limit).all()
        observed = np.append(np.bincount(tries[~dropped], minlength=limit + 1), dropped.sum())
        expected = [loss**k * (1 - loss) for k in range(limit + 1)] + [loss ** (limit + 1)]
        assert stats.chisquare(observed, observed.sum() * np.array(expected)).pvalue > LEVEL
        # Each attempt takes the latency, and the wait before the next the backoff.
        took = ends["time"] - events["time"][ends["cause"]]
        assert took == pytest.approx(0.01 + tries * 0.11)

    def test_lost_acknowledgements_repeat_what_has_arrived(self) -> None:
        """Nothing else is lost here: a retry follows a delivery with the probability of losing its acknowledgement."""
        channel = Channel(latency=0.01, retransmit=ResendSame(limit=2, backoff=LATE, acknowledge=0.4))
        events, _ = play(ring(4), Gossip(), channel, time=3000.0, seed=4)
        verify([events], ring(4), resending=channel.resending)
        retries = events[events["kind"] == RETRY]
        assert (retries["outcome"] == UNACKNOWLEDGED).all()
        again = Counter(retries["cause"].tolist())
        sends = events["seq"][(events["kind"] == SEND) & (events["time"] < 2990.0)]
        observed = np.bincount([again[seq] for seq in sends.tolist()], minlength=3)
        assert stats.chisquare(observed, sends.size * np.array([0.6, 0.24, 0.16])).pvalue > LEVEL
        assert not (events["kind"] == DROP).any()

    def test_what_is_held_for_who_is_gone_for_good_may_lack_its_acknowledgement(self) -> None:
        """While a reason keeps the receiver away, another one begins that lasts for ever: what waits is lost."""
        spans = [
            ScriptedInterval(agent=1, begin=begin, end=end) for begin, end in ((1.0, 4.0), (3.0, np.inf))
        ]
        reasons = tuple(Scripted(intervals=[span], spans_are="absent") for span in spans)
        channel = Channel(latency=0.5, retransmit=ResendSame(limit=2, backoff=2.0, acknowledge=1.0))
        away = AllOf(parts=reasons, messages="held")
        where, rates = complete(2), np.array([2.0, 0.01])
        events, _ = play(where, Gossip(), channel, rates, time=8.0, availability=away)
        verify([events], where, resending=channel.resending)
        lost = events["cause"][(events["kind"] == DROP) & (events["time"] == 3.0)]
        assert lost.size
        late = events[(events["kind"] == RETRY) & (events["time"] > 3.0) & np.isin(events["cause"], lost)]
        assert late.size
        # The first retry lacks an acknowledgement; it finds nobody.
        assert late["outcome"].tolist()[0] == UNACKNOWLEDGED
        assert set(late["outcome"].tolist()) <= {UNACKNOWLEDGED, OFFLINE}
        # On a channel that loses no acknowledgements nobody would send these again.
        with pytest.raises(EventsError):
            verify([events], where, resending=Resending(retries=2))

    @pytest.mark.parametrize("engine", ["simpy", "auto"])
    @pytest.mark.parametrize("exchange", [Broadcast(), Gossip(mode="pull"), Gossip(mode="push-pull")])
    def test_what_is_held_may_lack_its_acknowledgement_too(self, exchange: Exchange, engine: str) -> None:
        """A held message has come to the place of its receiver; each arrives once when that comes back."""
        channel = Channel(retransmit=ResendSame(acknowledge=0.6, limit=2, backoff=0.01))
        away = Renewal(up=1.0, down=1.0, messages="held")
        events, _ = play(complete(4), exchange, channel, availability=away, time=60.0, engine=engine)
        verify([events], complete(4), resending=channel.resending)
        retries, ends = of_kind(events, RETRY), of_kind(events, DELIVER)
        assert (retries["outcome"] == UNACKNOWLEDGED).any()
        assert np.unique(ends[["cause", "agent"]]).size == ends.size

    def test_a_release_is_made_once_however_often_it_is_sent(self) -> None:
        channel = Channel(loss=0.5, retransmit=ResendSame())
        events, _ = play(star(3), Request(), channel, time=100.0)
        verify([events], star(3), resending=channel.resending)
        sends = events[(events["kind"] == SEND) & (events["agent"] != LEARNER)]
        for owner in range(3):
            mine = sends["release"][sends["agent"] == owner]
            assert mine.tolist() == list(range(mine.size))

    def test_moves_no_draw_of_what_is_sent_for_the_first_time(self) -> None:
        """First attempts fail as they do without sending again."""
        plain, again = (
            play(complete(4), Broadcast(), Channel(latency=LATE, loss=0.4, retransmit=how), time=30.0)[0]
            for how in (Channel().retransmit, ResendSame(backoff=LATE, acknowledge=0.2))
        )
        fates = []
        for events in (plain, again):
            number = {int(seq): n for n, seq in enumerate(events["seq"][events["kind"] == SEND])}
            fate: dict[tuple[int, int], tuple[float, bool]] = {}
            for event in events:
                if event["kind"] in (DELIVER, DROP):
                    place = number[int(event["cause"])], int(event["agent"])
                    fate.setdefault(place, (float(event["time"]), event["kind"] == DROP))
                elif event["kind"] == RETRY and event["outcome"] == LOSS:
                    place = number[int(event["cause"])], int(event["peer"])
                    fate.setdefault(place, (-1.0, True))
            fates.append(fate)
        shared = fates[0].keys() & fates[1].keys()
        assert len(shared) > 300
        for place in shared:
            before, after = fates[0][place], fates[1][place]
            assert before[1] == after[1]
            assert before[1] or before[0] == after[0]

    def test_who_is_away_is_tried_again(self) -> None:
        channel = Channel(
            latency=0.01, retransmit=ResendSame(limit=50, backoff=Distribution(exponential=0.5))
        )
        network = Network(ring(4), Gossip(), channel, Renewal(up=5.0, down=2.0))
        events = simulate_events(network, Streams(5), time=300.0).read()
        verify([events], ring(4), resending=channel.resending)
        found = counts(events)
        assert found["retry", OFFLINE] > 100
        assert found["deliver", OK] > 10 * found["drop", OFFLINE]


class TestFresh:
    @pytest.mark.parametrize("pattern", [Request(service=0.1), Poll(interval=5.0, response=0.1)])
    def test_each_answer_again_is_a_new_release_for_the_same_query(self, pattern: Exchange) -> None:
        loss, limit = 0.4, 2
        channel = Channel(loss=loss, retransmit=ResendFresh(limit=limit, backoff=0.2))
        events, _ = play(star(4), pattern, channel, time=2000.0, seed=6)
        verify([events], star(4), resending=channel.resending)
        answers = events[(events["kind"] == SEND) & (events["agent"] != LEARNER)]
        answers = answers[answers["time"] < 1990.0]
        assert not (events["kind"] == RETRY).any()
        _, given = np.unique(answers["cause"], return_counts=True)
        observed = np.bincount(given, minlength=limit + 2)[1:]
        expected = given.size * np.array([1 - loss, loss * (1 - loss), loss**2])
        assert stats.chisquare(observed, expected).pvalue > LEVEL
        for owner in range(4):
            mine = events[(events["kind"] == SEND) & (events["agent"] == owner)]["release"]
            assert mine.tolist() == list(range(mine.size))

    def test_the_limit_of_releases_holds(self) -> None:
        channel = Channel(loss=0.6, retransmit=ResendFresh(limit=5, backoff=LATE))
        limits = np.array([1, 4, 7])
        events, ended = play(star(3), Request(), channel, time=1000.0, limits=limits)
        verify([events], star(3), limits, resending=channel.resending)
        assert ended == "exhausted"
        made = events[(events["kind"] == SEND) & (events["agent"] != LEARNER)]
        assert np.bincount(made["agent"]).tolist() == limits.tolist()

    def test_a_newer_query_ends_it(self) -> None:
        """With a backoff above the interval nothing is ever answered twice."""
        channel = Channel(loss=0.5, retransmit=ResendFresh(backoff=1.5))
        events, _ = play(star(3), Poll(), channel, time=200.0)
        verify([events], star(3), resending=channel.resending)
        answers = events[(events["kind"] == SEND) & (events["agent"] != LEARNER)]
        heard = events[events["kind"] == DELIVER]
        for answer in answers[1:]:
            newer = heard[
                (heard["agent"] == answer["agent"])
                & (heard["seq"] > answer["cause"])
                & (heard["seq"] < answer["seq"])
            ]
            assert newer.size == 0

    def test_the_learner_waits_for_the_last_one(self) -> None:
        channel = Channel(loss=0.5, retransmit=ResendFresh(backoff=0.3))
        events, _ = play(star(3), Request(), channel, time=300.0)
        served: int | None = None
        for event in events:
            if event["kind"] == SEND and event["agent"] == LEARNER:
                served = int(event["peer"])
            elif event["kind"] == SEND:
                assert event["agent"] == served

    def test_needs_a_learner(self) -> None:
        with pytest.raises(MeaningError, match="there is no learner; use kind: same"):
            play(ring(4), Gossip(), Channel(loss=0.5, retransmit=ResendFresh()), time=5.0)


def at(events: np.ndarray, kind: int, n: int, **fields: int) -> int:
    chosen = events["kind"] == kind
    for name, value in fields.items():
        chosen &= events[name] == value
    return int(np.flatnonzero(chosen)[n])


AGAIN = Channel(loss=0.5, latency=0.05, retransmit=ResendSame(limit=3, backoff=0.1))
UNHEARD = Channel(latency=0.05, retransmit=ResendSame(limit=3, backoff=0.1, acknowledge=0.5))
RENEWED = Channel(loss=0.5, latency=0.05, retransmit=ResendFresh(limit=3, backoff=0.1))


def put(kind: int, n: int, field: str, value: Callable[[Any], int]) -> Callable[[np.ndarray], None]:
    def mutate(events: np.ndarray) -> None:
        event = events[at(events, kind, n)]
        event[field] = value(event)

    return mutate


def retry_of_what_arrived(events: np.ndarray) -> None:
    """A retry after a loss comes to mean that another, delivered message was sent again."""
    retry = at(events, RETRY, 20)
    heard = events[at(events[:retry], DELIVER, 5)]
    event = events[retry]
    event["agent"], event["peer"], event["cause"] = heard["peer"], heard["agent"], heard["cause"]
    event["version"], event["release"] = heard["version"], heard["release"]


def second_answer_to_heard(events: np.ndarray) -> None:
    """An answer that arrived is given again: the drop before the second answer becomes a delivery."""
    answers = np.flatnonzero((events["kind"] == SEND) & (events["agent"] != LEARNER))
    causes, counts = np.unique(events["cause"][answers], return_counts=True)
    query = causes[counts == 2][0]
    first = answers[events["cause"][answers] == query][0]
    drop = at(events, DROP, 0, cause=int(events["seq"][first]))
    events["kind"][drop], events["outcome"][drop] = DELIVER, OK


BREAKS: list[tuple[str, Graph, Exchange, Channel, Callable[[np.ndarray], None], str]] = [
    ("why", ring(4), Gossip(), AGAIN, put(RETRY, 3, "outcome", lambda _: OK), "not why a message"),
    (
        "acknowledgement of what has not arrived",
        ring(4),
        Gossip(),
        AGAIN,
        put(RETRY, 3, "outcome", lambda _: UNACKNOWLEDGED),
        "has not arrived there",
    ),
    (
        "failure of what has arrived",
        ring(4),
        Gossip(),
        UNHEARD,
        put(RETRY, 0, "outcome", lambda _: LOSS),
        "the message has arrived there",
    ),
    ("version", ring(4), Gossip(), AGAIN, put(RETRY, 3, "version", lambda e: e["version"] + 1), "not the message"),
    ("release", ring(4), Gossip(), AGAIN, put(RETRY, 3, "release", lambda e: e["release"] - 1), "not the message"),
    (
        "receiver",
        ring(4),
        Gossip(),
        AGAIN,
        put(RETRY, 3, "peer", lambda e: (2 * int(e["agent"]) - int(e["peer"])) % 4),
        "no such message was sent",
    ),
    ("to a stranger", ring(4), Gossip(), AGAIN, put(RETRY, 3, "peer", lambda e: (e["agent"] + 2) % 4), "not linked"),
    ("of what arrived", ring(4), Gossip(), AGAIN, retry_of_what_arrived, "it has ended there"),
    ("answer to what was heard", star(3), Request(), RENEWED, second_answer_to_heard, "cause"),
]  # fmt: skip


class TestChecker:
    @pytest.mark.parametrize(
        ("where", "pattern", "channel", "mutate", "message"),
        [row[1:] for row in BREAKS],
        ids=[row[0] for row in BREAKS],
    )
    def test_broken_stream_is_refused(
        self,
        where: Graph,
        pattern: Exchange,
        channel: Channel,
        mutate: Callable[[np.ndarray], None],
        message: str,
    ) -> None:
        events, _ = play(where, pattern, channel, time=60.0, seed=7)
        events = events.copy()
        verify([events], where, resending=channel.resending)
        mutate(events)
        with pytest.raises(EventsError, match=message):
            verify([events], where, resending=channel.resending)

    @pytest.mark.parametrize(
        ("channel", "allowed", "message"),
        [
            (AGAIN, Resending(), "nothing is sent again"),
            (AGAIN, Resending(retries=2), "sent again more than 2 times"),
            (UNHEARD, Resending(retries=3), "it has ended there"),
        ],
    )
    def test_more_than_is_allowed(self, channel: Channel, allowed: Resending, message: str) -> None:
        events, _ = play(ring(4), Gossip(), channel, time=60.0)
        with pytest.raises(EventsError, match=message):
            verify([events], ring(4), resending=allowed)

    @pytest.mark.parametrize("fresh", [0, 1])
    def test_more_answers_than_are_allowed(self, fresh: int) -> None:
        events, _ = play(star(3), Request(), RENEWED, time=100.0)
        with pytest.raises(EventsError, match="cannot cause a send, or has done so"):
            verify([events], star(3), resending=Resending(fresh=fresh))

    def test_answer_to_an_older_query(self) -> None:
        """Once a newer query was heard, the older one may not be answered again."""
        channel = Channel(loss=0.5, retransmit=ResendFresh(backoff=0.3))
        events, _ = play(star(1), Poll(), channel, time=100.0)
        events = events.copy()
        answers = np.flatnonzero((events["kind"] == SEND) & (events["agent"] == 0))
        first = {}
        for place in answers.tolist():
            first.setdefault(int(events["cause"][place]), place)
        # An answer to a query, whose predecessor's answer was lost.
        for older, newer in zip(list(first), list(first)[1:], strict=False):
            lost = events[(events["cause"] == events["seq"][first[older]]) & (events["kind"] == DROP)]
            if lost.size:
                events["cause"][first[newer]] = older
                break
        with pytest.raises(EventsError, match=r"cannot cause a send|another version"):
            verify([events], star(1), resending=channel.resending)


class TestOptions:
    @pytest.mark.parametrize(
        ("keys", "message"),
        [
            ({"loss": {"kind": "gilbert-elliott"}}, "give either to_bad and to_good, or mean and burst"),
            ({"loss": {"kind": "gilbert-elliott", "mean": 0.1}}, "give either"),
            (
                {"loss": {"kind": "gilbert-elliott", "mean": 0.1, "burst": 1.0, "to_bad": 1.0}},
                "give either",
            ),
            (
                {"loss": {"kind": "gilbert-elliott", "good": 0.2, "mean": 0.1, "burst": 1.0}},
                r"mean: must lie between good \(0.2\) and bad \(1.0\), got 0.1",
            ),
            (
                {"loss": {"kind": "gilbert-elliott", "good": 0.9, "bad": 0.1, "to_bad": 1.0, "to_good": 1.0}},
                "good: loses more",
            ),
            ({"loss": {"kind": "gilbert"}}, "gilbert-elliott"),
            ({"loss": {"edge": 3}}, "valid string"),
            ({"loss": -0.1}, "greater than or equal to 0"),
            ({"airtime": float("inf")}, "finite"),
            ({"bandwidth": 0}, "greater than 0"),
            ({"collision": "csma"}, "carrier-sense"),
            ({"backoff": 0.1}, "dictionary or instance of Distribution"),
            ({"backoff": {"uniform": [0.1, 0.1]}}, "backoff: must be random"),
            ({"capture": 1.5}, "less than or equal to 1"),
            ({"retransmit": {"kind": "same", "limit": 0}}, "greater than or equal to 1"),
            ({"retransmit": {"kind": "same", "limit": 101}}, "less than or equal to 100"),
            ({"retransmit": "again"}, "none"),
        ],
    )
    def test_errors(self, keys: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            Channel.model_validate(keys)

    def test_short_forms(self) -> None:
        channel = Channel.model_validate({"loss": {"edge": "p"}, "retransmit": "same"})
        assert channel.loss == EdgeValue(edge="p")
        assert channel.retransmit == ResendSame()
        again = Channel.model_validate(channel.model_dump(mode="json"))
        assert again == channel

    @pytest.mark.parametrize("what", ["latency", "loss"])
    def test_attribute_that_links_lack(self, what: str) -> None:
        channel = Channel.model_validate({what: {"edge": "delay"}})
        with pytest.raises(
            MeaningError, match=r"has a number called 'delay'; attributes that all have: none"
        ):
            play(ring(4), Gossip(), channel, time=5.0)

    @pytest.mark.parametrize("loss", [1.0, GilbertElliott(good=1.0, to_bad=1.0, to_good=1.0)])
    def test_what_loses_all_makes_no_commit(self, loss: Any) -> None:
        with pytest.raises(MeaningError, match="every message is lost"):
            play(star(3), Request(), Channel(loss=loss), commits=5)


def test_collisions_and_losses_are_told_apart() -> None:
    channel = Channel(airtime=0.1, collision="aloha", loss=0.2, shared=True, retransmit=ResendSame(limit=1))
    events, _ = play(complete(5), Broadcast(), channel, time=50.0)
    found = counts(events)
    for outcome in (LOSS, COLLISION):
        assert found["drop", outcome] > 0
        assert found["retry", outcome] > 0
    assert found["commit", OK] == (events["kind"] == COMMIT).sum()
