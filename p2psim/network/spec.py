"""What exchanges, channels and availability see of a running network, and what exchanges say of themselves."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

import numpy as np

from p2psim.core.distributions import Distribution
from p2psim.core.events import OK
from p2psim.core.randomness import Streams
from p2psim.network.graph import Graph
from p2psim.network.members import Members
from p2psim.network.order import OTHER

if TYPE_CHECKING:
    import simpy

#: What a process of SimPy is made of: a generator of the events that it waits for.
Steps = Generator["simpy.Event", Any, None]

#: Called when a message ends at a receiver: (sender, receiver, number of that event, version, release).
Ended = Callable[[int, int, int, int, int], None]

#: Called when an agent has computed, with the number of the event that what follows names as its cause; or when it will
#: not compute any more, with the number of that event.
Computed = Callable[[int], None]


@dataclass(frozen=True)
class Conduct:
    """What agents on a graph do, as the verifier of events has it.

    Attributes
    ----------
    releases : {"commits", "sends", "wakers"}
        What makes their releases: commits; sends; or commits of those that woke, and not of those that answered.
    in_rounds : bool
        Whether they act in rounds: all wake at one moment, send once to all their neighbours, and commit together.
    has_deadline : bool
        Whether a round can close before all of its messages have ended.
    works_first : bool
        Whether agents that take time to compute do so before they send, and not when they have heard.
    blocks : bool
        Whether an agent that waits for an answer answers no other.
    """

    releases: Literal["commits", "sends", "wakers"] = "commits"
    in_rounds: bool = False
    has_deadline: bool = False
    works_first: bool = False
    blocks: bool = False


#: Each for itself, and every commit makes a release.
SINGLY: Final = Conduct()


class CompiledExchange(NamedTuple):
    """An exchange as the compiled engine takes it (`p2psim.network.compiled_engine.state`).

    Attributes
    ----------
    pattern : str
        What agents do: a key of its ``PATTERNS``.
    part : str
        The part of its kernels that does so.
    settings : mapping
        Values of fields of its state.
    arrays : mapping
        Arrays of a run.
    """

    pattern: str
    part: Literal["gossip", "request", "queries", "synchronous"]
    settings: Mapping[str, float] = {}
    arrays: Mapping[str, np.ndarray] = {}


class Attendance(Protocol):
    """Which agents are online.

    Attributes
    ----------
    returned, left, gone : list of callable
        Called with an agent that has come back, has left, or is gone for good.
    """

    returned: list[Callable[[int], None]]
    left: list[Callable[[int], None]]
    gone: list[Callable[[int], None]]

    def alternate(self, agents: tuple[int, ...], begins: bool, turns: Iterable[float]) -> None:
        """Let agents go offline and come back together, for one reason among several.

        An agent is online when no reason keeps it away.

        Parameters
        ----------
        agents : tuple of int
            −1 is the learner.
        begins : bool
            Whether they are online at first.
        turns : iterable of float
            Times at which they leave or come back, in order. If it ends while they are offline, they are gone for good.
        """

    def takes_in(self, receiver: int) -> bool:
        """Whether a message that reaches a receiver does not fail there: it is online, or will fetch it."""


class AnswerAgain(Protocol):
    """How an answer that was lost is given again with a new release."""

    @property
    def limit(self) -> int:
        """The most times that it is given again."""

    @property
    def backoff(self) -> float | Distribution:
        """Time from the loss to the next answer."""


class RunningNetwork(Protocol):
    """A network while it runs: what its parts read of it, and what they ask of it.

    Attributes
    ----------
    env : simpy.Environment
        SimPy's environment; ``env.now`` is the time, in mean clock periods.
    links : Graph
        The graph; of one that changes all links that there can be.
    members : Members
        Names, groups and numbers of the agents.
    rates : ndarray, shape (n,)
        Wakes of each agent per unit of time.
    streams : Streams
        Random streams of the replica: the only source of random numbers.
    updates : str
        Whether the algorithm updates a model on waking (``wake``) or on hearing another (``hear``).
    goes_on : bool
        Whether agents that may make no more releases go on without their data.
    answerer_releases : bool
        Whether an agent that answers in push-pull makes a release with its update.
    presence : Attendance
        Which agents are online.
    present : bytearray, shape (n + 1,)
        1 where an agent is online; the last entry, which index −1 finds, is the learner's.
    versions : list of int, shape (n,)
        Commits of each agent so far: the version of its model.
    commits : int
        Commits so far: the version of the learner's model.
    fresh : AnswerAgain or None
        How lost answers are given again.
    draws : callable
        Endless draws of a quantity, ``draws(purpose, agent, quantity, lane=0)``, each agent's from a stream of its own.
    """

    env: simpy.Environment
    links: Graph
    members: Members
    rates: np.ndarray
    streams: Streams
    updates: Any
    goes_on: bool
    answerer_releases: bool
    present: bytearray
    versions: list[int]
    commits: int
    draws: Callable[..., Iterator[float]]

    @property
    def presence(self) -> Attendance:
        """Which agents are online."""

    @property
    def fresh(self) -> AnswerAgain | None:
        """How lost answers are given again."""

    def neighbours(self, agent: int) -> Sequence[int]:
        """Neighbours of an agent at this moment, in rising order; not to be changed."""

    def linked(self, agent: int, peer: int) -> bool:
        """Whether two agents that some time are linked are so at this moment."""

    def start_clocks(self, act: Callable[[int], None]) -> None:
        """Start every agent; ``act`` is called with the agent at each tick of its clock that it does not miss."""

    def begin(self, steps: Steps) -> None:
        """Start a process of SimPy at once; what it does before its first wait is done in this call.

        ``env.process`` starts it too, when all that is going on at this instant is done.
        """

    def wait(self, delay: float, agent: int, number: int = 0, kind: int = OTHER) -> Steps:
        """Let a time pass in a process: ``yield from world.wait(delay, agent)``; no wait at all if it is 0.

        What is due at the same instant goes in the order of the model (`p2psim.network.order`), among waits by agent,
        number and kind. A bare ``yield world.env.timeout(delay)`` would go in the order of SimPy's queue.

        Parameters
        ----------
        delay : float
        agent : int
            Who acts after the wait.
        number : int
            Of the event that the wait belongs to, such as the delivery of a query.
        kind : int
            What is waited for; `OTHER` for an exchange of your own.
        """

    def until(self, time: float, agent: int, number: int = 0, kind: int = OTHER) -> Steps:
        """Wait in a process for a time that is now or to come, exactly; otherwise as `wait`.

        Moments at regular times are to be given as multiples of the interval (`p2psim.core.times`).
        """

    def wake(self, agent: int, outcome: int = OK) -> int:
        """Write that an agent's clock ticked; returns the number of the event."""

    def misses(self, agent: int) -> bool:
        """Whether an agent misses the wake that comes now; to be asked once for each."""

    def is_spent(self, agent: int) -> bool:
        """Whether an agent may make no more releases."""

    def release(self, agent: int) -> int:
        """Number of the release that an agent makes now, touching its data; `NONE` if it may make no more."""

    def send(
        self,
        sender: int,
        receivers: Sequence[int],
        version: int,
        cause: int,
        release: int,
        heard: Ended,
        lost: Ended,
    ) -> int:
        """Send one message to one or all neighbours; it ends at each receiver in ``heard`` or ``lost``, once.

        Parameters
        ----------
        sender : int
        receivers : sequence of int
        version : int
            Of the model that it carries; `NONE` for a question.
        cause, release : int
            Number of the event that caused it, and of the release that it carries; `NONE` where there is none.
        heard, lost : callable
            Called with sender, receiver, number of the event that ended it, version and release.
        """

    def commit(self, agent: int, peer: int, cause: int, release: int) -> int:
        """Write an update of a model (of the learner: agent −1), and end the run if it was the last."""

    def work(self, agent: int, version: int, cause: int, done: Computed, cancelled: Computed) -> None:
        """Let an agent compute, which takes the time of ``network.compute``; without that, ``done`` is called at once.

        An agent computes one thing at a time (`is_computing`). What it has computed names the beginning as its cause.

        Parameters
        ----------
        agent : int
        version : int
            Of the model that it reads now: its own, or of the learner's query.
        cause : int
            Number of the wake or the delivery that leads to it.
        done : callable
            Called with the number of the beginning, or with ``cause`` if there is no time to compute. The agent is
            online then.
        cancelled : callable
            Called with the number of the drop if the agent leaves before, and its work does not go on.
        """

    def is_computing(self, agent: int) -> bool:
        """Whether an agent computes, or will go on to when it returns."""

    def stop_work(self, agent: int) -> int:
        """Let an agent that computes stop, and neither be done nor cancelled; returns the number of the beginning."""

    def update_and_send(
        self, agent: int, receivers_of: Sequence[Iterator[Sequence[int]]], ended: Ended
    ) -> None:
        """Let an agent wake, compute, update its model and send it.

        That is `wake`, `work`, `release`, `commit` and `send`. The wake of an agent that computes is refused; an agent
        without a neighbour at that moment wakes ``alone``, and that is all. Who has none when it has computed sends
        nothing.
        """

    def drop(self, agent: int, peer: int, version: int, cause: int, outcome: int) -> int:
        """Write that something an agent was to do will not be done."""

    def settle(self) -> None:
        """End the run if no agent may make a release any more, and none is on its way."""

    def keep_going(self) -> None:
        """Let the run not end for want of releases before `may_end` has been called as often."""

    def may_end(self) -> None:
        """Take back one `keep_going`."""
