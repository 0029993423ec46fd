"""The channel: a message on its way is a process, which travels, is lost or arrives, and may be sent again."""

from collections.abc import Generator, Sequence
from typing import Any

import simpy

from p2psim.core.events import LOSS, NONE, OFFLINE, OK, UNACKNOWLEDGED
from p2psim.network.channels.channel import Channel as ChannelOptions
from p2psim.network.channels.draws import Airtime, Draws, open_latency
from p2psim.network.channels.effects import ActiveEffects, Delivery
from p2psim.network.order import ARRIVAL, CHANNEL, RESENDING
from p2psim.network.simpy_engine.base import Message, Run, Transmission, begin
from p2psim.network.simpy_engine.medium import SharedMedium
from p2psim.network.spec import Steps


class RunningChannel:
    """The channel of one run.

    Parameters
    ----------
    run : Run
    options : Channel
        As the scenario has it.
    airtime : Airtime
        Time that transmissions take.
    """

    def __init__(self, run: Run, options: ChannelOptions, airtime: Airtime):
        self._run = run
        self._airtime = airtime
        self._latency, self._is_lost = open_latency(options.latency, run), options.losses.open(run)
        self._effects = ActiveEffects(run, options.effects) if options.effects else None
        self._medium: SharedMedium | None = None
        if options.collision != "none" and self._airtime.loaded > 0:
            self._medium = SharedMedium(run, options, self._airtime.loaded, self.affect, self.pass_on)
        self._limit = options.resending.retries
        self._backoffs = Draws(run, "retransmit", options.retransmit.backoff)
        self._losing = options.retransmit.acknowledge
        self._acknowledgements = Draws(run, "acknowledgement")

    def carry(self, message: Message) -> None:
        """Take over a message, sent at this moment: it ends once at each of its receivers, now or later."""
        length = self._airtime.question if message.version == NONE else self._airtime.loaded
        self._transmit(Transmission(message, message.receivers, length))

    def _transmit(self, sent: Transmission) -> None:
        """Send on the shared medium, or to each receiver apart where messages do not disturb one another."""
        if self._needs_medium(sent):
            self._send_on_medium(sent)
        else:
            for receiver in sent.receivers:
                self.pass_on(sent, receiver, *self._way(sent, receiver))

    def _send_on_medium(self, sent: Transmission) -> None:
        assert self._medium is not None
        sent.paths = [self._path(sent, receiver) for receiver in sent.receivers]
        self._medium.send(sent)

    def _needs_medium(self, sent: Transmission) -> bool:
        """Whether a transmission is on a shared medium: what takes no airtime disturbs nobody."""
        return self._medium is not None and sent.length > 0

    def _path(self, sent: Transmission, receiver: int) -> tuple[float, bool]:
        """Latency of a transmission to a receiver, and whether it is lost on its way."""
        sender = sent.message.sender
        return self._latency(sender, receiver, sent.lane), self._is_lost(sender, receiver, sent.lane)

    def _way(self, sent: Transmission, receiver: int) -> tuple[Sequence[float], int]:
        """How long a transmission that begins now takes to a receiver, part by part, and how it ends there."""
        now, (latency, is_lost) = self._run.env.now, self._path(sent, receiver)
        late, is_lost = self.affect(sent, receiver, now, now + sent.length + latency, is_lost)
        return (sent.length, latency, *late), LOSS if is_lost else OK

    def affect(
        self, sent: Transmission, receiver: int, begin: float, end: float, is_lost: bool
    ) -> tuple[Sequence[float], bool]:
        """Times by which effects make a delivery late, and whether it is lost."""
        if self._effects is None:
            return (), is_lost
        delivery = Delivery(sent.message.sender, receiver, begin, end)
        return self._effects.on(delivery, sent.lane, is_lost)

    def pass_on(self, sent: Transmission, receiver: int, times: Sequence[float], outcome: int) -> None:
        """Let a transmission travel to a receiver for some times, and end there."""
        begin(self._run.env, self._deliver(sent, receiver, times, outcome))

    def _deliver(self, sent: Transmission, receiver: int, times: Sequence[float], outcome: int) -> Steps:
        """A message on its way to a receiver, until it has arrived, has failed for good, or needs the medium again."""
        run = self._run
        while True:
            for time in times:
                if time:
                    yield run.env.timeout(time)
            if any(times):
                yield from run.turns.take(CHANNEL, receiver, sent.message.seq, ARRIVAL)
            if outcome == OK:
                outcome = self._arrive(sent, receiver)
            again = None
            if outcome != OK:
                again = yield from self._send_again(sent, receiver, outcome)
            if again is None:
                return
            sent, (times, outcome) = again, self._way(again, receiver)

    def _arrive(self, sent: Transmission, receiver: int) -> int:
        """Hand a message over; returns the outcome as its sender sees it."""
        run, message = self._run, sent.message
        if self._limit and not run.presence.takes_in(receiver):
            return OFFLINE
        if not sent.arrived:
            run.arrive(message, receiver)
        is_silent = self._losing > 0 and next(self._acknowledgements.of(message.sender)) < self._losing
        return UNACKNOWLEDGED if is_silent else OK

    def _send_again(
        self, sent: Transmission, receiver: int, outcome: int
    ) -> Generator[simpy.Event, Any, Transmission | None]:
        """Send a message again after a backoff, or give up; returns what travels then, unless the medium has it."""
        run, message = self._run, sent.message
        arrived = sent.arrived or outcome == UNACKNOWLEDGED
        if sent.again < self._limit:
            backoff = next(self._backoffs.of(message.sender))
            yield from run.wait(backoff, message.sender, message.seq, RESENDING, receiver)
            if run.present[message.sender]:
                run.retry(message, receiver, outcome)
                again = Transmission(message, (receiver,), sent.length, sent.again + 1, arrived)
                if not self._needs_medium(again):
                    return again
                self._send_on_medium(again)
                return None
        if not arrived:
            run.fail(message, receiver, outcome)
        return None
