"""Who is there, and what becomes of messages meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import simpy

from p2psim.core.events import LEARNER, NOBODY, NONE, OFFLINE
from p2psim.network.spec import RunningNetwork

if TYPE_CHECKING:
    from p2psim.network.availability import AnyAvailability
    from p2psim.network.simpy_engine.timers import Message


class Host(RunningNetwork, Protocol):
    """What a running network also does for those who leave and come back."""

    def leave(self, agent: int) -> None:
        """Write that an agent, or the learner, leaves."""

    def join(self, agent: int, peer: int, version: int) -> None:
        """Write that an agent comes back, and the model that it fetches from a peer."""

    def deactivate(self, agent: int) -> None:
        """Take note that an agent makes no release any more."""


class Presence:
    """Who of a world is there.

    Attributes
    ----------
    present : bytearray, shape (n + 1,)
        1 where an agent is there; the last entry, which index −1 finds, is the learner's.
    returned : list of callable
        Called with an agent that has come back.
    """

    def __init__(self, world: Host, availability: AnyAvailability):
        agents = world.links.agents
        self._world = world
        self.present = bytearray(b"\x01") * (agents + 1)
        self.returned: list[Callable[[int], None]] = []
        self._absences = [0] * (agents + 1)
        self._gone = bytearray(agents + 1)
        self._rejoin, self._keeps = availability.rejoin, availability.messages == "held"
        self._held: dict[int, list[Message]] = {}
        self._askers: dict[int, np.random.Generator] = {}

    def takes_in(self, receiver: int) -> bool:
        """Whether a message that reaches the place of a receiver does not fail there: it is there, or will fetch it."""
        return bool(self.present[receiver]) or (self._keeps and not self._gone[receiver])

    def hold(self, message: Message, receiver: int) -> None:
        """Keep a message until its receiver, which is away, comes back."""
        self._held.setdefault(receiver, []).append(message)

    def alternate(self, agents: tuple[int, ...], begins: bool, turns: Iterator[float]) -> None:
        """Let agents come and go together, for one reason among several: each is there when none keeps it away.

        Parameters
        ----------
        agents : tuple of int
            −1 is the learner.
        begins : bool
            Whether they are there at first.
        turns : iterator of float
            When they come or go, in order. If it ends while they are away, they are gone for good.
        """
        if not begins:
            for agent in agents:
                self._leave(agent)
        self._world.env.process(self._turn(agents, begins, turns))

    def _turn(
        self, agents: tuple[int, ...], present: bool, turns: Iterator[float]
    ) -> Generator[simpy.Event, Any, None]:
        for turn in turns:
            yield self._world.until(turn)
            present = not present
            for agent in agents:
                (self._join if present else self._leave)(agent)
        if not present:
            for agent in agents:
                self._go(agent)

    def _leave(self, agent: int) -> None:
        self._absences[agent] += 1
        if self._absences[agent] == 1:
            self.present[agent] = 0
            self._world.leave(agent)

    def _join(self, agent: int) -> None:
        self._absences[agent] -= 1
        if self._absences[agent]:
            return
        self.present[agent] = 1
        peer, version = (NOBODY, NONE) if agent == LEARNER else self._model_on_return(agent)
        self._world.join(agent, peer, version)
        for message in self._held.pop(agent, ()):
            self._world.arrive(message, agent)
        for tell in self.returned:
            tell(agent)

    def _model_on_return(self, agent: int) -> tuple[int, int]:
        """Peer and version of the model that an agent comes back with."""
        if self._rejoin == "stale":
            return NOBODY, NONE
        if self._rejoin == "reset":
            return NOBODY, 0
        world = self._world
        there = [peer for peer in world.links.of(agent).tolist() if self.present[peer]]
        if not there:
            return NOBODY, NONE
        if agent not in self._askers:
            self._askers[agent] = world.streams.generator("rejoin", agent)
        peer = there[int(self._askers[agent].integers(len(there)))]
        return peer, world.commits if peer == LEARNER else world.versions[peer]

    def _go(self, agent: int) -> None:
        """Be gone for good: what is held for it is lost."""
        if self._gone[agent]:
            return
        self._gone[agent] = 1
        for message in self._held.pop(agent, ()):
            self._world.fail(message, agent, OFFLINE)
        if agent != LEARNER:
            self._world.deactivate(agent)
            self._world.settle()
