"""Where in a stream of events something is to be recorded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from p2psim.network.events import COMMIT
from p2psim.study.record import EveryTime


class Marks:
    """Moments of recording: after every so many commits, or at regular times; the first and the last always.

    Parameters
    ----------
    every : int or EveryTime
        As in the record section.

    Attributes
    ----------
    step, time
        Commits so far, and the time of the last event.
    """

    def __init__(self, every: int | EveryTime):
        self._every_step, self._every_time = (
            (0, every.time) if isinstance(every, EveryTime) else (every, np.inf)
        )
        self._next_time = self._every_time
        self.step, self.time = 0, 0.0

    def places(self, events: np.ndarray) -> Iterator[tuple[int, int, float]]:
        """Where to stop in the next chunk, with the commits so far and the time to write down."""
        commits = events["kind"] == COMMIT
        if self._every_step:
            found = np.flatnonzero(commits)
            first = self._every_step - self.step % self._every_step - 1
            for k in range(first, found.size, self._every_step):
                yield int(found[k]) + 1, self.step + k + 1, float(events[found[k]]["time"])
        else:
            counts = np.cumsum(commits)
            while self._next_time < events[-1]["time"]:
                stop = int(np.searchsorted(events["time"], self._next_time, side="right"))
                yield stop, self.step + (int(counts[stop - 1]) if stop else 0), self._next_time
                self._next_time = self._every_time * np.rint(self._next_time / self._every_time + 1.0)
        self.step += int(np.count_nonzero(commits))
        self.time = float(events[-1]["time"])

    def is_last(self, observed: tuple[int, float]) -> bool:
        """Whether what was observed last is where the run stands now."""
        return observed[0] == self.step and not np.isfinite(self._every_time)
