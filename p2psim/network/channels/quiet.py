"""Media in which messages do not disturb one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from p2psim.network.channels.carried import Carried
from p2psim.network.channels.latency import Delays
from p2psim.network.channels.loss import Losses
from p2psim.network.channels.medium import Ended, Ends
from p2psim.network.channels.timing import Airtime
from p2psim.network.events import LOSS, NONE
from p2psim.network.timers import NORMAL

if TYPE_CHECKING:
    from p2psim.network.world import World


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

    Parameters
    ----------
    world : World
    ends : Ends
    airtime, delays, losses : callable
    constant : float, optional
        Delay of all messages, where it is one and none is lost: a message is then one event, whoever hears it.
    """

    def __init__(
        self,
        world: World,
        ends: Ends,
        airtime: Airtime,
        delays: Delays,
        losses: Losses,
        constant: float | None,
    ):
        self._schedule, self._ends = world.env.schedule, ends
        self._airtime, self._delays, self._losses, self._constant = airtime, delays, losses, constant

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
        airtime = self._airtime.question if version == NONE else self._airtime.loaded
        if self._constant is not None:
            one = Carried(sender, receivers, seq, version, release, heard, lost)
            self.end_later(one, airtime + self._constant, False)
            return
        for receiver in receivers:
            delay = airtime + self._delays(sender, receiver, lane)
            is_lost = self._losses(sender, receiver, lane)
            self.end_later(Carried(sender, (receiver,), seq, version, release, heard, lost), delay, is_lost)

    def end_later(self, one: Carried, delay: float, is_lost: bool) -> None:
        """Let a message arrive, or be lost, after a delay; at once, and before anything else, if it is zero."""
        one.ring = self._lose if is_lost else self._arrive
        if delay:
            self._schedule(one, NORMAL, delay)
        else:
            one.ring(one)

    def _arrive(self, one: Carried) -> None:
        one.arrive_at_all(self._ends)

    def _lose(self, one: Carried) -> None:
        one.fail_at_all(self._ends, LOSS)
