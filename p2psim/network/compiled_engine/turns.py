"""When groups of agents come and go: drawn as the availability does it, and sorted for the kernel a span at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np

from p2psim.core.events import LEARNER
from p2psim.core.randomness import Streams
from p2psim.core.times import ROUNDING
from p2psim.network.compiled_engine.state import GOES, JOINS, LEAVES, TURN, records
from p2psim.network.graph import Graph
from p2psim.network.members import Members

if TYPE_CHECKING:
    from p2psim.network.availability import AnyAvailability
    from p2psim.network.spec import RunningNetwork


class Turns:
    """What `p2psim.network.availability` sees of the compiled engine: it notes who comes and goes.

    Parameters
    ----------
    links : Graph
    members : Members
    availability
    streams : Streams
    end : float
        End of the run, if it has one; infinite otherwise.
    """

    #: Turns that are handed out at once, about, and that are drawn at once of each reason.
    MANY, BLOCK = 1 << 16, 16

    def __init__(
        self, links: Graph, members: Members, availability: AnyAvailability, streams: Streams, end: float
    ):
        self.links, self.members = links, members
        self._end, self._limit = end, end * (1 + ROUNDING)
        self._groups: list[tuple[int, ...]] = []
        self._sources: list[Callable[[], list[float]]] = []
        self._begins: list[bool] = []
        availability.start(self._world, streams)
        #: Up to when turns have been handed out.
        self.known = 0.0
        self._step = 0.0

    @property
    def presence(self) -> Turns:
        """Itself, where the running network has this."""
        return self

    @property
    def _world(self) -> RunningNetwork:
        return self  # type: ignore[return-value]

    def alternate(self, agents: tuple[int, ...], begins: bool, turns: Iterable[float]) -> None:
        """Note that agents come and go together, as `p2psim.network.spec.Attendance` has it."""
        self._groups.append(agents)
        self._begins.append(begins)
        block = getattr(turns, "block", None)
        self._sources.append(block if block is not None else _Blocks(iter(turns), self.BLOCK))

    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        """Where each group begins in the agents of all groups, and these."""
        starts = np.zeros(len(self._groups) + 1, np.int64)
        starts[1:] = np.cumsum([len(group) for group in self._groups])
        return starts, np.array([agent for group in self._groups for agent in group], np.int64)

    def first(self) -> np.ndarray:
        """What happens before time runs: who begins offline, and who of these is gone for good."""
        count = len(self._groups)
        self._least = np.array([min(group, default=LEARNER) for group in self._groups], np.int64)
        self._online, self._is_over = np.array(self._begins, bool), np.zeros(count, bool)
        # Of each reason the time of the last turn that was drawn; infinite when there are no more before the end.
        self._drawn = np.zeros(count)
        self._times, self._numbers, self._whats = np.empty(0), np.empty(0, np.int32), np.empty(0, np.uint8)
        self._draw(np.arange(count))
        offline = np.flatnonzero(~np.array(self._begins, bool))
        gone = offline[self._is_over[offline]]
        turns = records(offline.size + gone.size, TURN)
        turns["group"] = np.concatenate([offline, gone])
        turns["what"] = np.repeat([LEAVES, GOES], [offline.size, gone.size])
        if self._times.size:
            self._step = float(np.median(self._times))
        else:
            self.known = np.inf
        return turns

    def more(self) -> np.ndarray:
        """The turns of the next span of time, in order; afterwards they are known up to `known`."""
        upto = self.known + self._step
        if upto <= self.known:
            upto = float(np.nextafter(self.known, np.inf))
        while (late := np.flatnonzero(self._drawn <= upto)).size:
            self._draw(late)
        is_due = self._times <= upto
        made = records(int(is_due.sum()), TURN)
        # Rounding alone puts no turn beyond the end of the run.
        made["time"] = np.minimum(self._times[is_due], self._end)
        made["group"], made["what"] = self._numbers[is_due], self._whats[is_due]
        rest = ~is_due
        self._times, self._numbers, self._whats = self._times[rest], self._numbers[rest], self._whats[rest]
        self.known = upto if self._times.size or (self._drawn < np.inf).any() else np.inf
        wanted = max(self.MANY, 2 * self._least.size)
        self._step *= float(np.clip(wanted / max(made.size, 1), 0.5, 4.0))
        return made[np.lexsort((made["group"], self._least[made["group"]], made["time"]))]

    def _draw(self, reasons: np.ndarray) -> None:
        """Draw a block of turns of some reasons; where it ends with infinity there are no more."""
        blocks = [self._sources[number]() for number in reasons.tolist()]
        sizes = np.array([len(block) for block in blocks], np.int64)
        times = np.fromiter(chain.from_iterable(blocks), float, int(sizes.sum()))
        lasts = np.cumsum(sizes) - 1
        numbers = np.repeat(reasons, sizes)
        places = np.arange(times.size) - np.repeat(lasts + 1 - sizes, sizes)
        joins = (places + self._online[numbers]) % 2 == 0
        whats = np.where(joins, JOINS, LEAVES).astype(np.uint8)
        has_ended = np.isinf(times[lasts])
        # Who goes and does not come back is gone for good.
        before = lasts[has_ended & (sizes > 1)] - 1
        whats[before] |= np.where(whats[before] == LEAVES, GOES, 0).astype(np.uint8)
        self._is_over[reasons[has_ended & (sizes == 1)]] = True
        self._online[reasons] ^= (sizes - has_ended) % 2 == 1
        self._drawn[reasons] = np.where(times[lasts] <= self._limit, times[lasts], np.inf)
        kept = times <= self._limit if np.isfinite(self._limit) else np.isfinite(times)
        self._times = np.concatenate([self._times, times[kept]])
        self._numbers = np.concatenate([self._numbers, numbers[kept].astype(np.int32)])
        self._whats = np.concatenate([self._whats, whats[kept]])


class _Blocks:
    """Turns of an iterator in blocks; infinity follows the last."""

    def __init__(self, turns: Iterator[float], size: int):
        self._turns, self._size = turns, size
        self._next = next(turns, np.inf)

    def __call__(self) -> list[float]:
        block = [] if self._next == np.inf else [self._next, *islice(self._turns, self._size)]
        self._next = np.inf
        if len(block) > self._size:
            self._next = block.pop()
        else:
            block.append(np.inf)
        return block
