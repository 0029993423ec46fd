"""Events as the verifier of a stream reads them."""

from dataclasses import dataclass
from typing import NamedTuple

from p2psim.core import events as ev
from p2psim.core.errors import SimulationError


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
