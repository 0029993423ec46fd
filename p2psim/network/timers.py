"""Events of SimPy that are used again and again: making one costs more than what it is made for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import simpy
from simpy.events import NORMAL

__all__ = ["NORMAL", "Clock"]


class Clock(simpy.Event):
    """Ticks of one agent: an event that has its value from the start, and is set again when it has rung.

    Parameters
    ----------
    env : simpy.Environment
    rings : list of one callable
        Called with the clock; the same list serves all clocks.
    agent : int
    gaps : iterator of float
        Times between ticks, without end.
    """

    def __init__(
        self,
        env: simpy.Environment,
        rings: list[Callable[[Any], None]],
        agent: int,
        gaps: Iterator[float],
    ):
        self.env, self.callbacks = env, rings
        self._ok, self._value = True, None
        self.agent, self.gaps = agent, gaps
        env.schedule(self, NORMAL, next(gaps))
