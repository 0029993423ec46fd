"""Whether a delivery is lost on its way."""

import math
from collections.abc import Callable
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Discriminator, Field, Tag, model_validator

from p2psim.core.options import Fraction, Options, Positive
from p2psim.network.channels.draws import Draws, EdgeValue, number_or_mapping
from p2psim.network.graph import Graph
from p2psim.network.spec import RunningNetwork

#: Whether the next delivery from a sender to a receiver is lost; the lane is that of `Medium.carry`.
Losses = Callable[[int, int, int], bool]


class GilbertElliott(Options):
    """Losses that come in bursts: every link alternates between a good and a bad state (Gilbert 1960; Elliott 1963).

    The state of a link is one for both directions, changes in continuous time with exponential durations, and starts
    stationary. A delivery is lost with the probability of the state at the moment of the send. Give either both rates,
    or ``mean`` and ``burst``.
    """

    kind: Literal["gilbert-elliott"] = "gilbert-elliott"
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


def open_loss(loss: float | EdgeValue | GilbertElliott, world: RunningNetwork) -> Losses:
    """Losses in a world."""
    if isinstance(loss, GilbertElliott):
        return loss.open(world)
    if loss == 0:
        return lambda *_: False
    fates = Draws(world, "loss")
    if isinstance(loss, EdgeValue):
        chance = loss.of_link(world.links, "network.channel.loss", 1.0)
        return lambda sender, receiver, lane: next(fates.of(sender, lane)) < chance(sender, receiver)
    constant = loss
    return lambda sender, receiver, lane: next(fates.of(sender, lane)) < constant


def chances(loss: float | EdgeValue, links: Graph) -> np.ndarray:
    """Probability that a delivery over each entry of ``links.indices`` is lost, shape (m,)."""
    if isinstance(loss, EdgeValue):
        return loss.column(links, "network.channel.loss", 1.0)
    return np.full(links.indices.size, loss)


def loses_all(loss: float | EdgeValue | GilbertElliott, links: Graph) -> bool:
    """Whether nothing can ever arrive."""
    if isinstance(loss, EdgeValue):
        return bool((loss.column(links, "network.channel.loss", 1.0) == 1).all())
    return loss == 1 if not isinstance(loss, GilbertElliott) else loss.good == 1
