"""When groups of agents come and go: drawn as the availability does it, and sorted for the kernel a span at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
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

    #: Turns that are handed out at once, about; that are drawn at once of a reason; reasons that are drawn together.
    MANY, BLOCK, TOGETHER = 1 << 16, 16, 4096

    def __init__(
        self, links: Graph, members: Members, availability: AnyAvailability, streams: Streams, end: float
    ):
        self.links, self.members = links, members
        self._end, self._limit = end, end * (1 + ROUNDING)
        self._groups: list[tuple[int, ...]] = []
        self._sources: list[Callable[[], Sequence[float] | np.ndarray]] = []
        self._begins: list[bool] = []
        # Of each reason: whether its group is online after what was drawn, whether it never turns, and the time of the
        # last turn that was drawn; infinite when there are no more before the end.
        self._online, self._is_over, self._drawn = np.empty(0, bool), np.empty(0, bool), np.empty(0)
        # Turns that were drawn and not yet handed out: time, reason, what happens.
        self._waiting = np.empty(0), np.empty(0, np.int32), np.empty(0, np.uint8)
        #: Up to when turns have been handed out.
        self.known = 0.0
        availability.start(self._world, streams)
        self._draw_first()
        self._least = np.array([min(group, default=LEARNER) for group in self._groups], np.int64)
        self._wanted = max(self.MANY, 2 * self._least.size)

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
        if len(self._groups) % self.TOGETHER == 0:
            self._draw_first()

    def _draw_first(self) -> None:
        """Draw first blocks of reasons that have none."""
        known, count = self._online.size, len(self._groups)
        self._online = np.concatenate([self._online, np.array(self._begins[known:], bool)])
        self._is_over = np.concatenate([self._is_over, np.zeros(count - known, bool)])
        self._drawn = np.concatenate([self._drawn, np.zeros(count - known)])
        self._draw(np.arange(known, count))

    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        """Where each group begins in the agents of all groups, and these."""
        starts = np.zeros(len(self._groups) + 1, np.int64)
        starts[1:] = np.cumsum([len(group) for group in self._groups])
        return starts, np.array([agent for group in self._groups for agent in group], np.int64)

    def first(self) -> np.ndarray:
        """What happens before time runs: who begins offline, and who of these is gone for good."""
        offline = np.flatnonzero(~np.array(self._begins, bool))
        gone = offline[self._is_over[offline]]
        turns = records(offline.size + gone.size, TURN)
        turns["group"] = np.concatenate([offline, gone])
        turns["what"] = np.repeat([LEAVES, GOES], [offline.size, gone.size])
        if not self._waiting[0].size:
            self.known = np.inf
        return turns

    def more(self) -> np.ndarray:
        """The turns of the next span of time, in order; afterwards they are known up to `known`."""
        upto = self._span_end()
        while (late := np.flatnonzero(self._drawn <= upto)).size:
            for start in range(0, late.size, self.TOGETHER):
                self._draw(late[start : start + self.TOGETHER])
        is_due = self._waiting[0] <= upto
        times, numbers, whats = self._waiting
        self._waiting = times[~is_due], numbers[~is_due], whats[~is_due]
        times, numbers, whats = times[is_due], numbers[is_due], whats[is_due]
        self.known = upto if self._waiting[0].size or (self._drawn < np.inf).any() else np.inf
        made = records(times.size, TURN)
        # Rounding alone puts no turn beyond the end of the run.
        made["time"], made["group"], made["what"] = np.minimum(times, self._end), numbers, whats
        return made[np.lexsort((numbers, self._least[numbers], made["time"]))]

    def _span_end(self) -> float:
        """When the next span ends: so that it has as many turns as are wanted, of those that were drawn."""
        times = self._waiting[0]
        if not times.size:
            return float(self._drawn.min())
        place = min(self._wanted, times.size - 1)
        # Later turns of who turns often are not all drawn yet: no further than what is known of all, and some more.
        return float(min(np.partition(times, place)[place], max(self._drawn.min(), np.median(times))))

    def _draw(self, reasons: np.ndarray) -> None:
        """Draw a block of turns of some reasons; where it ends with infinity there are no more."""
        if not reasons.size:
            return
        blocks = [self._sources[number]() for number in reasons.tolist()]
        sizes = np.array([len(block) for block in blocks], np.int64)
        times = np.concatenate(blocks)
        lasts = np.cumsum(sizes) - 1
        numbers = np.repeat(reasons.astype(np.int32), sizes)
        places = np.arange(times.size) - np.repeat(lasts + 1 - sizes, sizes)
        whats = np.where((places + self._online[numbers]) % 2 == 0, JOINS, LEAVES).astype(np.uint8)
        has_ended = np.isinf(times[lasts])
        # Who goes and does not come back is gone for good.
        before = lasts[has_ended & (sizes > 1)] - 1
        whats[before] |= np.where(whats[before] == LEAVES, GOES, 0).astype(np.uint8)
        self._is_over[reasons[has_ended & (sizes == 1)]] = True
        self._online[reasons] ^= (sizes - has_ended) % 2 == 1
        self._drawn[reasons] = np.where(times[lasts] <= self._limit, times[lasts], np.inf)
        kept = (times <= self._limit) & np.isfinite(times)
        old_times, old_numbers, old_whats = self._waiting
        self._waiting = (
            np.concatenate([old_times, times[kept]]),
            np.concatenate([old_numbers, numbers[kept]]),
            np.concatenate([old_whats, whats[kept]]),
        )


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
