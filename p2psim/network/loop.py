"""How time passes in a world."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop
from typing import TYPE_CHECKING

import numpy as np
import simpy

if TYPE_CHECKING:
    from p2psim.network.world import World


def let_time_pass(world: World) -> Iterator[np.ndarray]:
    """Let one event after the other happen until the run is over; yields chunks of events."""
    # Environment.step of SimPy, written out: for short events its calls cost as much as what they call.
    env, log, full = world.env, world.log, world.log.full
    queue = env._queue
    while not world.ended:
        if not queue:
            world.end("exhausted")
            break
        env._now, _, _, event = heappop(queue)
        try:
            ring = event.ring  # type: ignore[attr-defined]
        except AttributeError:
            _call_back(event)
        else:
            ring(event)
        if full:
            yield log.take()
    while full:
        yield log.take()
    rest = log.rest()
    if rest.size:
        yield rest


def _call_back(event: simpy.Event) -> None:
    """Do what SimPy does with an event whose time has come."""
    callbacks = event.callbacks
    event.callbacks = None  # type: ignore[assignment]
    for callback in callbacks:
        callback(event)
    if not event._ok and not event.defused:
        raise event._value
