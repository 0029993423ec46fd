"""Many copies of a small network's run side by side, so that one replay of a kernel gives many samples."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from p2psim.network.events import COMMIT, EVENT, LEARNER, NEIGHBOURS, SEND


def blocks(events: np.ndarray) -> Iterator[slice]:
    """Cut events after every commit and every send of an agent, and around what the learner does with all at once."""
    start = 0
    for at, event in enumerate(events):
        to_all = event["kind"] in (SEND, COMMIT) and event["agent"] == LEARNER and event["peer"] == NEIGHBOURS
        if to_all and at > start:
            yield slice(start, at)
            start = at
        if to_all or event["kind"] == COMMIT or (event["kind"] == SEND and event["agent"] != LEARNER):
            yield slice(start, at + 1)
            start = at + 1
    if start < len(events):
        yield slice(start, len(events))


class Copies:
    """Events of copies: agent a of copy s is s·agents + a. The learner, if there is one, is common to all.

    Within a block each copy's events follow each other, as they do in the original; blocks follow in their order.

    Parameters
    ----------
    events : ndarray of EVENT
        Of one run of a small network.
    agents : int
        Of the small network.
    copies : int
    """

    def __init__(self, events: np.ndarray, agents: int, copies: int):
        self._events, self._agents, self._copies = events, agents, copies
        acts = np.isin(events["kind"], (SEND, COMMIT))
        common = acts & (events["agent"] == LEARNER) & (events["peer"] == NEIGHBOURS)
        self._each = np.where(common, 1, copies)
        self._place = {int(seq): at for at, seq in enumerate(events["seq"])}
        # Where a block's events begin among those of all copies.
        self._first = np.concatenate([[0], np.cumsum(self._each)])

    def seqs(self, at: int, block: slice) -> np.ndarray:
        """Number of event ``at`` of a block in each copy, shape (copies,), or (1,) for what is common to all."""
        size = block.stop - block.start
        step = size if self._each[at] > 1 else 0
        return np.asarray(
            self._first[block.start] + (at - block.start) + step * np.arange(self._each[at], dtype=np.int64)
        )

    def play(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the blocks, and the events of all copies in each."""
        numbers: dict[int, np.ndarray] = {}
        for block in blocks(self._events):
            size = block.stop - block.start
            out = np.zeros(int(self._first[block.stop] - self._first[block.start]), EVENT)
            for at in range(block.start, block.stop):
                event = self._events[at]
                seqs = numbers[int(event["seq"])] = self.seqs(at, block)
                rows = seqs - self._first[block.start]
                out[rows] = event
                out["seq"][rows] = seqs
                cause = numbers.get(int(event["cause"]))
                if cause is not None:
                    # What is common to all has one of the causes: a query to a single owner is one to each copy's.
                    out["cause"][rows] = cause[: rows.size]
                shift = self._agents * np.arange(rows.size)
                for name in ("agent", "peer"):
                    if event[name] >= 0:
                        out[name][rows] = event[name] + shift
            assert size
            yield block, out
