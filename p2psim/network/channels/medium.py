"""What carries messages and reports how each of them ended, and media in which messages do not disturb one another.

A message in a medium is also the event of what comes next for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from p2psim.core.events import LOSS, NONE
from p2psim.network.channels.draws import Airtime, Delays
from p2psim.network.channels.effects import ActiveEffects
from p2psim.network.channels.loss import Losses
from p2psim.network.simpy_engine.timers import NORMAL, Scheduled

if TYPE_CHECKING:
    from p2psim.network.spec import Ended, RunningNetwork


class Medium(Protocol):
    """Takes over messages: for each receiver it sees to it that, now or later, its `Endpoint` are told once."""

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
        """Take over a message, sent at this moment, for each of its receivers.

        Parameters
        ----------
        sender : int
        receivers : sequence of int
        seq : int
            Of the send.
        version, release : int
        heard, lost : callable
            What the world calls at its end.
        lane : int
            Which of the sender's streams to draw from: 0, and 1 for what is sent again, so that this moves no draw of
            what is sent for the first time.
        """


class Endpoint(Protocol):
    """Is told how a message ended at a receiver: the world, or what sends again first."""

    def arrive(
        self, sender: int, receiver: int, seq: int, version: int, release: int, heard: Ended, lost: Ended
    ) -> None:
        """Take in a message that has reached the place of its receiver."""

    def fail(
        self,
        sender: int,
        receiver: int,
        seq: int,
        version: int,
        release: int,
        heard: Ended,
        lost: Ended,
        outcome: int,
    ) -> None:
        """Hear that a message has not come to its receiver, and why."""


class Message(Scheduled):
    """A message on its way to receivers: what `Medium.carry` got, and in ``callback`` what becomes of it next."""

    def __init__(
        self,
        sender: int,
        receivers: Sequence[int],
        seq: int,
        version: int,
        release: int,
        heard: Ended,
        lost: Ended,
    ):
        self.sender = sender
        self.receivers = receivers
        self.seq = seq
        self.version = version
        self.release = release
        self.heard = heard
        self.lost = lost

    def arrive_at_all(self, ends: Endpoint) -> None:
        """Let it arrive at all receivers."""
        arrive = ends.arrive
        for receiver in self.receivers:
            arrive(self.sender, receiver, self.seq, self.version, self.release, self.heard, self.lost)

    def fail_at_all(self, ends: Endpoint, outcome: int) -> None:
        """Let it fail at all receivers."""
        fail = ends.fail
        for receiver in self.receivers:
            fail(self.sender, receiver, self.seq, self.version, self.release, self.heard, self.lost, outcome)


class IdealMedium:
    """Everything arrives in the moment in which it is sent, before its sender goes on."""

    def __init__(self, ends: Endpoint):
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


class IndependentMedium:
    """Each delivery takes its own time and is lost or not; a loss shows when it would have arrived.

    Every sender draws from streams of its own, so that what one does moves no one else's draws.

    Parameters
    ----------
    world : RunningNetwork
    ends : Endpoint
    airtime, delays, losses : callable
    constant : float, optional
        Delay of all messages, where it is one and none is lost: a message is then one event, whoever hears it.
    fates : ActiveEffects, optional
        What effects do to deliveries.
    """

    def __init__(
        self,
        world: RunningNetwork,
        ends: Endpoint,
        airtime: Airtime,
        delays: Delays,
        losses: Losses,
        constant: float | None,
        fates: ActiveEffects | None = None,
    ):
        self._env, self._fates = world.env, fates
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
            one = Message(sender, receivers, seq, version, release, heard, lost)
            self.end_later(one, airtime + self._constant, False)
            return
        fates = self._fates
        for receiver in receivers:
            delay = airtime + self._delays(sender, receiver, lane)
            is_lost = self._losses(sender, receiver, lane)
            if fates is not None:
                delay, is_lost = fates.of(sender, receiver, lane, self._env.now, delay, is_lost)
            self.end_later(Message(sender, (receiver,), seq, version, release, heard, lost), delay, is_lost)

    def end_later(self, one: Message, delay: float, is_lost: bool) -> None:
        """Let a message arrive, or be lost, after a delay; at once, and before anything else, if it is zero."""
        one.callback = self._lose if is_lost else self._arrive
        if delay:
            self._schedule(one, NORMAL, delay)
        else:
            one.callback(one)

    def _arrive(self, one: Message) -> None:
        one.arrive_at_all(self._ends)

    def _lose(self, one: Message) -> None:
        one.fail_at_all(self._ends, LOSS)
