"""Payloads on their way to one receiver each, and violations of claimed gradient bounds, both for compiled replays.

A message is found by the sequence number of its send: ``places`` (places, 3) holds, at ``seq of the send mod places``,
that number (−1 for none), the row of its payload, and a tag. Payloads lie in the rows of a pool. ``free`` (rows,) is a
stack of the rows that hold none, and ``free_rows`` (1,) is their number. So memory follows the number of messages that
are on their way at the same time, whether they arrive or are lost.

`note_violation` counts how often, and by how much, records exceed a bound on their gradients that was claimed.
"""

from __future__ import annotations

import numpy as np

from p2psim.core.compiled import njit
from p2psim.learning.losses.compiled import slope

#: Status of a kernel that has replayed all of its events.
DONE = 0

#: What `post` returns in place of a row, and a kernel as its status, when the driver has to make room.
PLACES_FULL, ROWS_FULL = -1, -2


@njit(inline="always")
def post(seq, tag, places, free, free_rows):  # type: ignore[no-untyped-def]
    """Row for the payload of a message that is sent now."""
    place = seq % places.shape[0]
    if places[place, 0] >= 0:
        return PLACES_FULL
    if free_rows[0] == 0:
        return ROWS_FULL
    free_rows[0] -= 1
    row = free[free_rows[0]]
    places[place, 0], places[place, 1], places[place, 2] = seq, row, tag
    return row


@njit(inline="always")
def take(seq, places, free, free_rows):  # type: ignore[no-untyped-def]
    """Row and tag of a message that ends; −1 for one that carried no model. The row is free from now on."""
    place = seq % places.shape[0]
    if places[place, 0] != seq:
        return -1, -1
    places[place, 0] = -1
    row = places[place, 1]
    free[free_rows[0]] = row
    free_rows[0] += 1
    return row, places[place, 2]


class InFlight:
    """The arrays of `post` and `take`.

    Parameters
    ----------
    width : int
        Numbers in a payload.
    """

    def __init__(self, width: int):
        self.places = np.full((64, 3), -1, np.int64)
        self.payloads = np.empty((16, width))
        self.free = np.arange(16)[::-1].astype(np.int64)
        self.free_rows = np.array([16])

    @property
    def held(self) -> int:
        """Messages on their way."""
        return int(self.free.size - self.free_rows[0])

    def of(self, seqs: np.ndarray) -> np.ndarray:
        """Payloads of messages on their way, shape (k, width), by the seq of their sends, shape (k,).

        Raises
        ------
        KeyError
            If one of them is not on its way.
        """
        found = self.places[seqs % len(self.places)]
        gone = found[:, 0] != seqs
        if gone.any():
            raise KeyError(f"nothing sent as event {seqs[gone][0]} is on its way")
        return self.payloads[found[:, 1]].copy()

    def make_room(self, status: int) -> None:
        """Double what `post` found to be full."""
        if status == ROWS_FULL:
            rows = self.free.size
            self.payloads = np.vstack([self.payloads, np.empty_like(self.payloads)])
            self.free = np.concatenate([np.arange(rows, 2 * rows)[::-1], np.zeros(rows, np.int64)])
            self.free_rows[0] = rows
        else:
            old, size = self.places[self.places[:, 0] >= 0], 2 * len(self.places)
            self.places = np.full((size, 3), -1, np.int64)
            self.places[old[:, 0] % size] = old


@njit()
def longest_gradient(loss, X, y, norms, rows, first, last, theta):  # type: ignore[no-untyped-def]
    """Largest norm of a gradient among records; 0 without records.

    They are ``rows[first:last]``, or, where ``rows`` is None, ``first`` to ``last`` themselves.
    """
    longest = 0.0
    for k in range(first, last):
        r = k
        if rows is not None:
            r = rows[k]
        z = 0.0
        for a in range(theta.size):
            z += X[r, a] * theta[a]
        longest = max(longest, abs(slope(loss, z, y[r])) * norms[r])
    return longest


@njit()
def note_violation(agent, step, size, violations, steps, sizes):  # type: ignore[no-untyped-def]
    """Count a release where a gradient was ``size`` times the bound; keep the first step and the largest size."""
    if violations[agent] == 0:
        steps[agent] = step
    violations[agent] += 1
    sizes[agent] = max(sizes[agent], size)
