"""Events of SimPy that are used again and again: making one costs more than what it is made for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import simpy
from simpy.events import NORMAL

__all__ = ["NORMAL", "Clock", "Timer"]


class Timer(simpy.Event):
    """An event that has its value from the start and calls one function; it may be set again once it has rung.

    Parameters
    ----------
    env : simpy.Environment
    rings : list of one callable
        Called with the timer; the same list may serve many timers.
    """

    def __init__(self, env: simpy.Environment, rings: list[Callable[[Any], None]]):
        self.env = env
        self._ok = True
        self._value = None
        self.callbacks = rings


class Clock(Timer):
    """Ticks of one agent.

    Parameters
    ----------
    env : simpy.Environment
    rings : list of one callable
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
        super().__init__(env, rings)
        self.agent, self.gaps = agent, gaps
        env.schedule(self, NORMAL, next(gaps))
