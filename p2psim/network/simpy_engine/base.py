"""What the parts of the engine share: messages, and what they see of the run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from p2psim.network.order import OTHER
from p2psim.network.simpy_engine.turns import Turns
from p2psim.network.spec import Ended, RunningNetwork, Steps


@dataclass(slots=True)
class Message:
    """What an agent, or the learner, sends.

    Attributes
    ----------
    sender : int
    receivers : sequence of int
    seq : int
        Number of the send.
    version, release : int
    heard, lost : callable
        Called when it has ended at a receiver.
    """

    sender: int
    receivers: Sequence[int]
    seq: int
    version: int
    release: int
    heard: Ended
    lost: Ended


@dataclass(slots=True)
class Transmission:
    """A message that is sent, or sent again, to some of its receivers.

    Attributes
    ----------
    message : Message
    receivers : sequence of int
    length : float
        Airtime.
    again : int
        How often the message was sent to the receiver before. Draws of what is sent again have streams of their own, so
        that they move no other draw.
    arrived : bool
        Whether the receiver has it already: then only the acknowledgement was lost.
    paths : sequence of (float, bool)
        On a shared medium, for each receiver: latency, and whether it is lost on its way.
    """

    message: Message
    receivers: Sequence[int]
    length: float
    again: int = 0
    arrived: bool = False
    paths: Sequence[tuple[float, bool]] = ()

    @property
    def lane(self) -> int:
        """Which of the sender's streams its draws come from."""
        return 1 if self.again else 0


class Run(RunningNetwork, Protocol):
    """A run as its parts see it: the network that exchanges see, and what follows.

    Attributes
    ----------
    turns : Turns
    """

    turns: Turns

    def write(
        self, kind: int, agent: int, peer: int, version: int, cause: int, release: int, outcome: int
    ) -> int:
        """Write an event of this moment, unless the run is over; returns its number."""

    def wait(self, delay: float, agent: int, number: int = 0, kind: int = OTHER, peer: int = 0) -> Steps:
        """Let a time pass, and then wait for one's turn; no wait at all if it is 0."""

    def not_beyond_end(self, time: float) -> float:
        """A moment at a regular time, or the end of the run where rounding alone puts it beyond."""

    def arrive(self, message: Message, receiver: int) -> None:
        """Deliver a message, hold it, or drop it if the receiver is offline."""

    def fail(self, message: Message, receiver: int, outcome: int) -> None:
        """Drop a message on its way to one receiver."""

    def retry(self, message: Message, receiver: int, outcome: int) -> None:
        """Write that a message is sent again to one receiver, and why."""

    def deactivate(self, agent: int) -> None:
        """Take note that an agent makes no release any more."""
