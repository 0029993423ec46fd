"""Interference on a shared channel: which transmissions overlap at a place, and which of them are heard.

A `ReceiverState` follows the transmissions at one receiver. `Interference` holds all of them, and decides about half
duplex and capture.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from p2psim.core.events import LEARNER
from p2psim.network.channels.draws import Draws
from p2psim.network.simpy_engine.timers import Message, Reception

if TYPE_CHECKING:
    from p2psim.network.spec import RunningNetwork


Received = Reception | Message


def other_than(receiver: int, senders: tuple[int, ...]) -> bool:
    """Whether there is a sender beside the receiver."""
    return bool(senders) and (senders[0] != receiver or len(senders) > 1)


class ReceiverState:
    """Transmissions on the air at one place; intervals are open at their end, and one sender's do not collide.

    A transmission costs a bounded amount of work on average: it is compared with the three senders whose
    transmissions end last, and each that is being received is marked at most twice. Most begin in quiet, and then
    only that is noted.
    """

    __slots__ = ("_last", "_open", "alone", "until")

    def __init__(self) -> None:
        # When the last of all ends that have begun. Who begins in quiet may set these two without a call of `begin`.
        self.until = -math.inf
        # The one that began in quiet, as long as no other has begun since; the lists are made when one does.
        self.alone: Received | None = None
        # (end, sender) of up to three different senders, those that end last, the last first.
        self._last: list[tuple[float, int]] = []
        # What is on the air and may still meet another sender that counts.
        self._open: list[Received] = []

    def is_busy(self, sender: int, now: float) -> bool:
        """Whether a sender hears another one."""
        if self.until <= now:
            return False
        if self.alone is not None:
            return self.alone.sender != sender
        for end, other in self._last:
            if end <= now:
                return False
            if other != sender:
                return True
        return False

    def begin(self, one: Received, start: float, end: float) -> None:
        """Put a transmission on the air; starts must not go back."""
        one.end = end
        if self.until <= start:
            self.until = end
            self.alone = one
            return
        first = self.alone
        if first is not None:
            self._last, self._open = [(first.end, first.sender)], [first]
            self.alone = None
        self._overlap(one, start, end)
        self.until = self._last[0][0]

    def _overlap(self, one: Received, start: float, end: float) -> None:
        """Put a transmission on the air while there are others."""
        sender = one.sender
        before: tuple[int, ...] = ()
        still = [(end, sender)]
        for entry in self._last:
            if entry[0] <= start:
                break
            if entry[1] != sender:
                still.append(entry)
                if len(before) < 2:
                    before += (entry[1],)
            elif entry[0] > end:
                still[0] = entry
        still.sort(key=_end, reverse=True)
        self._last = still[:3]
        if self._open:
            self._mark(sender, start)
        if before:
            one.before = one.others = before
        if len(before) < 2:
            self._open.append(one)

    def _mark(self, sender: int, start: float) -> None:
        """Let all that is being received know of another sender."""
        still = []
        for one in self._open:
            if one.end <= start:
                continue
            if one.sender != sender and sender not in one.others:
                one.others += (sender,)
            if len(one.others) < 2:
                still.append(one)
        self._open = still


def _end(entry: tuple[float, int]) -> float:
    return entry[0]


class Interference:
    """All transmissions of a world.

    A transmission is heard in full at a receiver unless

    - another one that is in earshot of the receiver overlaps it; the sender's own do not count, and the receiver's own
      only with ``half_duplex``;
    - and it is not captured: one that began while nobody else was on the air there survives later ones, all together,
      with the probability ``capture``. Who is sending itself captures nothing.

    Parameters
    ----------
    world : RunningNetwork
    shared : bool
        Whether everybody hears everybody; otherwise only neighbours.
    half_duplex : bool
    capture : float
    slotted : bool
        Whether transmissions are compared in slots, so that neighbouring ones touch without rounding.
    longest : float
        Length of the longest transmission: that of a slot.
    """

    def __init__(
        self,
        world: RunningNetwork,
        shared: bool,
        half_duplex: bool,
        capture: float,
        slotted: bool,
        longest: float,
    ):
        self._env, self._links, self._slotted, self._longest = world.env, world.links, slotted, longest
        self._common = ReceiverState() if shared else None
        self._states: dict[int, ReceiverState] = {}
        self._earshot: dict[int, list[int]] = {}
        self._half_duplex = half_duplex
        # What each agent itself has sent, as long as something that it overlaps can be on the air.
        self._own: dict[int, list[tuple[float, float]]] = {}
        self._capture = capture
        self._luck = Draws(world, "capture")

    def begin(self, one: Message) -> None:
        """Put a transmission on the air, now."""
        if self._slotted:
            start = float(one.slot)
            end = start + one.length / self._longest
        else:
            start = self._env._now
            end = start + one.length
        state = self._common
        if state is not None:
            if state.until <= start:
                # As in `ReceiverState.begin`, without the call.
                state.until = one.end = end
                state.alone = one
            else:
                state.begin(one, start, end)
        else:
            self._begin_apart(one, start, end)
        if self._half_duplex:
            one.start, one.end = start, end
            recent = start - (1.0 if self._slotted else self._longest)
            kept = [span for span in self._own.get(one.sender, ()) if span[1] > recent]
            self._own[one.sender] = [*kept, (start, end)]

    def _begin_apart(self, one: Message, start: float, end: float) -> None:
        sender, wanted = one.sender, set(one.receivers)
        made = {}
        for place in self._near(sender):
            reception = Reception(sender)
            self._state(place).begin(reception, start, end)
            if place in wanted:
                made[place] = reception
        one.at_places = made

    def _near(self, sender: int) -> list[int]:
        """Places where a sender is heard."""
        near = self._earshot.get(sender)
        if near is None:
            links = self._links
            near = list(range(links.agents)) if sender == LEARNER else links.of(sender).tolist()
            self._earshot[sender] = near
        return near

    def _state(self, place: int) -> ReceiverState:
        state = self._states.get(place)
        if state is None:
            state = self._states[place] = ReceiverState()
        return state

    @property
    def is_plain(self) -> bool:
        """Whether everybody hears the same, so that all have heard a transmission that met no other."""
        return self._common is not None and not self._half_duplex

    def hears(self, one: Message, receiver: int) -> bool:
        """Whether a receiver has heard a transmission, which ends now; to be asked once."""
        if self._half_duplex and self._was_sending(receiver, one.start, one.end):
            return False
        received = one if one.at_places is None else one.at_places[receiver]
        if not other_than(receiver, received.others):
            return True
        if not self._capture or other_than(receiver, received.before):
            return False
        return next(self._luck.of(one.sender)) < self._capture

    def _was_sending(self, agent: int, start: float, end: float) -> bool:
        return any(span[0] < end and span[1] > start for span in self._own.get(agent, ()))

    @property
    def is_busy(self) -> Callable[[int, float], bool]:
        """Whether a sender hears someone else, by sender and time."""
        return self._common.is_busy if self._common is not None else self._is_busy_there

    def _is_busy_there(self, sender: int, now: float) -> bool:
        state = self._states.get(sender)
        return state is not None and state.is_busy(sender, now)
