"""When groups of agents come and go: drawn as the availability does it, and sorted for the kernel a span at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from p2psim.core.randomness import Streams
from p2psim.core.times import ROUNDING
from p2psim.network.compiled_engine.codes import GOES, JOINS, LEAVES
from p2psim.network.compiled_engine.state import TURN, records
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

    #: Turns that are drawn at once, about.
    MANY = 1 << 16

    def __init__(
        self, links: Graph, members: Members, availability: AnyAvailability, streams: Streams, end: float
    ):
        self.links, self.members = links, members
        self._end = end
        self._groups: list[tuple[int, ...]] = []
        self._iterators: list[Iterator[float]] = []
        self._online: list[bool] = []
        self._started = False
        self.known = 0.0
        self._step = 0.0
        availability.start(self._world, streams)

    @property
    def presence(self) -> Turns:
        """Itself, where the running network has this."""
        return self

    @property
    def _world(self) -> RunningNetwork:
        return self  # type: ignore[return-value]

    def alternate(self, agents: tuple[int, ...], begins: bool, turns: Iterator[float]) -> None:
        """Note that agents come and go together, as `p2psim.network.spec.Attendance` has it."""
        self._groups.append(agents)
        self._iterators.append(turns)
        self._online.append(begins)

    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        """Where each group begins in the agents of all groups, and these."""
        starts = np.concatenate([[0], np.cumsum([len(group) for group in self._groups], dtype=np.int64)])
        return starts.astype(np.int64), np.array([a for group in self._groups for a in group], np.int64)

    def first(self) -> np.ndarray:
        """What happens before time runs: who begins offline, and who of these is gone for good."""
        rows = [(0.0, number, LEAVES) for number, online in enumerate(self._online) if not online]
        self._next = np.array([next(turns, np.inf) for turns in self._iterators])
        ended = np.isinf(self._next)
        rows += [
            (0.0, number, GOES) for number, online in enumerate(self._online) if not online and ended[number]
        ]
        self._least = np.array([min(group) for group in self._groups])
        if (self._next <= self._limit).any():
            self._step = float(np.median(self._next[self._next <= self._limit]))
        else:
            self.known = np.inf
        turns = records(len(rows), TURN)
        turns[:] = rows
        return turns

    @property
    def _limit(self) -> float:
        """Rounding puts what happens at the end of the run no further than this."""
        return self._end * (1 + ROUNDING)

    def more(self) -> np.ndarray:
        """The turns of the next span of time, in order; afterwards they are known up to `known`."""
        upto = min(self.known + max(self._step, np.finfo(float).tiny), self._limit)
        if upto == self.known:
            upto = np.nextafter(upto, np.inf)
        times: list[float] = []
        numbers: list[int] = []
        whats: list[int] = []
        for number in np.flatnonzero(self._next <= upto).tolist():
            turns, online, time = self._iterators[number], self._online[number], float(self._next[number])
            while time <= upto:
                online = not online
                times.append(time)
                numbers.append(number)
                time = next(turns, np.inf)
                whats.append(JOINS if online else LEAVES if time < np.inf else LEAVES | GOES)
            self._online[number], self._next[number] = online, time
        made = records(len(times), TURN)
        made["time"], made["group"], made["what"] = np.minimum(times, self._end), numbers, whats
        self.known = upto if (self._next <= self._limit).any() else np.inf
        self._step *= float(np.clip(max(self.MANY, 2 * self._least.size) / max(len(times), 1), 0.5, 4.0))
        return made[np.lexsort((made["group"], self._least[made["group"]], made["time"]))]
