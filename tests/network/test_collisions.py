"""What was heard, checked against a plain comparison of all transmissions with each other."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from network_cases import (
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
    Round,
    complete,
    connected_graphs,
    is_edge,
    play,
    ring,
    star,
)

from p2psim.core.distributions import Distribution
from p2psim.core.errors import MeaningError
from p2psim.core.events import BUSY, COLLISION, GAVE_UP, LOSS, OFFLINE, OK, UNACKNOWLEDGED
from p2psim.core.randomness import Streams
from p2psim.network.channels.channel import ResendFresh, ResendSame
from p2psim.network.channels.effects import GilbertElliott
from p2psim.network.exchanges.protocol import Exchange
from p2psim.network.graph import links
from p2psim.network.simulation import simulate_events
from p2psim.network.verify import verify

TIME = 12.0
#: Two intervals that touch may overlap by rounding.
TOUCH = 1e-9

PATTERNS: list[Exchange] = [
    Gossip(),
    Gossip(mode="push-pull"),
    Broadcast(),
    Poll(interval=0.7, response=Distribution(exponential=0.5)),
    Round(interval=0.7, response=Distribution(exponential=0.5), deadline=2.0),
]


@st.composite
def networks(draw: st.DrawFn) -> tuple[Graph, Exchange]:
    pattern = draw(st.sampled_from(PATTERNS))
    if pattern.needs_learner:
        return star(draw(st.integers(1, 6))), pattern
    return links(draw(connected_graphs(most=6))), pattern


@st.composite
def radios(draw: st.DrawFn, **fixed: Any) -> Channel:
    keys: dict[str, Any] = {
        "airtime": draw(st.floats(0.01, 1.0)),
        "collision": draw(st.sampled_from(["aloha", "slotted", "carrier-sense"])),
        "shared": draw(st.sampled_from([True, False, None])),
        "half_duplex": draw(st.booleans()),
        "while_sending": draw(st.sampled_from(["wait", "overlap", "skip"])),
        "capture": draw(st.sampled_from([0.0, 1.0])),
        "attempts": draw(st.integers(1, 5)),
    }
    return Channel(**keys | fixed)


@dataclass(frozen=True)
class Sent:
    """A transmission, as its end shows it."""

    seq: int
    sender: int
    start: float
    outcomes: dict[int, int]


def transmissions(events: np.ndarray, airtime: float) -> list[Sent]:
    """Everything that was on the air until its end, in the order of starts."""
    sends = {int(event["seq"]): int(event["agent"]) for event in events[events["kind"] == SEND]}
    found: dict[int, Sent] = {}
    for event in events[np.isin(events["kind"], [DELIVER, DROP])]:
        seq, outcome = int(event["cause"]), int(event["outcome"])
        if seq in sends and outcome in (OK, COLLISION, LOSS):
            one = found.setdefault(seq, Sent(seq, sends[seq], float(event["time"]) - airtime, {}))
            assert event["time"] - airtime == pytest.approx(one.start)
            one.outcomes[int(event["agent"])] = outcome
    return sorted(found.values(), key=lambda one: one.start)


def in_earshot(where: Graph, shared: bool, sender: int, receiver: int) -> bool:
    if shared:
        return True
    return receiver in where.of(sender) if sender != LEARNER else receiver != LEARNER


def disturbers(one: Sent, receiver: int, sent: list[Sent], channel: Channel, where: Graph) -> list[Sent]:
    shared = where.star if channel.shared is None else channel.shared
    return [
        other
        for other in sent
        if other.sender != one.sender
        and (other.sender != receiver or channel.half_duplex)
        and (other.sender == receiver or in_earshot(where, shared, other.sender, receiver))
        and other.start < one.start + channel.airtime - TOUCH
        and one.start < other.start + channel.airtime - TOUCH
    ]


@settings(max_examples=150, deadline=None)
@given(networks(), radios())
def test_heard_is_what_nothing_else_in_earshot_overlaps(
    network: tuple[Graph, Exchange], channel: Channel
) -> None:
    where, pattern = network
    events, _ = play(where, pattern, channel, time=TIME)
    verify([events], where)
    sent = transmissions(events, channel.airtime)
    if channel.capture and channel.collision == "slotted":
        return  # all begin together: which one is the first is not seen from outside
    for one in sent:
        if one.start > TIME - 2 * channel.airtime:
            continue  # what overlaps it may not have ended
        for receiver, outcome in one.outcomes.items():
            others = disturbers(one, receiver, sent, channel, where)
            fatal = [
                other for other in others if other.start <= one.start or other.sender == receiver
            ] if channel.capture else others  # fmt: skip
            assert (outcome == COLLISION) == bool(fatal), (one, receiver, others)


@settings(max_examples=60, deadline=None)
@given(networks(), radios())
def test_senders_keep_the_rules_of_access(network: tuple[Graph, Exchange], channel: Channel) -> None:
    where, pattern = network
    events, _ = play(where, pattern, channel, time=TIME)
    sent = transmissions(events, channel.airtime)
    time_of = dict(zip(events["seq"].tolist(), events["time"].tolist(), strict=True))
    for one in sent:
        asked = time_of[one.seq]
        assert one.start >= asked - TOUCH
        if channel.collision == "slotted":
            assert one.start / channel.airtime == pytest.approx(round(one.start / channel.airtime), abs=1e-6)
        if channel.while_sending == "overlap" or channel.collision == "aloha":
            limit = channel.airtime if channel.collision == "slotted" else 0.0
            waited = one.start - asked
            if channel.collision != "carrier-sense" and channel.while_sending != "wait":
                assert waited <= limit + TOUCH
    outcomes = set(events["outcome"][events["kind"] == DROP].tolist())
    assert BUSY not in outcomes or channel.while_sending == "skip"
    assert GAVE_UP not in outcomes or channel.collision == "carrier-sense"
    if channel.while_sending != "overlap":
        for sender in {one.sender for one in sent}:
            own = [one.start for one in sent if one.sender == sender]
            assert (np.diff(own) >= channel.airtime - TOUCH).all()


@settings(max_examples=40, deadline=None)
@given(networks(), radios(collision="aloha", while_sending="wait"))
def test_who_waits_sends_in_order_and_as_soon_as_it_can(
    network: tuple[Graph, Exchange], channel: Channel
) -> None:
    where, pattern = network
    events, _ = play(where, pattern, channel, time=TIME)
    sent = {one.seq: one.start for one in transmissions(events, channel.airtime)}
    free: dict[int, float] = {}
    for event in events[events["kind"] == SEND]:
        start = max(float(event["time"]), free.get(int(event["agent"]), 0.0))
        free[int(event["agent"])] = start + channel.airtime
        if int(event["seq"]) in sent:
            assert sent[int(event["seq"])] == pytest.approx(start)


@settings(max_examples=60, deadline=None)
@given(networks(), radios(collision="carrier-sense", shared=True, while_sending="wait"))
def test_who_hears_all_others_never_collides(network: tuple[Graph, Exchange], channel: Channel) -> None:
    where, pattern = network
    events, _ = play(where, pattern, channel, time=TIME)
    assert COLLISION not in events["outcome"]


def test_owners_that_do_not_hear_each_other_collide() -> None:
    """Hidden terminals: the learner hears all owners, who do not share the medium."""
    poll = Poll(response=Distribution(exponential=0.3))
    channel = Channel(airtime=0.05, collision="carrier-sense", shared=False)
    events, _ = play(star(10), poll, channel, time=50.0)
    collided = events[events["outcome"] == COLLISION]
    assert (collided["agent"] == LEARNER).sum() > 100


@pytest.mark.parametrize("collision", ["aloha", "slotted", "carrier-sense"])
def test_what_takes_no_airtime_does_not_collide(collision: Any) -> None:
    plain, _ = play(complete(5), Broadcast(), Channel(loss=0.3), time=20.0)
    events, _ = play(complete(5), Broadcast(), Channel(loss=0.3, collision=collision), time=20.0)
    assert events.tobytes() == plain.tobytes()


class TestBandwidth:
    def test_each_vector_takes_airtime(self) -> None:
        channel = Channel(airtime=0.1, bandwidth=4.0)
        events, _ = play(ring(4), Gossip(mode="pull"), channel, time=30.0)
        ends = events[events["kind"] == DELIVER]
        lasted = ends["time"] - events["time"][ends["cause"]]
        asks = ends["version"] < 0
        assert lasted[asks] == pytest.approx(0.1)
        assert lasted[~asks] == pytest.approx(0.1 + 0.25)

    def test_a_message_may_carry_several(self) -> None:
        network = Network(ring(4), Gossip(), Channel(bandwidth=4.0), vectors=2)
        events = simulate_events(network, Streams(0), time=10.0).read()
        ends = events[events["kind"] == DELIVER]
        assert ends["time"] - events["time"][ends["cause"]] == pytest.approx(0.5)

    def test_questions_without_airtime_disturb_nobody(self) -> None:
        channel = Channel(bandwidth=4.0, collision="aloha", shared=True)
        events, _ = play(ring(4), Gossip(mode="pull"), channel, time=30.0)
        verify([events], ring(4))
        drops = events[events["kind"] == DROP]
        assert drops.size > 0
        assert (drops["version"] >= 0).all()


ANYTHING: list[tuple[Graph, Exchange]] = [
    (star(4), Request()),
    (star(4), Request(service=Distribution(exponential=0.2), busy="queue")),
    (star(4), Poll(interval=0.5, response=Distribution(exponential=0.5))),
    (complete(4), Broadcast()),
    (ring(5), Gossip()),
    (ring(5), Gossip(mode="push-pull")),
    (ring(5), Gossip(mode="pull")),
    (ring(5), Gossip(mode="edge")),
]


@st.composite
def channels(draw: st.DrawFn, star: bool) -> Channel:
    again = st.builds(
        ResendSame,
        limit=st.integers(1, 4),
        backoff=st.sampled_from([0.0, 0.3, Distribution(exponential=0.2)]),
        acknowledge=st.sampled_from([0.0, 0.4]),
    )
    fresh = st.builds(ResendFresh, limit=st.integers(1, 4), backoff=st.sampled_from([0.0, 0.3]))
    latency = st.sampled_from([0.0, 0.2, Distribution(exponential=0.5)])
    bursts = [GilbertElliott(mean=0.3, burst=1.0), GilbertElliott(bad=0.9, to_bad=1.0, to_good=2.0)]
    loss = st.sampled_from([0.0, 0.3, 1.0, *bursts])
    radio = draw(radios())
    return radio.model_copy(
        update={
            "latency": draw(latency),
            "loss": draw(loss),
            "airtime": draw(st.sampled_from([0.0, 0.05, 0.4])),
            "collision": draw(st.sampled_from(["none", radio.collision])),
            "capture": draw(st.sampled_from([0.0, 0.5])),
            "retransmit": draw(st.one_of(again, fresh, st.just(Channel().retransmit)) if star else again),
        }
    )


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from(ANYTHING), st.sampled_from([None, 3]))
def test_whatever_the_channel_does_the_stream_holds(
    data: st.DataObject, network: tuple[Graph, Exchange], limit: int | None
) -> None:
    where, pattern = network
    channel = data.draw(channels(where.star))
    limits = None if limit is None else np.full(where.agents, limit)
    events, ended = play(where, pattern, channel, engine="simpy", time=TIME, limits=limits)
    verify([events], where, limits, by_edge=is_edge(pattern), resending=channel.resending)
    assert ended in ("time", "exhausted")
    allowed = {OK, LOSS, COLLISION, BUSY, GAVE_UP, OFFLINE, UNACKNOWLEDGED}
    why = set(events["outcome"][np.isin(events["kind"], [DROP, 7])].tolist())
    assert OFFLINE not in why
    assert UNACKNOWLEDGED not in why or channel.resending.loses_acknowledgements
    assert allowed >= why - {3, 7}
    parts, _ = play(where, pattern, channel, engine="simpy", time=TIME, limits=limits, chunk=11)
    assert parts.tobytes() == events.tobytes()


@pytest.mark.parametrize("engine", ["simpy", "array"])
@pytest.mark.parametrize(
    "keys",
    [{"airtime": 5e-324}, {"airtime": 1e-13}, {"bandwidth": 1e300}, {"airtime": 1e-13, "bandwidth": 1e14}],
)
def test_slots_too_short_to_be_counted_are_refused(keys: dict[str, float], engine: str) -> None:
    with pytest.raises(MeaningError, match="slots must be 1e-12 or longer"):
        play(star(2), Poll(), Channel(collision="slotted", **keys), time=3.0, engine=engine)
    events, _ = play(star(2), Poll(), Channel(collision="aloha", **keys), time=3.0, engine="simpy")
    assert events.size
    events, _ = play(star(2), Poll(), Channel(collision="slotted", airtime=1e-12), time=3.0, engine="simpy")
    sends = events[events["kind"] == SEND]
    assert sends["time"].max() == 3.0
