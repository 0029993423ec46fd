"""Events and messages as the verifier of a stream reads them, and invariants of what is sent again."""

from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from p2psim.core import events as ev
from p2psim.core.errors import SimulationError

T = TypeVar("T")


class EventsError(SimulationError):
    """A stream of events breaks an invariant."""


class Event(NamedTuple):
    """One event; fields as in `p2psim.core.events.EVENT`."""

    seq: int
    time: float
    kind: int
    agent: int
    peer: int
    version: int
    cause: int
    release: int
    outcome: int

    def known(self, value: T | None, what: str) -> T:
        """A value that must be there."""
        self.must(value is not None, what)
        assert value is not None
        return value

    def must(self, holds: bool, what: str) -> None:
        """Raise, naming this event, unless an invariant holds."""
        if not holds:
            name = ev.KINDS[self.kind] if self.kind < len(ev.KINDS) else str(self.kind)
            raise EventsError(f"event {self.seq} ({name} of agent {self.agent} at time {self.time}): {what}")


@dataclass
class Heard:
    """A delivery from agent to agent, and what it may still cause."""

    delivery: Event
    is_answer: bool
    answers: bool = True
    commits: bool = True


@dataclass
class OpenMessage:
    """A message that may still end at some receivers."""

    send: Event
    receivers: set[int]
    is_answer: bool = False


@dataclass(frozen=True)
class Resending:
    """What a channel may send again.

    Attributes
    ----------
    retries : int
        The most times that a message is sent again, with the same bytes, to a receiver.
    loses_acknowledgements : bool
        Whether also what has arrived may be sent again.
    fresh : int
        The most times that an owner answers a query again, with a new release, because its answer was lost.
    """

    retries: int = 0
    loses_acknowledgements: bool = False
    fresh: int = 0


#: Of a channel on which what is lost is gone.
NEVER: Final = Resending()


class Retries:
    """Counts how often each message was sent again to each receiver.

    Where acknowledgements are lost it remembers each delivery, since the sender may send again for ever so long after.
    """

    def __init__(self, allowed: Resending):
        self._allowed = allowed
        # By (seq of the send, receiver): of what is under way, and of what has arrived.
        self._counts: dict[tuple[int, int], int] = {}
        self._arrived: dict[tuple[int, int], tuple[int, int, int]] = {}

    def end(self, event: Event) -> None:
        """Take note that a message has ended at a receiver."""
        place = event.cause, event.agent
        # What was held for a receiver that is gone for good had come to its place.
        has_come = event.kind == ev.DELIVER or event.outcome == ev.OFFLINE
        if has_come and self._allowed.loses_acknowledgements:
            self._arrived[place] = event.peer, event.version, event.release
        else:
            self._counts.pop(place, None)

    def check(self, event: Event, message: OpenMessage | None, may_be_held: bool) -> None:
        """Check a retry of a message, which is None if it has ended everywhere.

        One that is held for a receiver that is offline has come to its place: its acknowledgement may be lost, too.
        """
        place, must = (event.cause, event.peer), event.must
        must(self._allowed.retries > 0, "on this channel nothing is sent again")
        must(
            event.outcome in (*ev.FAILURES, ev.UNACKNOWLEDGED),
            "its outcome is not why a message is sent again",
        )
        if message is not None and event.peer in message.receivers:
            must(event.outcome != ev.UNACKNOWLEDGED or may_be_held, "the message has not arrived there")
            sent = message.send.agent, message.send.version, message.send.release
        else:
            must(place in self._arrived, "no such message was sent, or it has ended there")
            sent = self._arrived[place]
            is_retried = event.outcome == ev.UNACKNOWLEDGED or self._counts.get(place, 0) > 0
            must(is_retried, "the message has arrived there")
        must(sent == (event.agent, event.version, event.release), "it is not the message that was sent")
        self._counts[place] = count = self._counts.get(place, 0) + 1
        must(count <= self._allowed.retries, f"it is sent again more than {self._allowed.retries} times")


class FreshAnswers:
    """Knows which query an owner may answer again."""

    def __init__(self, allowed: Resending):
        self._most = allowed.fresh
        # Of each owner: seq of its last answer, the query's delivery, how often it was answered.
        self._last: dict[int, tuple[int, Event, int]] = {}
        self._reopened: dict[int, int] = {}

    def answer(self, event: Event, query: Event) -> None:
        """Take note of an answer to a query that was delivered."""
        if not self._most:
            return
        last = self._last.get(event.agent)
        count = last[2] + 1 if last is not None and last[1].seq == query.seq else 1
        self._last[event.agent] = event.seq, query, count
        self._reopened.pop(event.agent, None)

    def lose(self, owner: int, seq: int) -> Event | None:
        """Take note that an answer was lost; returns the query that may then be answered again."""
        last = self._last.get(owner)
        if last is None or last[0] != seq or last[2] > self._most:
            return None
        self._reopened[owner] = last[1].seq
        return last[1]

    def hear(self, owner: int) -> int | None:
        """Take note of a newer query; returns the older one that may not be answered again any more."""
        self._last.pop(owner, None)
        return self._reopened.pop(owner, None)
