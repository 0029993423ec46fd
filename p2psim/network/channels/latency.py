"""How long a message travels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from pydantic import Discriminator, Tag

from p2psim.distributions import Distribution
from p2psim.network.channels.draws import Draws
from p2psim.network.channels.edges import EdgeValue, number_or_mapping
from p2psim.options import NonNegative

if TYPE_CHECKING:
    from p2psim.network.world import World

#: How long the next message from a sender to a receiver travels; the lane is that of `Medium.carry`.
Delays = Callable[[int, int, int], float]

Latency = Annotated[
    Annotated[NonNegative, Tag("number")]
    | Annotated[EdgeValue, Tag("edge")]
    | Annotated[Distribution, Tag("mapping")],
    Discriminator(number_or_mapping),
]


def open_latency(latency: float | EdgeValue | Distribution, world: World) -> Delays:
    """Delays in a world."""
    if isinstance(latency, EdgeValue):
        delay = latency.of_link(world.links, "network.channel.latency")
        return lambda sender, receiver, _: delay(sender, receiver)
    if isinstance(latency, Distribution):
        draws = Draws(world, "latency", latency)
        return lambda sender, _, lane: next(draws.of(sender, lane))
    constant = latency
    return lambda *_: constant
