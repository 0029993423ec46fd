"""A radio medium, in which transmissions take time and may collide, and the rules for when a sender may begin.

Transmissions collide at each receiver that hears several. A sender begins at the next slot, or when it hears nobody.
Pure ALOHA (Abramson 1970) has no such rule: whoever has something to send sends.
"""

from __future__ import annotations

import math
from collections import deque
from heapq import heappush
from typing import TYPE_CHECKING, Protocol

from p2psim.core.distributions import Distribution
from p2psim.core.events import BUSY, COLLISION, GAVE_UP, LOSS, NONE, OFFLINE
from p2psim.core.times import ROUNDING
from p2psim.network.channels.draws import Airtime, Delays, Draws
from p2psim.network.channels.effects import ActiveEffects
from p2psim.network.channels.interference import Interference
from p2psim.network.channels.loss import Losses
from p2psim.network.channels.medium import IndependentMedium
from p2psim.network.simpy_engine.timers import NORMAL, Endpoint, Message

if TYPE_CHECKING:
    from p2psim.network.spec import RunningNetwork


class Access(Protocol):
    """Says when a sender may begin."""

    #: Whether a sender that has waited asks again; otherwise it begins.
    asks_again: bool

    def when(self, message: Message) -> float | None:
        """Moment to wait for: none later than now where the sender may begin now, None where it gives up."""

    def over(self, message: Message) -> float:
        """When a transmission that begins now ends."""


class Slots:
    """Slotted ALOHA (Roberts 1975): transmissions begin at whole multiples of the slot."""

    asks_again = False

    def __init__(self, world: RunningNetwork, slot: float):
        self._env, self._slot = world.env, slot

    def when(self, message: Message) -> float:
        """When the next slot begins; its number is noted."""
        message.slot = number = math.ceil(self._env._now / self._slot * (1 - ROUNDING))
        return number * self._slot

    def over(self, message: Message) -> float:
        """In its slot."""
        return (message.slot + message.length / self._slot) * self._slot


class CarrierSense:
    """Non-persistent carrier sensing (Kleinrock, Tobagi 1975): who hears another waits a random time, and tries again.

    A sender hears at its own place what is on the air at that moment: there is no propagation delay.
    """

    asks_again = True

    def __init__(
        self, world: RunningNetwork, interference: Interference, backoff: Distribution, attempts: int
    ):
        self._env, self._is_busy = world.env, interference.is_busy
        self._backoffs = Draws(world, "backoff", backoff)
        self._attempts = attempts

    def when(self, message: Message) -> float | None:
        """Now if nobody is heard; otherwise after a random time, or None after so many attempts."""
        now = self._env._now
        while self._is_busy(message.sender, now):
            message.tries += 1
            if message.tries == self._attempts:
                return None
            again = now + next(self._backoffs.of(message.sender))
            if again > now:
                return again
        return now

    def over(self, message: Message) -> float:
        """After its airtime."""
        return self._env._now + message.length


_AT_ONCE = (0.0, False)


