"""What the parts of the engine share: turns at one instant, messages, and what they see of the run."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Protocol

import simpy

from p2psim.core.errors import InputError
from p2psim.network.order import OTHER, Key
from p2psim.network.spec import Ended, RunningNetwork, Steps


def exactly(env: simpy.Environment, moment: float) -> Steps:
    """Wait until a moment that is now or to come, to the last bit.

    If it is now, because the time to wait for is too short to move the clock, it is an appointment all the same: what
    goes on at this instant is done first.

    A timeout of ``moment - now`` may miss it: rounding makes ``now + (moment - now)`` another number in 3 % of random
    pairs. From half way on the difference is exact (Sterbenz 1974), so that a second timeout meets it.

    Raises
    ------
    InputError
        If the moment is past, or no number.
    """
    if not moment >= env.now:
        raise InputError(f"a moment to wait for must be {env.now} or later, which is now; got {moment}")
    if moment == env.now:
        yield env.timeout(0)
    while env.now < moment:
        delay = moment - env.now
        if env.now + delay != moment:
            delay /= 2
        yield env.timeout(delay)


def begin(env: simpy.Environment, steps: Steps) -> None:
    """Start a process now, and not when SimPy comes to it: what it does before its first wait is done in this call.

    So what an event brings about at its own instant follows it at once, depth first, as a function that is called; only
    what takes time becomes a process of SimPy.
    """
    for first in steps:
        env.process(_go_on(first, steps))
        return


def _go_on(first: simpy.Event, steps: Steps) -> Steps:
    yield first
    yield from steps


class Turns:
    """Lets what is due at one instant happen in the order of the model (`p2psim.network.order`), not of SimPy's queue.

    Whoever has waited for a moment takes a turn before it acts. Mostly nothing else is due then, and it goes on.
    Otherwise it waits until SimPy has nothing left to do at this instant, so that all that is due has come: the
    smallest key goes first. The next goes when SimPy has nothing left to do again, so that all that followed is done.
    """

    def __init__(self, env: simpy.Environment):
        self._env = env
        self._waiting: list[tuple[Key, int, simpy.Event]] = []
        self._taken = 0

    def take(self, *key: int) -> Steps:
        """Wait for one's turn at this instant."""
        env = self._env
        if env.peek() > env.now:
            return
        turn = env.event()
        if not self._waiting:
            env.process(self._call())
        heappush(self._waiting, (key, self._taken, turn))
        self._taken += 1
        yield turn

    def _call(self) -> Steps:
        """Call those who wait, one after the other."""
        env = self._env
        while self._waiting:
            yield env.timeout(0)
            if env.peek() > env.now:
                _, _, turn = heappop(self._waiting)
                turn.succeed()


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
