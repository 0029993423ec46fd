"""What carries messages and reports how each of them ended, and media in which messages do not disturb one another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from p2psim.core.events import LOSS, NONE
from p2psim.network.channels.draws import Airtime, Delays
from p2psim.network.channels.effects import ActiveEffects
from p2psim.network.channels.loss import Losses
from p2psim.network.simpy_engine.timers import NORMAL, Endpoint, Message

if TYPE_CHECKING:
    from p2psim.network.spec import RunningNetwork


class Medium(Protocol):
    """Takes over messages; for each receiver it calls its `Endpoint` once, now or later."""

    def carry(self, message: Message) -> None:
        """Take over a message, sent at this moment, for each of its receivers."""


class IdealMedium:
    """Everything arrives in the moment in which it is sent, before its sender goes on."""

    def __init__(self, ends: Endpoint):
        self._arrive = ends.arrive

    def carry(self, message: Message) -> None:
        """Deliver at once."""
        for receiver in message.receivers:
            self._arrive(message, receiver)


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

    def carry(self, message: Message) -> None:
        """Deliver or drop after a delay."""
        airtime = self._airtime.question if message.version == NONE else self._airtime.loaded
        if self._constant is not None:
            self.end_later(message, airtime + self._constant, False)
            return
        fates, sender, lane = self._fates, message.sender, message.lane
        for receiver in message.receivers:
            delay = airtime + self._delays(sender, receiver, lane)
            is_lost = self._losses(sender, receiver, lane)
            if fates is not None:
                delay, is_lost = fates.of(sender, receiver, lane, self._env.now, delay, is_lost)
            self.end_later(message.to(receiver), delay, is_lost)

    def end_later(self, message: Message, delay: float, is_lost: bool) -> None:
        """Let a message arrive, or be lost, after a delay; at once, and before anything else, if it is zero."""
        message.callback = self._lose if is_lost else self._arrive
        if delay:
            self._schedule(message, NORMAL, delay)
        else:
            message.callback(message)

    def _arrive(self, message: Message) -> None:
        arrive = self._ends.arrive
        for receiver in message.receivers:
            arrive(message, receiver)

    def _lose(self, message: Message) -> None:
        message.fail_at_all(self._ends, LOSS)
