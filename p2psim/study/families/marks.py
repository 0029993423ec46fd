"""Where in a stream of events something is to be recorded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from p2psim.moments import is_past, upto
from p2psim.network.events import COMMIT
from p2psim.study.record import EveryTime


class Marks:
    """Moments of recording: after every so many commits, or at regular times; the first and the last always.

    The first is time 0, after what happens then: agents that are away at first have left.

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
        self._begun = False

    def places(self, events: np.ndarray) -> Iterator[tuple[int, int, float]]:
        """Where to stop in the next chunk, with the commits so far and the time to write down."""
        commits = events["kind"] == COMMIT
        if not self._begun and events[-1]["time"] > 0:
            self._begun = True
            yield int(upto(events["time"], 0.0)), 0, 0.0
        if self._every_step:
            found = np.flatnonzero(commits)
            first = self._every_step - self.step % self._every_step - 1
            for k in range(first, found.size, self._every_step):
                yield int(found[k]) + 1, self.step + k + 1, float(events[found[k]]["time"])
        else:
            counts = np.cumsum(commits)
            while is_past(events[-1]["time"], self._next_time):
                stop = int(upto(events["time"], self._next_time))
                yield stop, self.step + (int(counts[stop - 1]) if stop else 0), self._next_time
                self._next_time = self._every_time * np.rint(self._next_time / self._every_time + 1.0)
        self.step += int(np.count_nonzero(commits))
        self.time = float(events[-1]["time"])

    def is_last(self, observed: tuple[int, float]) -> bool:
        """Whether what was observed last is where the run stands now."""
        return observed[0] == self.step and not np.isfinite(self._every_time)


def places_of(every: int | EveryTime, events: np.ndarray, steps: np.ndarray, times: np.ndarray) -> list[int]:
    """How many events come before each record of a finished run; before the first, those of time 0.

    Parameters
    ----------
    every : int or EveryTime
        As in the record section.
    events : ndarray of EVENT
        All of the run.
    steps, times : ndarray, shape (records,)
        As they were written down.
    """
    first = int(upto(events["time"], 0.0))
    if isinstance(every, int):
        commits = np.flatnonzero(events["kind"] == COMMIT) + 1
        # The last record is of the end, unless it is one by count.
        at = [events.size if step % every else int(commits[step - 1]) for step in steps[1:].tolist()]
        return [first, *at]
    before = upto(events["time"], times[1:-1]).tolist()
    return [first, *before, events.size][: times.size]
