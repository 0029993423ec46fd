"""Agents on a graph send their models to all neighbours: each when its clock ticks, or all in rounds."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.events import LEARNER, NEIGHBOURS, NOBODY, NONE, OFFLINE, SPENT, SUPERSEDED
from p2psim.core.options import Positive
from p2psim.network.exchanges.protocol import Exchange, hear
from p2psim.network.exchanges.rounds import RoundTimes
from p2psim.network.graph import Graph
from p2psim.network.order import DEADLINE, ROUND
from p2psim.network.spec import CompiledExchange, Conduct, RunningNetwork, Steps


class Broadcast(Exchange):
    """On waking, an agent updates its model (a release) and sends it once, to all its neighbours.

    The send is one event; each neighbour that it reaches is one delivery. On a graph that changes it goes to the
    neighbours of that moment; an agent that has none wakes ``alone``, and does nothing.
    """

    kind: Literal["broadcast"] = "broadcast"

    sends_to_all: ClassVar[bool] = True
    computes: ClassVar[bool] = True

    def compiled(self, _: Graph) -> CompiledExchange:
        """Form for the compiled engine."""
        return CompiledExchange("broadcast", "gossip")

    def start(self, world: RunningNetwork) -> None:
        """Start the agents' clocks."""
        neighbours = [_all_of(world, agent) for agent in range(world.links.agents)]

        def tick(agent: int) -> None:
            world.update_and_send(agent, neighbours, hear)

        world.start_clocks(tick)


def _all_of(world: RunningNetwork, agent: int) -> Iterator[Sequence[int]]:
    """An agent's neighbours at the moment of each of its sends."""
    while True:
        yield world.neighbours(agent)


class Synchronous(Exchange):
    """In each round all agents send their models to all their neighbours, and then update with what they have heard.

    A round begins when the one before has closed, and at the earliest an interval after that one began. Every agent
    that is there wakes, and sends its model once, to all its neighbours. The round closes when none of its messages is
    on its way any more; with a deadline it closes then at the latest, and a message that comes later arrives, and is
    not used. When it closes, every agent that took part commits, in the order of agents, unless it is away.

    Where the algorithm updates a model on waking (``updates: wake`` of the network), the update touches data before the
    model is sent, and the send makes the release: a gradient, then gossip. Where it updates on hearing, the commit
    makes the release: gossip, then a gradient. What is sent has the version from before the commit in both cases.

    An agent that may make no more releases, and does not go on without its data, sends nothing, and does not update.
    On a graph that changes, an agent sends to its neighbours of that moment; one that has none updates alone, and its
    commit makes the release.

    Where agents take time to compute (``network.compute``) and update on waking, they compute before they send; who has
    not sent at the deadline stops, and takes part no more. Where they update on hearing, they compute when the round
    closes, and the next one begins when all are done.
    """

    kind: Literal["synchronous"] = "synchronous"
    interval: Positive = Field(1.0, description="least time between the beginnings of two rounds")
    deadline: Positive | None = Field(
        None, description="time after which a round closes without the messages that have not come"
    )

    has_clocks: ClassVar[bool] = False
    in_rounds: ClassVar[bool] = True
    sends_to_all: ClassVar[bool] = True
    updates_on_hearing: ClassVar[bool] = True
    computes: ClassVar[bool] = True

    @property
    def round_length(self) -> float:
        """Least time between two rounds."""
        return self.interval

    def needs_delivery(self, _: str) -> bool:
        """Whether there is no commit without a message that arrives: an agent that hears nobody commits, too."""
        return False

    def names_releases(self, updates: str) -> bool:
        """Whether messages name the releases that they carry: where sends make them."""
        return updates == "wake"

    def conduct(self, updates: str, answerer_releases: bool) -> Conduct:
        """What agents do, for the verifier of events."""
        return replace(super().conduct(updates, answerer_releases), has_deadline=self.deadline is not None)

    def compiled(self, links: Graph) -> CompiledExchange:
        """Form for the compiled engine."""
        settings = {"interval": self.interval, "deadline": self.deadline or 0.0}
        arrays: dict[str, np.ndarray] = {"wakes": np.zeros(links.agents, np.int64)}
        arrays["asked"] = np.zeros(links.agents, np.uint8)
        return CompiledExchange("synchronous", "synchronous", settings, arrays)

    def start(self, world: RunningNetwork) -> None:
        """Start the rounds."""
        world.env.process(_AgentRounds(self, world).go_on())


