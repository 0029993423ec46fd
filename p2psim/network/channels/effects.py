"""What loses or delays a delivery on its way: a channel's key ``loss``, and effects beside its keys."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np
from pydantic import Discriminator, Field, Tag, model_validator

from p2psim.core.errors import MeaningError
from p2psim.core.options import AS_LIST, BY_NAME, Fraction, NonNegative, Options, Positive
from p2psim.core.part_types import AnyOf
from p2psim.core.printing import exact
from p2psim.core.registry import register
from p2psim.network.channels.draws import Draws, EdgeValue, number_or_mapping
from p2psim.network.compiled_engine import state as st
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

    An effect of your own is a subclass with a ``kind``, its own keys, and ``is_lost``, ``delay`` or both. A scenario
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

    @property
    def span(self) -> tuple[float, float]:
        """Time in which nothing gets through, for the compiled engine: SimPy runs effects from outside p2psim."""
        raise NotImplementedError(f"{self.kind} has no compiled form")


@register
class Blackout(ChannelEffect):
    """Nothing gets through for a span of time: deliveries that are on their way in it are lost."""

    kind: Literal["blackout"] = "blackout"
    begin: NonNegative = Field(description="first moment, in mean clock periods")
    end: Positive = Field(description="moment after the last")

    @model_validator(mode="after")
    def _has_length(self) -> Self:
        if not self.begin < self.end:
            raise ValueError(f"end: must be after begin, {exact(self.begin)}, got {exact(self.end)}")
        return self

    def is_lost(self, delivery: Delivery, random: np.random.Generator) -> bool:
        """Whether it is on its way in [begin, end)."""
        return delivery.begin < self.end and delivery.end >= self.begin

    @property
    def span(self) -> tuple[float, float]:
        """From the first moment to that after the last."""
        return self.begin, self.end


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


#: Whether the next delivery from a sender to a receiver is lost; the lane is that of `Medium.carry`.
Losses = Callable[[int, int, int], bool]


#: Fields of the compiled engine's state, and its arrays.
CompiledLosses = tuple[Mapping[str, Any], Mapping[str, np.ndarray]]


class LossModel(ABC):
    """How a channel loses deliveries: what its key ``loss`` means."""

    #: Whether each delivery is lost independently of all others.
    is_independent: ClassVar[bool] = True

    @property
    def shared_chance(self) -> float | None:
        """Probability that any delivery is lost, independently of all others; None where there is no such number."""
        return None

    def chances(self, links: Graph) -> np.ndarray | None:
        """Probability that a delivery over each entry of ``links.indices`` is lost, independently of all others.

        None where losses depend on one another. Raises a MeaningError if links lack a number that they need.
        """
        return None

    @abstractmethod
    def loses_all(self, links: Graph) -> bool:
        """Whether nothing can ever arrive."""

    @abstractmethod
    def open(self, world: RunningNetwork) -> Losses:
        """Begin a run."""

    @abstractmethod
    def compiled(self, links: Graph) -> CompiledLosses:
        """Form for the compiled engine."""


@dataclass(frozen=True)
class EqualLosses(LossModel):
    """Each delivery is lost with the same probability."""

    chance: float

    @property
    def shared_chance(self) -> float:
        """The number."""
        return self.chance

    def chances(self, links: Graph) -> np.ndarray:
        """The number for each link."""
        return np.full(links.indices.size, self.chance)

    def loses_all(self, links: Graph) -> bool:
        """Whether it is 1."""
        return self.chance == 1

    def open(self, world: RunningNetwork) -> Losses:
        """A draw for each delivery, unless none can be lost."""
        if self.chance == 0:
            return lambda *_: False
        fates, chance = Draws(world, "loss"), self.chance
        return lambda sender, _, lane: next(fates.of(sender, lane)) < chance

    def compiled(self, links: Graph) -> CompiledLosses:
        """See `LossModel.compiled`."""
        if self.chance == 0:
            return {"loses": st.NEVER}, {}
        return {"loses": st.BY_CHANCE}, {"chances": np.array([self.chance])}


@dataclass(frozen=True)
class LossesByLink(LossModel):
    """Each link loses deliveries with its own probability."""

    value: EdgeValue

    def chances(self, links: Graph) -> np.ndarray:
        """The number of each link."""
        return self.value.column(links, "network.channel.loss", 1.0)

    def loses_all(self, links: Graph) -> bool:
        """Whether all are 1."""
        return bool((self.chances(links) == 1).all())

    def open(self, world: RunningNetwork) -> Losses:
        """A draw for each delivery."""
        fates, chance = Draws(world, "loss"), self.value.of_link(world.links, "network.channel.loss", 1.0)
        return lambda sender, receiver, lane: next(fates.of(sender, lane)) < chance(sender, receiver)

    def compiled(self, links: Graph) -> CompiledLosses:
        """See `LossModel.compiled`."""
        return {"loses": st.BY_LINK}, {"chances": self.chances(links)}


class GilbertElliott(Options, LossModel):
    """Losses that come in bursts: every link alternates between a good and a bad state (Gilbert 1960; Elliott 1963).

    The state of a link is one for both directions, changes in continuous time with exponential durations, and starts
    stationary. A delivery is lost with the probability of the state at the moment of the send. Give either both rates,
    or ``mean`` and ``burst``.
    """

    kind: Literal["gilbert-elliott"] = "gilbert-elliott"
    is_independent: ClassVar[bool] = False
    good: Fraction = Field(0.0, description="probability that a delivery is lost in the good state")
    bad: Fraction = Field(1.0, description="the same in the bad state")
    to_bad: Positive | None = Field(None, description="rate at which a good link turns bad, per unit of time")
    to_good: Positive | None = Field(None, description="rate at which a bad link turns good")
    mean: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None, description="share of deliveries lost in the long run, between good and bad; with burst"
    )
    burst: Positive | None = Field(None, description="mean time that a link stays bad; with mean")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        rates, shares = (self.to_bad, self.to_good), (self.mean, self.burst)
        given = [all(v is not None for v in pair) for pair in (rates, shares)]
        if given.count(True) != 1 or any(v is not None for v in (shares if given[0] else rates)):
            raise ValueError("give either to_bad and to_good, or mean and burst")
        if self.good > self.bad:
            raise ValueError(f"good: loses more ({self.good}) than bad ({self.bad})")
        if self.mean is not None and not self.good < self.mean < self.bad:
            raise ValueError(
                f"mean: must lie between good ({self.good}) and bad ({self.bad}), got {self.mean}"
            )
        return self

    @property
    def bad_share(self) -> float:
        """Stationary probability of the bad state."""
        if self.mean is not None:
            return (self.mean - self.good) / (self.bad - self.good)
        assert self.to_bad is not None
        assert self.to_good is not None
        return self.to_bad / (self.to_bad + self.to_good)

    @property
    def relaxation(self) -> float:
        """Sum of both rates: P(bad at t) tends to its limit as exp(−relaxation·t)."""
        if self.burst is not None:
            return 1 / (self.burst * (1 - self.bad_share))
        assert self.to_bad is not None
        assert self.to_good is not None
        return self.to_bad + self.to_good

    def loses_all(self, links: Graph) -> bool:
        """Whether also the good state loses everything."""
        return self.good == 1

    def compiled(self, links: Graph) -> CompiledLosses:
        """See `LossModel.compiled`."""
        states = st.records(links.indices.size, st.LINK)
        states["was"] = -1
        fields = {key: getattr(self, key) for key in ("good", "bad", "bad_share", "relaxation")}
        return {"loses": st.IN_BURSTS, **fields}, {"link_states": states}

    def open(self, world: RunningNetwork) -> Losses:
        """Losses in a world; states are drawn when they are asked for, by the law of the chain in between."""
        share, relaxation, env, exp = self.bad_share, self.relaxation, world.env, math.exp
        good, bad = self.good, self.bad
        states: dict[tuple[int, int], tuple[float, bool]] = {}
        fates, turns = Draws(world, "loss"), Draws(world, "link-state")

        def is_lost(sender: int, receiver: int, lane: int) -> bool:
            link = (sender, receiver) if sender < receiver else (receiver, sender)
            now, chance = env.now, share
            if link in states:
                since, was_bad = states[link]
                chance += (was_bad - share) * exp(-relaxation * (now - since))
            is_bad = next(turns.of(sender, lane)) < chance
            states[link] = now, is_bad
            return next(fates.of(sender, lane)) < (bad if is_bad else good)

        return is_lost


Loss = Annotated[
    Annotated[Fraction, Tag("number")]
    | Annotated[EdgeValue, Tag("edge")]
    | Annotated[GilbertElliott, Tag("mapping")],
    Discriminator(number_or_mapping),
]


def loss_model(loss: float | EdgeValue | GilbertElliott) -> LossModel:
    """What a channel's key ``loss`` means."""
    if isinstance(loss, EdgeValue):
        return LossesByLink(loss)
    return loss if isinstance(loss, GilbertElliott) else EqualLosses(loss)
