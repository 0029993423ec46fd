"""What happens in a run of :class:`p2psim.network.exchanges.poll.Poll`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import simpy

from p2psim.core.events import LEARNER, NONE, OFFLINE, SUPERSEDED
from p2psim.network.exchanges.protocol import Answers
from p2psim.network.simpy_engine.timers import NORMAL, Scheduled

if TYPE_CHECKING:
    from p2psim.core.distributions import Distribution
    from p2psim.network.spec import RunningNetwork


class _PendingAnswer(Scheduled):
    """An answer that an owner owes, and the event of its giving."""

    def __init__(self, callback: Callable[[Any], None], owner: int, query: int, version: int):
        self.callback = callback
        self.owner = owner
        self.query = query
        self.version = version


class Polling:
    """The learner's queries, and what each owner still owes."""

    def __init__(self, interval: float, response: float | Distribution, world: RunningNetwork):
        self._world = world
        self._interval = interval
        owners = world.links.agents
        self._owners = range(owners)
        self._delays = [world.draws("response", owner, response) for owner in range(owners)]
        self._owed: list[_PendingAnswer | None] = [None] * owners
        self._newest = [0] * owners
        self._answers = Answers(world)
        self._schedule = world.env.schedule

    def ask(self) -> Generator[simpy.Event, Any, None]:
        """Send a query at each multiple of the interval."""
        world = self._world
        for number in itertools.count(1):
            yield world.until(number * self._interval)
            if world.present[LEARNER]:
                world.send(LEARNER, self._owners, world.commits, NONE, NONE, self._hear, self._miss)

    def _hear(self, _: int, owner: int, query: int, version: int, __: int) -> None:
        world = self._world
        self._answers.forget(owner)
        if world.is_spent(owner):
            return
        if world.misses(owner):
            world.drop(owner, LEARNER, version, query, OFFLINE)
            return
        if version < self._newest[owner]:
            world.drop(owner, LEARNER, version, query, SUPERSEDED)
            return
        self._newest[owner] = version
        older = self._owed[owner]
        if older is not None:
            world.drop(owner, LEARNER, older.version, older.query, SUPERSEDED)
        owed = self._owed[owner] = _PendingAnswer(self._answer, owner, query, version)
        delay = next(self._delays[owner])
        if delay:
            # A dropped answer stays in SimPy's queue; it must find that it is owed no longer.
            self._schedule(owed, NORMAL, delay)
        else:
            self._answer(owed)

    def _answer(self, owed: _PendingAnswer) -> None:
        owner = owed.owner
        if self._owed[owner] is not owed:
            return
        self._owed[owner] = None
        world = self._world
        if not world.present[owner]:
            world.drop(owner, LEARNER, owed.version, owed.query, OFFLINE)
            return
        self._answers.give(owner, owed.query, owed.version, self._commit, self._miss)

    def _commit(self, owner: int, _: int, answer: int, __: int, release: int) -> None:
        self._world.commit(LEARNER, owner, answer, release)

    def _miss(self, *_: int) -> None:
        """Nobody learns that a message was lost."""
