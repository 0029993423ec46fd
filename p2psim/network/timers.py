"""Events of SimPy that are used again and again: making one costs more than what it is made for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappush
from typing import Any

import simpy
from simpy.events import NORMAL

__all__ = ["NORMAL", "Act", "Later", "Ticks"]


class Later(simpy.Event):
    """Something that will be done once: an event that has its value from the start.

    What it needs are attributes of its class; all events of a kind share one list of what SimPy calls with them.
    """

    _ok = True
    _value = None


class Act(Later):
    """A function that will be called."""

    def __init__(self, act: Callable[[], None]):
        self.callbacks = _ACT
        self.act = act


def _act(event: Act) -> None:
    event.act()


_ACT: list[Callable[[Any], None]] = [_act]


class Ticks(Later):
    """The ticks of all agents: one event, which is set again for the next tick when it has rung.

    So SimPy's queue holds one entry for all clocks, and stays short.

    Parameters
    ----------
    env : simpy.Environment
    ticks : iterator of (float, int)
        Time and agent of each, in order, without end.
    tick : callable
        Called with the agent at each.
    """

    def __init__(
        self, env: simpy.Environment, ticks: Iterator[tuple[float, int]], tick: Callable[[int], None]
    ):
        self.env = env
        queue, numbers = env._queue, env._eid
        time, agent = next(ticks)

        def ring(_: Any) -> None:
            nonlocal time, agent
            tick(agent)
            self.callbacks = rings
            time, agent = next(ticks)
            # The time itself, not a delay: the sum of clock and gap must not be rounded twice.
            heappush(queue, (time, NORMAL, next(numbers), self))

        rings: list[Callable[[Any], None]] = [ring]
        self.callbacks = rings
        heappush(queue, (time, NORMAL, next(numbers), self))
