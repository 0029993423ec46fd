"""What happens to a message on its way: delay and loss.

A channel is opened on a world and gives a medium. All that callers know of a medium is
``carry(sender, receivers, seq, version, release, heard, lost)``: for each receiver it sees to it that, now or
later, the world's ``arrive`` or ``fail`` is called once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from pydantic import Field

from p2psim.distributions import Distribution, Quantity
from p2psim.network.events import LOSS
from p2psim.options import Fraction, Options

if TYPE_CHECKING:
    from p2psim.network.world import Ended, World


class Medium(Protocol):
    """What carries messages, whatever it does to them."""

    def carry(
        self,
        sender: int,
        receivers: Sequence[int],
        seq: int,
        version: int,
        release: int,
        heard: Ended,
        lost: Ended,
    ) -> None:
        """Take over a message, sent at this moment, for each of its receivers."""


class Channel(Options):
    """A channel that delays and loses messages, each delivery independently of the others."""

    latency: Quantity = Field(0.0, description="time a message travels, in mean clock periods")
    loss: Fraction = Field(0.0, description="probability that a delivery is lost")

    @property
    def ideal(self) -> bool:
        """Whether every message arrives in the moment in which it is sent."""
        return self.latency == 0 and self.loss == 0

    def open(self, world: World) -> Medium:
        """Medium of this channel in a world."""
        return IdealMedium(world) if self.ideal else LossyMedium(world, self)


class IdealMedium:
    """Everything arrives in the moment in which it is sent, before its sender goes on."""

    def __init__(self, world: World):
        self._arrive = world.arrive

    def carry(
        self,
        sender: int,
        receivers: Sequence[int],
        seq: int,
        version: int,
        release: int,
        heard: Ended,
        lost: Ended,
    ) -> None:
        """Deliver at once."""
        for receiver in receivers:
            self._arrive(sender, receiver, seq, version, release, heard, lost)


class LossyMedium:
    """Each delivery takes its own time and is lost or not, independently; a loss shows when it would have arrived.

    Every sender draws from streams of its own, so that what one does moves no one else's draws.
    """

    def __init__(self, world: World, channel: Channel):
        self._world = world
        self._channel = channel
        self._delays: dict[int, Iterator[float]] = {}
        self._fates: dict[int, Iterator[float]] = {}

    def carry(
        self,
        sender: int,
        receivers: Sequence[int],
        seq: int,
        version: int,
        release: int,
        heard: Ended,
        lost: Ended,
    ) -> None:
        """Deliver or drop after a delay."""
        world = self._world
        if sender not in self._delays:
            self._delays[sender] = world.draws("latency", sender, self._channel.latency)
            self._fates[sender] = world.draws("loss", sender, _UNIT)
        delays, fates, loss = self._delays[sender], self._fates[sender], self._channel.loss
        for receiver in receivers:
            delay, is_lost = next(delays), next(fates) < loss

            def end(receiver: int = receiver, is_lost: bool = is_lost) -> None:
                if is_lost:
                    world.fail(sender, receiver, seq, version, release, LOSS, lost)
                else:
                    world.arrive(sender, receiver, seq, version, release, heard, lost)

            world.after(delay, end)


_UNIT = Distribution(uniform=(0.0, 1.0))