class SharedMedium:
    """Sends, one by one or as they come, what senders hand over; `Interference` says who heard it.

    Parameters
    ----------
    world : RunningNetwork
    ends : Endpoint
    airtime, delays, losses : callable
    interference : Interference
        What is on the air, and where it is heard.
    access : Access, optional
        When a sender may begin; at once when left out.
    while_sending : {"wait", "overlap", "skip"}
        What becomes of a message whose sender is still busy with another message.
    constant : float, optional
        Delay of all messages, where it is constant and none is lost, so that neither is drawn.
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
        interference: Interference,
        access: Access | None,
        while_sending: str,
        constant: float | None,
        fates: ActiveEffects | None = None,
    ):
        self._fates = fates
        self._env, self._present = world.env, world.present
        self._queue, self._numbers = world.env._queue, world.env._eid
        self._ends = ends
        self._airtime, self._delays, self._losses = airtime, delays, losses
        self._arrives_at_once = constant == 0
        self._independent = IndependentMedium(world, ends, airtime, delays, losses, constant, fates)
        self._interference, self._begin_on_air = interference, interference.begin
        self._is_plain = interference.is_plain
        self._access = access
        self._one_by_one, self._skips = while_sending != "overlap", while_sending == "skip"
        # Who is sending, or about to; what else it has to send. Index −1 is the learner's place, the last message.
        self._sending = bytearray(world.links.agents + 1)
        self._waiting: dict[int, deque[Message]] = {}
        # What SimPy calls at the end of a wait, and at the end of a transmission.
        asks_again = access is not None and access.asks_again
        self._waited = self._ask if asks_again else self._begin
        self._finished = self._finish

    def carry(self, message: Message) -> None:
        """Send as soon as the sender and the rules of access allow; what takes no airtime disturbs nobody."""
        length = self._airtime.question if message.version == NONE else self._airtime.loaded
        if not length:
            self._independent.carry(message)
            return
        message.length, sender = length, message.sender
        if not self._arrives_at_once:
            lane = message.lane
            message.fates = [
                (self._delays(sender, receiver, lane), self._losses(sender, receiver, lane))
                for receiver in message.receivers
            ]
        if self._one_by_one:
            if self._sending[sender]:
                if self._skips:
                    message.fail_at_all(self._ends, BUSY)
                else:
                    self._waiting.setdefault(sender, deque()).append(message)
                return
            self._sending[sender] = 1
        access = self._access
        when = access.when(message) if access is not None else self._env._now
        if when is None:
            self._refuse(message, GAVE_UP)
        elif when > self._env._now:
            message.callback = self._waited
            heappush(self._queue, (when, NORMAL, next(self._numbers), message))
        else:
            # Who hands a message over is there.
            self._begin_on_air(message)
            message.callback = self._finished
            end = self._env._now + length if access is None else access.over(message)
            heappush(self._queue, (end, NORMAL, next(self._numbers), message))

    def _ask(self, message: Message) -> None:
        """Begin when the rules of access allow."""
        now, access = self._env._now, self._access
        when = access.when(message) if access is not None else now
        if when is None:
            self._refuse(message, GAVE_UP)
        elif when > now:
            message.callback = self._waited
            heappush(self._queue, (when, NORMAL, next(self._numbers), message))
        else:
            self._begin(message)

    def _begin(self, message: Message) -> None:
        """Put a transmission on the air."""
        if not self._present[message.sender]:
            self._refuse(message, OFFLINE)
            return
        self._begin_on_air(message)
        message.callback = self._finished
        access = self._access
        end = self._env._now + message.length if access is None else access.over(message)
        heappush(self._queue, (end, NORMAL, next(self._numbers), message))

    def _finish(self, message: Message) -> None:
        """End a transmission: each receiver has heard it or not."""
        sender = message.sender
        if self._is_plain and not message.others and message.fates is None:
            arrive = self._ends.arrive
            for receiver in message.receivers:
                arrive(message, receiver)
        else:
            self._sort_out(message)
        if self._waiting:
            self._next(sender)
        else:
            self._sending[sender] = 0

    def _sort_out(self, message: Message) -> None:
        """Let each receiver have its own end of a transmission."""
        sender, fates, interference, ends = message.sender, message.fates, self._interference, self._ends
        is_clear = self._is_plain and not message.others
        for place, receiver in enumerate(message.receivers):
            delay, is_lost = fates[place] if fates is not None else _AT_ONCE
            if self._fates is not None:
                begin = self._env.now - message.length
                delay, is_lost = self._fates.of(sender, receiver, message.lane, begin, delay, is_lost)
            if not is_clear and not interference.hears(message, receiver):
                ends.fail(message, receiver, COLLISION)
            elif delay:
                self._independent.end_later(message.to(receiver), delay, is_lost)
            elif is_lost:
                ends.fail(message, receiver, LOSS)
            else:
                ends.arrive(message, receiver)

    def _refuse(self, message: Message, outcome: int) -> None:
        """Give a transmission up that would have been next."""
        message.fail_at_all(self._ends, outcome)
        self._next(message.sender)

    def _next(self, sender: int) -> None:
        """Send what the sender has waiting, or let it be free."""
        waiting = self._waiting.get(sender) if self._waiting else None
        if not waiting:
            self._sending[sender] = 0
            return
        message = waiting.popleft()
        if not waiting:
            del self._waiting[sender]
        self._ask(message)
