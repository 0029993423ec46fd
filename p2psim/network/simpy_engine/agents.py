"""Agents: each is a process that sleeps until its Poisson clock ticks; so are what it computes, and its absences."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from p2psim.core.events import BEGIN, JOIN, LEARNER, LEAVE, NOBODY, NONE, OFFLINE, OK
from p2psim.network.availability import AnyAvailability
from p2psim.network.channels.draws import UNIT
from p2psim.network.order import COMPUTING, PRESENCE, WAKE
from p2psim.network.section import Network
from p2psim.network.simpy_engine.base import Message, Run, exactly
from p2psim.network.spec import Computed, Steps


def agent(run: Run, number: int, act: Callable[[int], None]) -> Steps:
    """An agent: at each tick of its clock it acts, unless it is offline or misses the tick."""
    for gap in gaps(run, number):
        yield run.env.timeout(gap)
        yield from run.turns.take(WAKE, number)
        misses = run.misses(number)
        if run.present[number] and not misses:
            act(number)


def gaps(run: Run, agent: int) -> Iterator[float]:
    """Times between the ticks of an agent's clock: independent, exponential, of its rate."""
    rate = float(run.rates[agent])
    for u in run.draws("clocks", agent, UNIT):
        yield -math.log(1.0 - u) / rate


@dataclass(slots=True)
class Work:
    """What an agent computes.

    Attributes
    ----------
    agent : int
    version : int
        Of the model that it has read.
    begin : int
        Number of the event with which it began.
    done, cancelled : callable
        As of `RunningNetwork.work`.
    until : float
        When it is done, unless it is interrupted.
    rest : float or None
        Time that is left of it, while its agent is offline.
    stretch : int
        Number of times that it has begun, gone on, or stopped.
    """

    agent: int
    version: int
    begin: int
    done: Computed
    cancelled: Computed
    until: float = 0.0
    rest: float | None = None
    stretch: int = 0


class Computing:
    """Who computes what, in one run.

    Parameters
    ----------
    run : Run
    network : Network
    """

    def __init__(self, run: Run, network: Network):
        self._run, compute = run, network.compute
        self._works: dict[int, Work] = {}
        self._times: list[Iterator[float]] | None = None
        if compute is None:
            return
        agents = range(network.links.agents)
        self._times = [run.draws("compute", agent, compute.quantity) for agent in agents]
        self._factors = compute.factors(network.known_members, network.work).tolist()
        self._peer = LEARNER if network.links.star else NOBODY
        run.presence.left.append(self._pause if compute.absence == "interrupt" else self._cancel)
        run.presence.returned.append(self._resume)
        run.presence.gone.append(self._cancel)

    def work(self, agent: int, version: int, cause: int, done: Computed, cancelled: Computed) -> None:
        """Let an agent compute; see `RunningNetwork.work`."""
        if self._times is None:
            done(cause)
            return
        begin = self._run.write(BEGIN, agent, NOBODY, version, cause, NONE, OK)
        work = self._works[agent] = Work(agent, version, begin, done, cancelled)
        self._go_on(work, next(self._times[agent]) * self._factors[agent])

    def is_computing(self, agent: int) -> bool:
        """Whether an agent computes, or will go on to when it returns."""
        return agent in self._works

    def stop(self, agent: int) -> int:
        """Let an agent stop; returns the number of the event with which it began."""
        work = self._works.pop(agent)
        work.stretch += 1
        return work.begin

    def _go_on(self, work: Work, time: float) -> None:
        """Let a work go on for a time."""
        work.until, work.rest = self._run.env.now + time, None
        work.stretch += 1
        self._run.begin(self._stretch(work, time))

    def _stretch(self, work: Work, time: float) -> Steps:
        """An agent that computes, until it is done, unless something comes between."""
        stretch = work.stretch
        yield from self._run.wait(time, work.agent, work.begin, COMPUTING)
        if work.stretch == stretch:
            del self._works[work.agent]
            work.done(work.begin)

    def _pause(self, agent: int) -> None:
        """Keep what is left of the work of an agent that leaves."""
        work = self._works.get(agent)
        if work is not None:
            work.rest = work.until - self._run.env.now
            work.stretch += 1

    def _resume(self, agent: int) -> None:
        """Let the work of an agent that returns go on."""
        work = self._works.get(agent)
        if work is not None and work.rest is not None:
            self._go_on(work, work.rest)

    def _cancel(self, agent: int) -> None:
        """Drop the work of an agent that has left."""
        work = self._works.get(agent)
        if work is not None:
            begin = self.stop(agent)
            work.cancelled(self._run.drop(agent, self._peer, work.version, begin, OFFLINE))


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
