"""A channel effect: a jammer that is switched on periodically."""

from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

import p2psim
from p2psim.core.options import NonNegative, Positive
from p2psim.network.channels.effects import Delivery


@p2psim.register
class Jamming(p2psim.ChannelEffect):
    """A jammer is on for the first part of every period; what is on its way meanwhile is lost with a probability."""

    kind: Literal["jamming"] = "jamming"
    period: Positive = Field(description="time from one jamming to the next, in mean clock periods")
    length: Positive = Field(description="time for which the jammer is on, less than a period")
    phase: NonNegative = Field(0.0, description="when it is first switched on")
    strength: Annotated[float, Field(gt=0, le=1)] = Field(
        1.0, description="probability that it destroys a message"
    )

    @model_validator(mode="after")
    def _is_off_at_times(self) -> Self:
        if self.length >= self.period:
            raise ValueError(f"length: must be less than the period, {self.period:g}, got {self.length:g}")
        return self

    def is_lost(self, delivery: Delivery, random: np.random.Generator) -> bool:
        if delivery.end < self.phase:
            return False
        since = max(delivery.begin - self.phase, 0.0) % self.period
        lasts = delivery.end - max(delivery.begin, self.phase)
        return (since < self.length or since + lasts >= self.period) and random.random() < self.strength
