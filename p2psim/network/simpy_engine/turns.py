"""Waiting in SimPy, for an exact moment and for one's turn among all that is due then; processes that begin at once."""

from heapq import heappop, heappush

import simpy

from p2psim.core.errors import InputError
from p2psim.network.order import Key
from p2psim.network.spec import Steps


def exactly(env: simpy.Environment, moment: float) -> Steps:
    """Wait until a moment that is now or to come, to the last bit.

    A timeout of ``moment - now`` may miss it: rounding makes ``now + (moment - now)`` another number in 3 % of random
    pairs. From half way on the difference is exact (Sterbenz 1974), so that a second timeout meets it.

    Raises
    ------
    InputError
        If the moment is past, or no number.
    """
    if not moment >= env.now:
        raise InputError(f"a moment to wait for must be {env.now} or later, which is now; got {moment}")
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
