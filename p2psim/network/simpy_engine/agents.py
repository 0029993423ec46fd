"""Agents: each is a process that sleeps until its Poisson clock ticks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from p2psim.network.channels.draws import UNIT
from p2psim.network.order import WAKE
from p2psim.network.simpy_engine.base import Run
from p2psim.network.spec import Steps


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