class _AgentRounds:
    """The round that is open: who takes part, and how much is waited for."""

    def __init__(self, options: Synchronous, world: RunningNetwork):
        self._world = world
        self._interval, self._deadline = options.interval, options.deadline
        self._number = 0
        # Messages and work that the open round waits for before it closes, and then updates before it ends.
        self._left = 0
        self._is_open = self._timed_out = False
        # The wake of each agent that takes part; who still computes before it sends; who has sent; and what has been
        # computed by those who have nobody to send to.
        self._wakes: dict[int, int] = {}
        self._works: dict[int, int] = {}
        self._silent: set[int] = set()
        self._senders: set[int] = set()
        self._ended = world.env.event()

    def go_on(self) -> Steps:
        """Hold one round after the other."""
        world, env, times = self._world, self._world.env, RoundTimes(self._interval, self._deadline)
        timed_out = False
        for self._number in itertools.count(1):
            yield from world.until(times.next(env.now, timed_out), LEARNER, self._number, ROUND)
            ended = self._ended = env.event()
            self._is_open, self._timed_out = True, False
            self._wakes.clear()
            self._senders.clear()
            self._works.clear()
            # One more than is waited for, so that it cannot close before everybody has woken.
            self._left = 1
            # Whatever has been sent is still to be used.
            world.keep_going()
            for agent in range(world.links.agents):
                misses = world.misses(agent)
                if world.present[agent] and not misses:
                    self._wake(agent)
            self._end(self._number)
            if self._deadline is not None and self._is_open:
                env.process(self._wait_for_deadline(times.deadline(), self._number))
            yield ended
            timed_out = self._timed_out

    def _wake(self, agent: int) -> None:
        """An agent takes part: it sends its model to all its neighbours, once it has computed what comes before."""
        world = self._world
        if world.is_spent(agent) and not world.goes_on:
            world.wake(agent, SPENT)
            return
        wake = self._wakes[agent] = world.wake(agent)
        if world.updates != "wake":
            self._send(agent, wake)
            return
        number = self._number
        self._left += 1
        self._silent.add(agent)

        def done(cause: int) -> None:
            self._silent.discard(agent)
            if cause != wake:
                self._works[agent] = cause
            self._send(agent, cause)
            self._end(number)

        def cancelled(_: int) -> None:
            self._silent.discard(agent)
            del self._wakes[agent]
            self._end(number)

        world.work(agent, world.versions[agent], wake, done, cancelled)

    def _send(self, agent: int, cause: int) -> None:
        world, receivers = self._world, self._world.neighbours(agent)
        if not receivers:
            return
        release = world.release(agent) if world.updates == "wake" else NONE
        self._senders.add(agent)
        self._works.pop(agent, None)
        self._left += len(receivers)
        ended = partial(self._end, self._number)
        world.send(agent, receivers, world.versions[agent], cause, release, ended, ended)

    def _wait_for_deadline(self, deadline: float, number: int) -> Steps:
        """The deadline of a round."""
        yield from self._world.until(deadline, LEARNER, number, DEADLINE)
        if number == self._number and self._is_open:
            self._timed_out = True
            self._close()

    def _end(self, number: int, *_: int) -> None:
        """Note that the open round has one message, or one work, less to wait for."""
        if number == self._number and self._is_open:
            self._left -= 1
            if not self._left:
                self._close()

    def _close(self) -> None:
        """Let all that took part update with what they have heard."""
        world = self._world
        # One more than there are updates, so that the round cannot end before all have begun.
        self._is_open, self._left = False, 1
        for agent, wake in self._wakes.items():
            cause, version = self._works.get(agent, wake), world.versions[agent]
            if agent in self._silent:
                world.drop(agent, NOBODY, version, world.stop_work(agent), SUPERSEDED)
            elif not world.present[agent]:
                world.drop(agent, NOBODY, NONE if cause == wake else version, cause, OFFLINE)
            elif world.updates == "wake":
                release = NONE if agent in self._senders else world.release(agent)
                world.commit(agent, NEIGHBOURS, cause, release)
            else:
                self._update(agent, cause)
        self._silent.clear()
        self._end_update()

    def _update(self, agent: int, wake: int) -> None:
        """Let an agent compute its update of the round that has closed, and commit it."""
        world = self._world
        self._left += 1

        def done(cause: int) -> None:
            world.commit(agent, NEIGHBOURS, cause, world.release(agent))
            self._end_update()

        world.work(agent, world.versions[agent], wake, done, self._end_update)

    def _end_update(self, *_: int) -> None:
        """Note that one update has been made, or will not be; after the last one, the round has ended."""
        self._left -= 1
        if not self._left:
            self._ended.succeed()
            self._world.may_end()
