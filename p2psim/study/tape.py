"""Events and unit noise of one replica, kept while the cells that share them are replayed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p2psim.network.simulation import EventStream, simulate_events
from p2psim.network.verify import EventChecker
from p2psim.privacy.releases import ReleaseCounts, unit_noise
from p2psim.randomness import Streams

if TYPE_CHECKING:
    from p2psim.study.scenario import Scenario
    from p2psim.study.setting import Setting

#: A replica whose events and noise take more bytes than this is made anew for every cell.
KEEP_BYTES = 256 * 2**20


@dataclass(frozen=True)
class Piece:
    """A chunk of events, the releases made before and after it, and their noise of scale one."""

    events: np.ndarray
    before: ReleaseCounts
    after: ReleaseCounts
    unit: np.ndarray


class Tape:
    """Plays the pieces of a replica, from memory where it was kept."""

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._pieces: list[Piece] = []
        self.ended = ""

    def play(self, scenario: Scenario, setting: Setting, streams: Streams, check: bool) -> Iterator[Piece]:
        """Yield the pieces of a replica, in order; `ended` is known after the last one.

        Parameters
        ----------
        scenario, setting
            The cell.
        streams : Streams
            Random streams of the replica.
        check : bool
            Check the events' invariants.
        """
        key = _key(setting, streams, check)
        if key == self._key:
            yield from self._pieces
            return
        self._key, self._pieces = (), []
        events = _events(scenario, setting, streams)
        noise_key = streams.key("noise")
        checker = EventChecker(setting.network.links, setting.plan.limits) if check else None
        before, kept = ReleaseCounts.none(setting.network.links.agents), 0
        for chunk in events:
            if checker is not None:
                checker.check(chunk)
            after = before.after(chunk)
            unit = unit_noise(setting.plan, noise_key, before, after, setting.case.problem.dimension)
            piece = Piece(chunk, before, after, unit)
            kept += chunk.nbytes + unit.nbytes
            if kept <= KEEP_BYTES:
                self._pieces.append(piece)
            else:
                self._pieces = []
            yield piece
            before = after
        self.ended = events.ended
        if kept <= KEEP_BYTES:
            self._key = key


def _events(scenario: Scenario, setting: Setting, streams: Streams) -> EventStream:
    return simulate_events(
        setting.network,
        streams,
        commits=scenario.learning.algorithm.horizon,
        limits=setting.plan.limits,
        engine=scenario.network.engine,
    )


def _key(setting: Setting, streams: Streams, check: bool) -> tuple[object, ...]:
    """All that determines events and unit noise."""
    return setting.tape_key, streams.seed, streams.replica, tuple(sorted(streams.variants.items())), check
