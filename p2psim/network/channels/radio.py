"""A radio medium, in which transmissions take time and may collide, and the rules for when a sender may begin.

Transmissions collide at each receiver that hears several. A sender begins at the next slot, or when it hears nobody.
Pure ALOHA (Abramson 1970) has no such rule: whoever has something to send sends.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from heapq import heappush
from typing import TYPE_CHECKING, Protocol

from p2psim.core.distributions import Distribution
from p2psim.core.events import BUSY, COLLISION, GAVE_UP, LOSS, NONE, OFFLINE
from p2psim.core.times import ROUNDING
from p2psim.network.channels.draws import Airtime, Delays, Draws
from p2psim.network.channels.effects import ActiveEffects
from p2psim.network.channels.interference import Interference, Transmission
from p2psim.network.channels.loss import Losses
from p2psim.network.channels.medium import Endpoint, IndependentMedium, Message
from p2psim.network.simpy_engine.timers import NORMAL

if TYPE_CHECKING:
    from p2psim.network.spec import Ended, RunningNetwork


class Access(Protocol):
    """Says when a sender may begin."""

    #: Whether a sender that has waited asks again; otherwise it begins.
    asks_again: bool

    def when(self, one: Transmission) -> float | None:
        """Moment to wait for: none later than now where the sender may begin now, None where it gives up."""

    def over(self, one: Transmission) -> float:
        """When a transmission that begins now ends."""


class Slots:
    """Slotted ALOHA (Roberts 1975): transmissions begin at whole multiples of the slot."""

    asks_again = False

    def __init__(self, world: RunningNetwork, slot: float):
        self._env, self._slot = world.env, slot

    def when(self, one: Transmission) -> float:
        """When the next slot begins; its number is noted."""
        one.slot = number = math.ceil(self._env._now / self._slot * (1 - ROUNDING))
        return number * self._slot

    def over(self, one: Transmission) -> float:
        """In its slot."""
        return (one.slot + one.length / self._slot) * self._slot


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

    def when(self, one: Transmission) -> float | None:
        """Now if nobody is heard; otherwise after a random time, or None after so many attempts."""
        now = self._env._now
        while self._is_busy(one.sender, now):
            one.tries += 1
            if one.tries == self._attempts:
                return None
            again = now + next(self._backoffs.of(one.sender))
            if again > now:
                return again
        return now

    def over(self, one: Transmission) -> float:
        """After its airtime."""
        return self._env._now + one.length


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
        What becomes of a message whose sender is still busy with another one.
    constant : float, optional
        Delay of all messages, where it is one and none is lost, so that neither need be asked for.
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
        self._quiet = IndependentMedium(world, ends, airtime, delays, losses, constant, fates)
        self._interference, self._begin_on_air = interference, interference.begin
        self._is_plain = interference.is_plain
        self._access = access
        self._one_by_one, self._skips = while_sending != "overlap", while_sending == "skip"
        # Who is sending, or about to; what else it has to send. Index −1 is the learner's place, the last one.
        self._sending = bytearray(world.links.agents + 1)
        self._waiting: dict[int, deque[Transmission]] = {}
        # What SimPy calls at the end of a wait, and at the end of a transmission.
        asks_again = access is not None and access.asks_again
        self._waited = self._ask if asks_again else self._begin
        self._finished = self._finish

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
        """Send as soon as the sender and the rules of access allow; what takes no airtime disturbs nobody."""
        length = self._airtime.question if version == NONE else self._airtime.loaded
        if not length:
            self._quiet.carry(sender, receivers, seq, version, release, heard, lost, lane)
            return
        one = Transmission(sender, receivers, seq, version, release, heard, lost)
        one.length = length
        one.lane = lane
        if not self._arrives_at_once:
            delays, losses = self._delays, self._losses
            one.fates = [
                (delays(sender, receiver, lane), losses(sender, receiver, lane)) for receiver in receivers
            ]
        if self._one_by_one:
            if self._sending[sender]:
                if self._skips:
                    one.fail_at_all(self._ends, BUSY)
                else:
                    self._waiting.setdefault(sender, deque()).append(one)
                return
            self._sending[sender] = 1
        access = self._access
        when = access.when(one) if access is not None else self._env._now
        if when is None:
            self._refuse(one, GAVE_UP)
        elif when > self._env._now:
            one.callback = self._waited
            heappush(self._queue, (when, NORMAL, next(self._numbers), one))
        else:
            # Who hands a message over is there.
            self._begin_on_air(one)
            one.callback = self._finished
            end = self._env._now + length if access is None else access.over(one)
            heappush(self._queue, (end, NORMAL, next(self._numbers), one))

    def _ask(self, one: Transmission) -> None:
        """Begin when the rules of access allow."""
        now, access = self._env._now, self._access
        when = access.when(one) if access is not None else now
        if when is None:
            self._refuse(one, GAVE_UP)
        elif when > now:
            one.callback = self._waited
            heappush(self._queue, (when, NORMAL, next(self._numbers), one))
        else:
            self._begin(one)

    def _begin(self, one: Transmission) -> None:
        """Put a transmission on the air."""
        if not self._present[one.sender]:
            self._refuse(one, OFFLINE)
            return
        self._begin_on_air(one)
        one.callback = self._finished
        access = self._access
        end = self._env._now + one.length if access is None else access.over(one)
        heappush(self._queue, (end, NORMAL, next(self._numbers), one))

    def _finish(self, one: Transmission) -> None:
        """End a transmission: each receiver has heard it or not."""
        sender = one.sender
        if self._is_plain and not one.others and one.fates is None:
            one.arrive_at_all(self._ends)
        else:
            self._sort_out(one)
        if self._waiting:
            self._next(sender)
        else:
            self._sending[sender] = 0

    def _sort_out(self, one: Transmission) -> None:
        """Let each receiver have its own end of a transmission."""
        message = one.seq, one.version, one.release, one.heard, one.lost
        sender, fates, interference, ends = one.sender, one.fates, self._interference, self._ends
        is_clear = self._is_plain and not one.others
        for place, receiver in enumerate(one.receivers):
            delay, is_lost = fates[place] if fates is not None else _AT_ONCE
            if self._fates is not None:
                begin = self._env.now - one.length
                delay, is_lost = self._fates.of(sender, receiver, one.lane, begin, delay, is_lost)
            if not is_clear and not interference.hears(one, receiver):
                ends.fail(sender, receiver, *message, COLLISION)
            elif delay:
                self._quiet.end_later(Message(sender, (receiver,), *message), delay, is_lost)
            elif is_lost:
                ends.fail(sender, receiver, *message, LOSS)
            else:
                ends.arrive(sender, receiver, *message)

    def _refuse(self, one: Transmission, outcome: int) -> None:
        """Give a transmission up that would have been next."""
        one.fail_at_all(self._ends, outcome)
        self._next(one.sender)

    def _next(self, sender: int) -> None:
        """Send what the sender has waiting, or let it be free."""
        waiting = self._waiting.get(sender) if self._waiting else None
        if not waiting:
            self._sending[sender] = 0
            return
        one = waiting.popleft()
        if not waiting:
            del self._waiting[sender]
        self._ask(one)
