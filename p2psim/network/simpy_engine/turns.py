"""Waiting in SimPy: for an exact moment, for one's turn among what is due at that moment, and processes that begin at once."""

from __future__ import annotations

from collections.abc import Generator
from heapq import heappop, heappush
from typing import Any

import simpy

from p2psim.network.order import Key

#: What a process of SimPy is made of: a generator of the events that it waits for.
Steps = Generator[simpy.Event, Any, None]


def exactly(env: simpy.Environment, moment: float) -> Steps:
    """Wait until a moment that is now or to come, to the last bit.

    A timeout of ``moment - now`` may miss it: rounding makes ``now + (moment - now)`` another number in 3 % of random
    pairs. From half way on the difference is exact (Sterbenz 1974), so that two timeouts do not.
    """
    while env.now < moment:
        delay = moment - env.now
        if env.now + delay != moment:
            delay /= 2
        yield env.timeout(delay)


def begin(env: simpy.Environment, steps: Steps) -> None:
    """Start a process now, and not when SimPy comes to it: what it does before its first wait is done in this call.

    So what an event brings about at its own instant follows it at once, depth first, and only what takes time becomes
    a process.
    """
    for first in steps:
        env.process(_go_on(first, steps))
        return


def _go_on(first: simpy.Event, steps: Steps) -> Steps:
    yield first
    yield from steps


class Turns:
    """Lets what is due at one instant happen in the order of the model (`p2psim.network.order`), not of SimPy's queue.

    Whoever has waited for a moment takes a turn before it acts. Mostly nothing else is due, and it goes on. Otherwise it
    waits until SimPy has nothing left to do at this instant: then all have come who are due, and who has the smallest key
    goes first; the next goes when all that followed from this is done.
    """

    def __init__(self, env: simpy.Environment):
        self._env = env
        self._waiting: list[tuple[Key, int, simpy.Event]] = []
        self._count = 0

    def take(self, *key: int) -> Steps:
        """Wait for one's turn at this instant."""
        env = self._env
        if env.peek() > env.now:
            return
        turn = env.event()
        if not self._waiting:
            env.process(self._call())
        heappush(self._waiting, (key, self._count, turn))
        self._count += 1
        yield turn

    def _call(self) -> Steps:
        """Call those who wait, one after the other."""
        env = self._env
        while self._waiting:
            yield env.timeout(0)
            if env.peek() > env.now:
                _, _, turn = heappop(self._waiting)
                turn.succeed()
