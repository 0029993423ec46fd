"""Effects of a channel: what loses or delays a message on its way, in every medium."""

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from network_cases import (
    DELIVER,
    DROP,
    SEND,
    Broadcast,
    Channel,
    Gossip,
    Request,
    complete,
    of_kind,
    play,
    ring,
    star,
)

from p2psim.core.distributions import Distribution
from p2psim.core.errors import MeaningError, OptionError
from p2psim.core.events import LOSS
from p2psim.core.randomness import Streams
from p2psim.network.availability import Always, Availability, Bernoulli
from p2psim.network.channels.channel import ResendSame
from p2psim.network.channels.effects import Blackout, ChannelEffect, Delivery
from p2psim.network.exchanges import Exchange
from p2psim.network.graph import Graph
from p2psim.network.section import uncompiled_parts

#: Channels of each medium.
CHANNELS: dict[str, dict[str, Any]] = {
    "no time": {},
    "latency": {"latency": 0.25},
    "random latency and loss": {"latency": Distribution(exponential=0.3), "loss": 0.3},
    "waiting for the medium": {"airtime": 0.3, "latency": 0.1},
    "collisions": {"airtime": 0.05, "collision": "aloha", "latency": 0.1},
    "slots": {"airtime": 0.05, "collision": "slotted"},
    "carrier sensing": {"airtime": 0.05, "collision": "carrier-sense"},
    "sent again": {"latency": 0.1, "loss": 0.2, "retransmit": ResendSame(limit=2)},
}
EXCHANGES: dict[str, tuple[Graph, Exchange]] = {
    "star": (star(4), Request()),
    "ring": (ring(5), Broadcast()),
    "pairs": (complete(5), Gossip(mode="push-pull")),
}


class Still(ChannelEffect):
    """Nothing."""

    kind: Literal["still"] = "still"


class Coin(ChannelEffect):
    """A loss by chance."""

    kind: Literal["coin"] = "coin"
    chance: float = 0.5

    def is_lost(self, delivery: Delivery, random: np.random.Generator) -> bool:
        return random.random() < self.chance


class Late(ChannelEffect):
    """A delay."""

    kind: Literal["late"] = "late"
    by: float = 0.5

    def delay(self, delivery: Delivery, random: np.random.Generator) -> float:
        return self.by


def affected(*effects: ChannelEffect, **keys: Any) -> Channel:
    return Channel(**keys).model_copy(update={"effects": list(effects)})


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("channel", CHANNELS)
def test_an_effect_that_does_nothing_changes_nothing(channel: str, exchange: str) -> None:
    keys = CHANNELS[channel]
    plain, _ = play(*EXCHANGES[exchange], Channel(**keys), time=30.0, engine="simpy")
    still, _ = play(*EXCHANGES[exchange], affected(Still(), Late(by=0.0), **keys), time=30.0)
    assert plain.tobytes() == still.tobytes()


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("channel", CHANNELS)
def test_an_effect_can_lose_everything(channel: str, exchange: str) -> None:
    events, _ = play(*EXCHANGES[exchange], affected(Coin(chance=1.1), **CHANNELS[channel]), time=30.0)
    assert of_kind(events, SEND).size
    assert (of_kind(events, DROP)["outcome"] == LOSS).any()
    assert not of_kind(events, DELIVER).size


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("radio", [{}, {"airtime": 0.0625, "collision": "aloha"}], ids=["quiet", "radio"])
def test_a_delay_adds_to_the_latency(radio: dict[str, Any], exchange: str) -> None:
    """Binary fractions, whose sums are exact: the same bytes as a longer latency gives."""
    longer, _ = play(*EXCHANGES[exchange], Channel(latency=0.75, **radio), time=30.0)
    later, _ = play(*EXCHANGES[exchange], affected(Late(by=0.5), latency=0.25, **radio), time=30.0)
    assert longer.tobytes() == later.tobytes()


@given(begin=st.floats(0, 15), length=st.floats(0.01, 5))
@settings(max_examples=15, deadline=None)
def test_nothing_on_its_way_gets_through_a_blackout(begin: float, length: float) -> None:
    end = begin + length
    effect = Blackout(begin=begin, end=end)
    events, _ = play(ring(5), Broadcast(), Channel(latency=0.25, effects=[effect]), time=20.0)
    sent = dict(
        zip(of_kind(events, SEND)["seq"].tolist(), of_kind(events, SEND)["time"].tolist(), strict=True)
    )
    for event in events[np.isin(events["kind"], (DELIVER, DROP))]:
        is_hit = sent[int(event["cause"])] < end and event["time"] >= begin
        assert (event["kind"] == DROP) == is_hit


def test_each_sender_draws_from_its_own_stream_of_each_effect() -> None:
    """The n-th delivery of a sender is lost if the n-th uniform number of its stream says so."""
    events, _ = play(ring(6), Broadcast(), affected(Still(), Coin()), seed=5, time=20.0)
    ends = events[np.isin(events["kind"], (DELIVER, DROP))]
    streams = Streams(5, variants={"effects": "/1"})
    for sender in range(6):
        lost = ends[ends["peer"] == sender]["kind"] == DROP
        assert lost.size > 10
        drawn = streams.generator("effects", sender).random(lost.size) < 0.5
        assert lost.tolist() == drawn.tolist()


@pytest.mark.parametrize("by", [-0.1, np.nan, np.inf])
@pytest.mark.parametrize("channel", ["no time", "collisions"])
def test_a_delay_that_is_none_is_refused_by_name(by: float, channel: str) -> None:
    with pytest.raises(MeaningError, match="late gives must be a finite number of at least 0") as caught:
        play(ring(5), Broadcast(), affected(Late.model_construct(by=by), **CHANNELS[channel]), time=30.0)
    assert caught.value.faults[0].key == "network.channel.effects.0"


def test_a_blackout_ends_after_it_begins() -> None:
    with pytest.raises(OptionError, match="end: must be after begin, 3, got 3"):
        Blackout(begin=3.0, end=3.0)


class Told(Broadcast):
    """A part of one's own that inherits a compiled form, which is not its own."""

    kind: Literal["told"] = "told"  # type: ignore[assignment]


class Missed(Bernoulli):
    """The same of an availability."""

    kind: Literal["missed"] = "missed"  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("exchange", "channel", "availability", "key"),
    [
        (Told(), Channel(), Always(), "network.exchange"),
        (Broadcast(), affected(Still()), Always(), "network.channel.effects"),
        (Broadcast(), Channel(), Missed(drop=0.5), "network.availability"),
    ],
)
def test_parts_of_ones_own_run_on_simpy(
    exchange: Exchange, channel: Channel, availability: Availability | Always, key: str
) -> None:
    assert uncompiled_parts(Broadcast(), Channel(), Always()) == []
    assert uncompiled_parts(exchange, channel, availability) == [key]
    with pytest.raises(MeaningError, match=f"no compiled form of parts of your own; given by {key}"):
        play(ring(5), exchange, channel, availability=availability, time=2.0, engine="array")
