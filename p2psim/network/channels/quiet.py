"""Media in which messages do not disturb one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from p2psim.network.channels.latency import Delays
from p2psim.network.channels.loss import Losses
from p2psim.network.channels.medium import Ends
from p2psim.network.channels.timing import Airtime
from p2psim.network.events import LOSS, NONE

if TYPE_CHECKING:
    from p2psim.network.world import Ended, World


class IdealMedium:
    """Everything arrives in the moment in which it is sent, before its sender goes on."""

    def __init__(self, ends: Ends):
        self._arrive = ends.arrive

    def carry(
        self,
        sender: int,
        receivers: Sequence[int],
        seq: int,
        version: int,
        release: int,
        heard: Ended,
        lost: Ended,
        lane: int = 0,
    ) -> None:
        """Deliver at once."""
        for receiver in receivers:
            self._arrive(sender, receiver, seq, version, release, heard, lost)


class QuietMedium:
    """Each delivery takes its own time and is lost or not; a loss shows when it would have arrived.

    Every sender draws from streams of its own, so that what one does moves no one else's draws.
    """

    def __init__(self, world: World, ends: Ends, airtime: Airtime, delays: Delays, losses: Losses):
        self._world, self._ends = world, ends
        self._airtime, self._delays, self._losses = airtime, delays, losses

    def carry(
        self,
        sender: int,
        receivers: Sequence[int],
        seq: int,
        version: int,
        release: int,
        heard: Ended,
        lost: Ended,
        lane: int = 0,
    ) -> None:
        """Deliver or drop after a delay."""
        after, ends = self._world.after, self._ends
        airtime = self._airtime.question if version == NONE else self._airtime.loaded
        for receiver in receivers:
            delay = airtime + self._delays(sender, receiver, lane)
            is_lost = self._losses(sender, receiver, lane)

            def end(receiver: int = receiver, is_lost: bool = is_lost) -> None:
                if is_lost:
                    ends.fail(sender, receiver, seq, version, release, heard, lost, LOSS)
                else:
                    ends.arrive(sender, receiver, seq, version, release, heard, lost)

            after(delay, end)
