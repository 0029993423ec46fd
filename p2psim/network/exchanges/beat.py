"""When rounds begin."""

from __future__ import annotations

from p2psim.core.times import is_past


class Beat:
    """Beginnings of rounds: multiples of the interval, as long as rounds close in time.

    A round that closes late begins the next one at once. If its deadline closed it, multiples of the deadline are
    added; otherwise all are counted from then on.

    Parameters
    ----------
    interval : float
    deadline : float, optional
    """

    def __init__(self, interval: float, deadline: float | None):
        self._interval, self._deadline = interval, deadline or 0.0
        self._is_slow = self._deadline > interval
        self._since, self._rounds, self._late = 0.0, 0, 0

    def _at(self, rounds: int, late: int) -> float:
        return self._since + (rounds * self._interval + late * self._deadline)

    def next(self, now: float, timed_out: bool) -> float:
        """When the next round begins, if the last one closed now; ``timed_out``: by its deadline."""
        if timed_out and self._is_slow:
            self._late += 1
        else:
            self._rounds += 1
        begins = self._at(self._rounds, self._late)
        if is_past(now, begins):
            self._since, self._rounds, self._late = now, 0, 0
            return now
        return max(begins, now)

    def deadline(self) -> float:
        """When the round that has begun closes at the latest."""
        if self._deadline == self._interval:
            return self._at(self._rounds + 1, self._late)
        return self._at(self._rounds, self._late + 1)
