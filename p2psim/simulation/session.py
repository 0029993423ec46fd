"""Events and unit noise of one replica, kept while the cells that share them are replayed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from p2psim.core.randomness import Streams
from p2psim.network.simulation import simulate_events
from p2psim.network.verify import EventChecker
from p2psim.privacy.allocations import Releases
from p2psim.privacy.releases import Book, unit_noise
from p2psim.simulation.algorithms.replay import Stage

#: A replica whose events and noise take more bytes than this is made anew for every cell.
KEEP_BYTES = 256 * 2**20


@dataclass(frozen=True)
class Piece:
    """A chunk of events, its releases in their order, their noise of scale one, and the count after it."""

    events: np.ndarray
    releases: Releases
    unit: np.ndarray
    book: Book


class Tape:
    """Plays the pieces of a replica, from memory where it was kept."""

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._pieces: list[Piece] = []
        self.ended = ""

    def play(self, stage: Stage, streams: Streams, engine: str, check: bool) -> Iterator[Piece]:
        """Yield the pieces of a replica, in order; `ended` is known after the last one.

        Parameters
        ----------
        stage : Stage
        streams : Streams
            Random streams of the replica.
        engine : str
            What makes the events.
        check : bool
            Check the events' invariants.
        """
        key = stage.key, streams.seed, streams.replica, tuple(sorted(streams.variants.items())), engine, check
        if key == self._key:
            yield from self._pieces
            return
        self._key, self._pieces = (), []
        network, plan = stage.network, stage.plan
        events = simulate_events(
            network, streams, commits=stage.commits, time=stage.time, limits=plan.limits, engine=engine
        )
        noise_key = streams.key("noise")
        checker = (
            EventChecker(
                network.links,
                plan.limits,
                network.goes_on,
                network.by_edge,
                network.channel.resending,
                np.inf if stage.time is None else stage.time,
                network.polled,
            )
            if check
            else None
        )
        book, kept = Book.empty(network.links.agents), 0
        for chunk in events:
            if checker is not None:
                checker.check(chunk)
            releases, book = book.read(chunk)
            piece = Piece(chunk, releases, unit_noise(plan, noise_key, releases, stage.dimension), book)
            kept += chunk.nbytes + piece.unit.nbytes
            if kept <= KEEP_BYTES:
                self._pieces.append(piece)
            else:
                self._pieces = []
            yield piece
        self.ended = events.ended
        if kept <= KEEP_BYTES:
            self._key = key
