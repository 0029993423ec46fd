"""A medium that senders share: each sender's radio is a process, which sends one message after the other.

Transmissions take time, and collide where several are heard (`Interference`). A radio begins at the next slot, or when
it hears nobody; in pure ALOHA (Abramson 1970) it begins when it has something to send.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

import simpy

from p2psim.core.distributions import Distribution
from p2psim.core.events import BUSY, COLLISION, GAVE_UP, LOSS, OFFLINE, OK
from p2psim.core.times import ROUNDING
from p2psim.network.channels.channel import BACKOFF_AIRTIMES
from p2psim.network.channels.draws import Draws
from p2psim.network.channels.effects import ActiveEffects, Delivery
from p2psim.network.order import AIRTIME, CHANNEL, REGULAR, SENSING, SLOT
from p2psim.network.simpy_engine.base import Run, Transmission
from p2psim.network.simpy_engine.interference import Interference
from p2psim.network.simpy_engine.turns import begin, exactly
from p2psim.network.spec import Steps

if TYPE_CHECKING:
    from p2psim.network.channels.channel import Channel

#: Lets a transmission travel to a receiver for some times, and end there with an outcome.
PassOn = Callable[[Transmission, int, Sequence[float], int], None]


class SharedMedium:
    """Sends what senders hand over.

    Parameters
    ----------
    run : Run
    options : Channel
    longest : float
        Airtime of the longest transmission, and length of a slot.
    effects : ActiveEffects
    pass_on : callable
        Takes over at the end of the airtime.
    """

    def __init__(self, run: Run, options: Channel, longest: float, effects: ActiveEffects, pass_on: PassOn):
        self._run, self._env, self._slot = run, run.env, longest
        self._effects, self._pass_on = effects, pass_on
        self._collision, self._while_sending = options.collision, options.while_sending
        # Slotted transmissions are compared in slots, so that neighbouring ones touch without rounding.
        self._interference = Interference(run, options, 1.0 if options.collision == "slotted" else longest)
        self._attempts = options.attempts
        backoff = options.backoff or Distribution(exponential=BACKOFF_AIRTIMES * longest)
        self._backoffs = Draws(run, "backoff", backoff)
        # What each sender has to send; the first is being sent.
        self._queues: dict[int, deque[Transmission]] = {}

    def send(self, sent: Transmission) -> None:
        """Send as soon as the sender's radio is free and the rules of access allow."""
        sender = sent.message.sender
        if self._while_sending == "overlap":
            begin(self._env, self._transmit(sent))
            return
        queue = self._queues.setdefault(sender, deque())
        if queue and self._while_sending == "skip":
            self._give_up(sent, BUSY)
            return
        queue.append(sent)
        if len(queue) == 1:
            begin(self._env, self._radio(queue))

    def _radio(self, queue: deque[Transmission]) -> Steps:
        """A sender's radio, as long as it has something to send."""
        while queue:
            yield from self._transmit(queue[0])
            queue.popleft()

    def _transmit(self, sent: Transmission) -> Steps:
        """A transmission: it waits for the medium, is on the air, and is heard at each receiver or not."""
        run, message = self._run, sent.message
        may_begin = yield from self._access(sent)
        if not may_begin or not run.present[message.sender]:
            self._give_up(sent, OFFLINE if may_begin else GAVE_UP)
            return
        sent.begun = self._env.now
        yield from self._air(sent)
        yield from run.turns.take(CHANNEL, message.sender, message.seq, AIRTIME, sent.receivers[0])
        for receiver, (latency, is_lost) in zip(sent.receivers, sent.paths, strict=True):
            delivery = Delivery(message.sender, receiver, sent.begun, self._env.now + latency)
            late, is_lost = self._effects.on(delivery, sent.lane, is_lost)
            if self._interference.hears(sent, receiver):
                self._pass_on(sent, receiver, (latency, *late), LOSS if is_lost else OK)
            else:
                self._pass_on(sent, receiver, (), COLLISION)

    def _give_up(self, sent: Transmission, outcome: int) -> None:
        for receiver in sent.receivers:
            self._pass_on(sent, receiver, (), outcome)

    def _access(self, sent: Transmission) -> Generator[simpy.Event, Any, bool]:
        """Wait until a transmission may begin; whether it may at all."""
        message, now = sent.message, self._env.now
        place = message.sender, message.seq
        if self._collision == "slotted":
            # Slotted ALOHA (Roberts 1975): transmissions begin at whole multiples of the slot.
            sent.slot = math.ceil(now / self._slot * (1 - ROUNDING))
            if sent.slot * self._slot > now:
                yield from exactly(self._env, sent.slot * self._slot)
                yield from self._run.turns.take(REGULAR, *place, SLOT, sent.receivers[0])
        elif self._collision == "carrier-sense":
            # Non-persistent (Kleinrock, Tobagi 1975): who hears another waits a random time, and tries again.
            tries = 0
            while self._interference.is_busy(message.sender, self._env.now):
                tries += 1
                if tries == self._attempts:
                    return False
                backoff = next(self._backoffs.of(message.sender))
                if self._env.now + backoff > self._env.now:
                    yield from self._run.wait(backoff, *place, SENSING, sent.receivers[0])
        return True

    def _air(self, sent: Transmission) -> Steps:
        """The time that a transmission is on the air."""
        now, length = self._env.now, sent.length
        if self._collision == "slotted":
            end = sent.slot + length / self._slot
            self._interference.begin(sent, float(sent.slot), end)
            yield from exactly(self._env, end * self._slot)
        else:
            self._interference.begin(sent, now, now + length)
            yield self._env.timeout(length)
