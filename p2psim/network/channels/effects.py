"""Effects on deliveries that a channel has beside its own keys: what loses or delays a message on its way."""

import math
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np
from pydantic import Field, model_validator

from p2psim.core.errors import MeaningError
from p2psim.core.options import AS_LIST, BY_NAME, NonNegative, Options, Positive
from p2psim.core.registry import AnyOf, register
from p2psim.network.graph import Graph
from p2psim.network.spec import RunningNetwork


class Delivery(NamedTuple):
    """A message on its way to one receiver.

    Attributes
    ----------
    sender, receiver : int
        −1 is the learner.
    begin : float
        When its transmission begins, in mean clock periods. A sender that waits for the medium has not begun.
    end : float
        When it arrives, after its airtime, its latency and the delays of effects named before.
    """

    sender: int
    receiver: int
    begin: float
    end: float


class Effect(Protocol):
    """What an effect does during one run."""

    def is_lost(self, delivery: Delivery, random: np.random.Generator) -> bool:
        """Whether a delivery is lost; see `ChannelEffect.is_lost`."""

    def delay(self, delivery: Delivery, random: np.random.Generator) -> float:
        """Time by which a delivery comes later; see `ChannelEffect.delay`."""


class ChannelEffect(Options):
    """Base of all effects of a channel: what loses messages, or makes them come later.

    An effect of your own is a subclass with a ``kind``, keys of its own, and ``is_lost``, ``delay`` or both. A scenario
    names it in ``network.channel.effects``; several act in their order. ``is_lost`` is called once for each delivery,
    and then ``delay`` once, unless this effect loses it. Each attempt of a message that is sent again is a delivery. A
    lost message ends with the outcome ``loss`` at the time at which it would have arrived.

    Attributes
    ----------
    kind : str
        The name, as ``kind: Literal["jamming"] = "jamming"``.
    """

    part_kind: ClassVar[str] = "channel"

    # Subclasses declare it with a Literal.
    kind: Any

    def is_lost(self, delivery: Delivery, random: np.random.Generator) -> bool:
        """Whether a delivery is lost.

        Parameters
        ----------
        delivery : Delivery
        random : numpy.random.Generator
            The stream of this effect and the delivery's sender: the only source of random numbers. What one sender
            draws moves no draw of another.
        """
        return False

    def delay(self, delivery: Delivery, random: np.random.Generator) -> float:
        """Time by which a delivery comes later, finite and 0 or more, in mean clock periods.

        Parameters
        ----------
        delivery, random
            As for ``is_lost``.
        """
        return 0.0

    def open(self, links: Graph) -> Effect:
        """Begin a run: what answers for this effect in it; itself, unless it must remember earlier deliveries.

        Parameters
        ----------
        links : Graph
            The graph.

        Raises
        ------
        MeaningError
            If the effect means nothing on these links.
        """
        return self


@register
class Blackout(ChannelEffect):
    """Nothing gets through for a span of time: deliveries that are on their way in it are lost."""

    kind: Literal["blackout"] = "blackout"
    begin: NonNegative = Field(description="first moment, in mean clock periods")
    end: Positive = Field(description="moment after the last")

    @model_validator(mode="after")
    def _has_length(self) -> Self:
        if not self.begin < self.end:
            raise ValueError(f"end: must be after begin, {self.begin:g}, got {self.end:g}")
        return self

    def is_lost(self, delivery: Delivery, random: np.random.Generator) -> bool:
        """Whether it is on its way in [begin, end)."""
        return delivery.begin < self.end and delivery.end >= self.begin


#: Any effect that is registered; they act in order.
Effects = Annotated[list[Annotated[ChannelEffect, AnyOf("channel"), BY_NAME]], AS_LIST]


class ActiveEffects:
    """What the effects of a channel do to the deliveries of one run."""

    def __init__(self, world: RunningNetwork, effects: list[ChannelEffect]):
        streams = world.streams
        variant = streams.variants.get("effects", "")
        self._effects = [
            (effect, effect.open(world.links), replace(streams, variants={"effects": f"{variant}/{number}"}))
            for number, effect in enumerate(effects)
        ]
        self._random: dict[tuple[int, int, int], np.random.Generator] = {}

    def on(self, delivery: Delivery, lane: int, is_lost: bool) -> tuple[list[float], bool]:
        """Times by which a delivery comes later, one after the other, and whether it is lost.

        Parameters
        ----------
        delivery : Delivery
            Its end is that without effects.
        lane : int
            0, and 1 for what is sent again.
        is_lost : bool
            Whether the channel loses it anyway. Effects are asked all the same: their draws do not depend on it.
        """
        late: list[float] = []
        for number, (part, effect, streams) in enumerate(self._effects):
            place = number, delivery.sender, lane
            if place not in self._random:
                self._random[place] = streams.generator("effects", delivery.sender, lane)
            random = self._random[place]
            if effect.is_lost(delivery, random):
                is_lost = True
                continue
            more = effect.delay(delivery, random)
            if not (math.isfinite(more) and more >= 0):
                raise MeaningError(
                    f"network.channel.effects.{number}",
                    f"the delay that {part.kind} gives must be a finite number of at least 0, got {more}",
                )
            late.append(more)
            delivery = delivery._replace(end=delivery.end + more)
        return late, is_lost
