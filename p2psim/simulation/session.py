"""Events and unit noise of one replica, kept while the cells that share them are replayed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from p2psim.core.randomness import Streams
from p2psim.network.simulation import simulate_events
from p2psim.privacy.releases import ReleaseCounter
from p2psim.privacy.shares import Releases
from p2psim.simulation.algorithms.replay import ReplaySetup

#: A replica whose events and noise take more bytes than this is made anew for every cell.
KEEP_BYTES = 256 * 2**20


@dataclass(frozen=True)
class EventChunk:
    """A chunk of events, its releases in their order, their noise of scale one, and the count after it."""

    events: np.ndarray
    releases: Releases
    unit: np.ndarray
    counter: ReleaseCounter


class EventCache:
    """Events and unit noise of a replica, in chunks, from memory where they were kept."""

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._chunks: list[EventChunk] = []
        self.ended = ""

    def read(self, setup: ReplaySetup, streams: Streams, engine: str, check: bool) -> Iterator[EventChunk]:
        """Yield the chunks of a replica, in order; `ended` is known after the last one.

        Parameters
        ----------
        setup : ReplaySetup
        streams : Streams
            Random streams of the replica.
        engine : str
            What makes the events.
        check : bool
            Check the events' invariants.
        """
        key = setup.key, streams.seed, streams.replica, tuple(sorted(streams.variants.items())), engine, check
        if key == self._key:
            yield from self._chunks
            return
        self._key, self._chunks = (), []
        network, plan = setup.network, setup.plan
        events = simulate_events(
            network, streams, commits=setup.commits, time=setup.time, limits=plan.limits, engine=engine
        )
        noise_key = streams.key("noise")
        checker = setup.checker() if check else None
        counter, kept = ReleaseCounter.empty(network.links.agents), 0
        for stretch in events:
            if checker is not None:
                checker.check(stretch)
            releases, counter = counter.read(stretch)
            unit = plan.mechanism.draw(noise_key, releases.agents, releases.numbers, setup.dimension)
            chunk = EventChunk(stretch, releases, unit, counter)
            kept += stretch.nbytes + unit.nbytes
            if kept <= KEEP_BYTES:
                self._chunks.append(chunk)
            else:
                self._chunks = []
            yield chunk
        self.ended = events.ended
        if kept <= KEEP_BYTES:
            self._key = key
