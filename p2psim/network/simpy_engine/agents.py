"""Agents: each is a process that sleeps until its Poisson clock ticks; and so is what an agent computes."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from p2psim.core.events import BEGIN, LEARNER, NOBODY, NONE, OFFLINE, OK
from p2psim.network.channels.draws import UNIT
from p2psim.network.order import COMPUTING, WAKE
from p2psim.network.section import Network
from p2psim.network.simpy_engine.base import Run
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
