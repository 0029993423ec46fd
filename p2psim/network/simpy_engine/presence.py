"""Who is online: absences are processes, and messages wait for those who come back."""

from collections.abc import Callable, Iterable

import numpy as np

from p2psim.core.events import JOIN, LEARNER, LEAVE, NOBODY, NONE, OFFLINE, OK
from p2psim.network.availability import AnyAvailability
from p2psim.network.order import PRESENCE
from p2psim.network.simpy_engine.base import Message, Run
from p2psim.network.simpy_engine.turns import exactly
from p2psim.network.spec import Steps


class Presence:
    """Who is online, in one run.

    Attributes
    ----------
    present : bytearray, shape (n + 1,)
        1 where an agent is online; the last entry, which index −1 finds, is the learner's.
    returned, left, gone : list of callable
        Called with an agent that has come back, has left, or is gone for good.
    """

    def __init__(self, run: Run, availability: AnyAvailability):
        agents = run.links.agents
        self._run = run
        self.present = bytearray(b"\x01") * (agents + 1)
        self.returned: list[Callable[[int], None]] = []
        self.left: list[Callable[[int], None]] = []
        self.gone: list[Callable[[int], None]] = []
        # For how many reasons each is offline, who is gone for good, and what is held for those who come back.
        self._reasons = [0] * (agents + 1)
        self._gone = bytearray(agents + 1)
        self._held: dict[int, list[Message]] = {}
        self._rejoin, self._holds = availability.rejoin, availability.messages == "held"
        self._random: dict[int, np.random.Generator] = {}
        self._calls = 0

    def alternate(self, agents: tuple[int, ...], begins: bool, turns: Iterable[float]) -> None:
        """Let agents leave and come back together, for one reason among several; see `Attendance`."""
        if not begins:
            for agent in agents:
                self._leave(agent)
        self._run.env.process(self._alternate(agents, begins, turns, self._calls))
        self._calls += 1

    def _alternate(self, agents: tuple[int, ...], online: bool, turns: Iterable[float], number: int) -> Steps:
        """A reason to be offline: agents leave and come back by turns, and are gone if it ends while they are away."""
        run, first = self._run, min(agents, default=LEARNER)
        for moment in turns:
            yield from exactly(run.env, run.not_beyond_end(moment))
            yield from run.turns.take(PRESENCE, first, number)
            online = not online
            for agent in agents:
                if online:
                    self._return(agent)
                else:
                    self._leave(agent)
        if not online:
            for agent in agents:
                self._go(agent)

    def _leave(self, agent: int) -> None:
        self._reasons[agent] += 1
        if self._reasons[agent] == 1:
            self.present[agent] = 0
            self._run.write(LEAVE, agent, NOBODY, NONE, NONE, NONE, OK)
            for tell in self.left:
                tell(agent)

    def _return(self, agent: int) -> None:
        """Come back, if no other reason keeps the agent away, with what was held for it."""
        self._reasons[agent] -= 1
        if self._reasons[agent]:
            return
        self.present[agent] = 1
        peer, version = (NOBODY, NONE) if agent == LEARNER else self._model_on_return(agent)
        self._run.write(JOIN, agent, peer, version, NONE, NONE, OK)
        for message in self._held.pop(agent, ()):
            self._run.arrive(message, agent)
        for tell in self.returned:
            tell(agent)

    def _model_on_return(self, agent: int) -> tuple[int, int]:
        """Peer and version of the model that an agent comes back with."""
        if self._rejoin == "stale":
            return NOBODY, NONE
        if self._rejoin == "reset":
            return NOBODY, 0
        run = self._run
        online = [peer for peer in run.neighbours(agent) if self.present[peer]]
        if not online:
            return NOBODY, NONE
        if agent not in self._random:
            self._random[agent] = run.streams.generator("rejoin", agent)
        peer = online[int(self._random[agent].integers(len(online)))]
        return peer, run.commits if peer == LEARNER else run.versions[peer]

    def _go(self, agent: int) -> None:
        """Be gone for good: what is held for the agent is lost."""
        if self._gone[agent]:
            return
        self._gone[agent] = 1
        for message in self._held.pop(agent, ()):
            self._run.fail(message, agent, OFFLINE)
        for tell in self.gone:
            tell(agent)
        if agent != LEARNER:
            self._run.deactivate(agent)
            self._run.settle()

    def takes_in(self, receiver: int) -> bool:
        """Whether a message that reaches a receiver does not fail there: it is online, or will fetch it."""
        return bool(self.present[receiver]) or (self._holds and not self._gone[receiver])

    def hold(self, message: Message, receiver: int) -> None:
        """Keep a message until its receiver comes back."""
        self._held.setdefault(receiver, []).append(message)
