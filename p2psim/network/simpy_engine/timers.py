"""Events of SimPy that are used again and again: making one costs more than what it is made for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heappush
from typing import Any, Protocol

import simpy
from simpy.events import NORMAL, EventPriority

__all__ = [
    "LAST",
    "NORMAL",
    "Action",
    "ClockEvents",
    "Ended",
    "Endpoint",
    "Message",
    "PendingAnswer",
    "Scheduled",
    "moment",
]

#: Called when a message ends at a receiver: (sender, receiver, seq of that event, version, release).
Ended = Callable[[int, int, int, int, int], None]

#: Priority of what happens after all else of the same time.
LAST = EventPriority(NORMAL + 1)


class Scheduled(simpy.Event):
    """Something that will be done: an event that has its value from the start, and calls one function with itself.

    It may be set again, for something else, once that function has been called. SimPy's own loop sees it as an event
    like others; `World.run` calls ``callback`` at once.
    """

    _ok = True
    _value = None
    callback: Callable[[Any], None]

    @property
    def callbacks(self) -> list[Callable[[Any], None]]:
        """What SimPy calls."""
        return [self.callback]

    @callbacks.setter
    def callbacks(self, _: object) -> None:
        """SimPy marks what is done; this is not needed here."""


class Action(Scheduled):
    """A function that will be called."""

    def __init__(self, act: Callable[[], None]):
        self.act = act

    def callback(self, _: Action) -> None:
        """Call it."""
        self.act()


class PendingAnswer(Scheduled):
    """An answer that an owner owes to a query, and the event of its giving."""

    def __init__(self, callback: Callable[[Any], None], owner: int, query: int, version: int):
        self.callback = callback
        self.owner = owner
        self.query = query
        self.version = version


class Reception:
    """A transmission as it is received at one place.

    Attributes
    ----------
    sender : int
    end : float
    before, others : tuple of int
        Other senders, at most two of them, that were on the air when it began, and in all. Two are enough to know
        whether there is one beside any receiver, who does not disturb itself.
    """

    __slots__ = ("before", "end", "others", "sender")

    def __init__(self, sender: int):
        self.sender = sender
        self.end = 0.0
        self.before: tuple[int, ...] = ()
        self.others: tuple[int, ...] = ()


class Endpoint(Protocol):
    """Is called when a message ends at a receiver: the world, or what sends again first."""

    def arrive(self, message: Message, receiver: int) -> None:
        """Take in a message that has reached a receiver."""

    def fail(self, message: Message, receiver: int, outcome: int) -> None:
        """Take note that a message has not reached a receiver, and why."""


class Message(Scheduled):
    """A message on its way to receivers, which is also the event of what comes next for it (``callback``).

    Attributes
    ----------
    sender : int
    receivers : sequence of int
    seq : int
        Of the send.
    version, release : int
    heard, lost : callable
        What the world calls at its end at each receiver.
    lane : int
        Which of the sender's streams to draw from: 0, and 1 for what is sent again, so that this moves no draw of what
        is sent for the first time.
    length : float
        Airtime on a shared medium, of which the attributes below are as well.
    fates : list of (float, bool), optional
        For each receiver: how long the message travels after its airtime, and whether it is lost on its way. None where
        it arrives everywhere at the end of its airtime.
    tries : int
        How often the sender has found the medium busy.
    slot : int
        Number of the slot that it takes, where there are slots.
    start, end : float
        When it is on the air, once it is.
    before, others : tuple of int
        As in `Reception`, where everybody hears the same.
    at_places : mapping from receiver to Reception, optional
        How it is received at each place, where that differs.
    """

    # What most messages leave as it is stands here: a message is made faster so.
    tries = slot = lane = 0
    length = start = end = 0.0
    fates: list[tuple[float, bool]] | None = None
    before: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    at_places: dict[int, Reception] | None = None

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

    def to(self, receiver: int, lane: int | None = None) -> Message:
        """The message to one of its receivers alone; a new one where a lane is given, or there are several."""
        if lane is None and len(self.receivers) == 1:
            return self
        message = Message(
            self.sender, (receiver,), self.seq, self.version, self.release, self.heard, self.lost
        )
        if lane is not None:
            message.lane = lane
        return message

    def fail_at_all(self, ends: Endpoint, outcome: int) -> None:
        """Let it fail at all receivers."""
        for receiver in self.receivers:
            ends.fail(self, receiver, outcome)


def moment(env: simpy.Environment, time: float) -> simpy.Event:
    """Event of a moment that is now or to come, for a process to wait for; a delay would be added up, and rounded."""
    event = simpy.Event(env)
    event._ok, event._value = True, None
    heappush(env._queue, (time, NORMAL, next(env._eid), event))
    return event


class ClockEvents(Scheduled):
    """The ticks of all agents: one event, which is set again for the next tick when it has rung.

    So SimPy's queue holds one entry for all clocks, and stays short.

    Parameters
    ----------
    env : simpy.Environment
    ticks : iterator of (float, int)
        Time and agent of each, in order, without end.
    present : bytearray
        Whether each agent is there; who is away does not hear its clock.
    misses : list of callable, optional
        For each agent, whether it misses its next tick; asked for each, also for one who is away.
    tick : callable
        Called with the agent at each tick that it hears.
    """

    def __init__(
        self,
        env: simpy.Environment,
        ticks: Iterator[tuple[float, int]],
        present: bytearray,
        misses: Sequence[Callable[[], bool]] | None,
        tick: Callable[[int], None],
    ):
        queue, numbers = env._queue, env._eid
        time, agent = next(ticks)

        def callback(_: Any) -> None:
            nonlocal time, agent
            if (misses is None or not misses[agent]()) and present[agent]:
                tick(agent)
            time, agent = next(ticks)
            # The time itself, not a delay: the sum of clock and gap must not be rounded twice.
            heappush(queue, (time, NORMAL, next(numbers), self))

        self.callback = callback
        heappush(queue, (time, NORMAL, next(numbers), self))
