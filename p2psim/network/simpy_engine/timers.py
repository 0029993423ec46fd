"""Events of SimPy that are used again and again: making one costs more than what it is made for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heappush
from typing import Any

import simpy
from simpy.events import NORMAL, EventPriority

__all__ = ["LAST", "NORMAL", "Action", "ClockEvents", "Scheduled", "moment"]

#: Priority of what happens after all else of the same time.
LAST = EventPriority(NORMAL + 1)


class Scheduled(simpy.Event):
    """Something that will be done: an event that has its value from the start, and calls one function with itself.

    It may be set again, for something else, once that function has been called. SimPy's own loop sees it as an event
    like others; `World.run` calls ``callback`` at once.
    """

    _ok = True
    _value = None
    callback: Callable[[Any], None]

    @property
    def callbacks(self) -> list[Callable[[Any], None]]:
        """What SimPy calls."""
        return [self.callback]

    @callbacks.setter
    def callbacks(self, _: object) -> None:
        """SimPy marks what is done; this is not needed here."""


class Action(Scheduled):
    """A function that will be called."""

    def __init__(self, act: Callable[[], None]):
        self.act = act

    def callback(self, _: Action) -> None:
        """Call it."""
        self.act()


def moment(env: simpy.Environment, time: float) -> simpy.Event:
    """Event of a moment that is now or to come, for a process to wait for; a delay would be added up, and rounded."""
    event = simpy.Event(env)
    event._ok, event._value = True, None
    heappush(env._queue, (time, NORMAL, next(env._eid), event))
    return event


class ClockEvents(Scheduled):
    """The ticks of all agents: one event, which is set again for the next tick when it has rung.

    So SimPy's queue holds one entry for all clocks, and stays short.

    Parameters
    ----------
    env : simpy.Environment
    ticks : iterator of (float, int)
        Time and agent of each, in order, without end.
    present : bytearray
        Whether each agent is there; who is away does not hear its clock.
    misses : list of callable, optional
        For each agent, whether it misses its next tick; asked for each, also for one who is away.
    tick : callable
        Called with the agent at each tick that it hears.
    """

    def __init__(
        self,
        env: simpy.Environment,
        ticks: Iterator[tuple[float, int]],
        present: bytearray,
        misses: Sequence[Callable[[], bool]] | None,
        tick: Callable[[int], None],
    ):
        queue, numbers = env._queue, env._eid
        time, agent = next(ticks)

        def callback(_: Any) -> None:
            nonlocal time, agent
            if (misses is None or not misses[agent]()) and present[agent]:
                tick(agent)
            time, agent = next(ticks)
            # The time itself, not a delay: the sum of clock and gap must not be rounded twice.
            heappush(queue, (time, NORMAL, next(numbers), self))

        self.callback = callback
        heappush(queue, (time, NORMAL, next(numbers), self))
