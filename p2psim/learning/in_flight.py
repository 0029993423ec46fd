"""Payloads on their way to one receiver each, for compiled replays.

A message is found by the sequence number of its send: ``places`` (places, 3), a power of two of them, holds at ``seq of
the send mod places`` that number (−1 for none), the row of its payload, and a tag. Payloads lie in the rows of a pool.
``free`` (rows,) is a stack of the rows that hold none, and ``free_rows`` (1,) is their number. So memory follows the
number of messages that are on their way at the same time, whether they arrive or are lost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from p2psim.core.compiled import njit

#: Status of a kernel that has replayed all of its events.
DONE = 0

#: What `post` returns in place of a row, and a kernel as its status, when the driver has to make room.
PLACES_FULL, ROWS_FULL = -1, -2


_NO_PLACES, _FREE = np.full((64, 3), -1, np.int64), np.arange(16, dtype=np.int64)[::-1].copy()


class InFlight(NamedTuple):
    """The arrays of `post` and `take`; see the module's documentation."""

    places: np.ndarray
    payloads: np.ndarray
    free: np.ndarray
    free_rows: np.ndarray

    @classmethod
    def of(cls, width: int) -> InFlight:
        """Nothing on its way; ``width`` numbers in a payload."""
        return cls(_NO_PLACES.copy(), np.empty((16, width)), _FREE.copy(), np.array([16]))

    @property
    def messages(self) -> int:
        """Messages on their way."""
        return int(self.free.size - self.free_rows[0])

    def payloads_of(self, seqs: np.ndarray) -> np.ndarray:
        """Payloads of messages on their way, shape (k, width), by the seq of their sends, shape (k,).

        Raises
        ------
        KeyError
            If one of them is not on its way.
        """
        rows = self.places[seqs % len(self.places)]
        ended = rows[:, 0] != seqs
        if ended.any():
            raise KeyError(f"nothing sent as event {seqs[ended][0]} is on its way")
        return self.payloads[rows[:, 1]].copy()

    def with_room(self, status: int) -> InFlight:
        """The same with a quarter more rows, or twice as many places, where `post` found these to be full."""
        if status == ROWS_FULL:
            rows, width = self.payloads.shape
            more = max(64, rows // 4)
            payloads = np.vstack([self.payloads, np.empty((more, width))])
            free = np.concatenate([np.arange(rows, rows + more)[::-1], np.zeros(rows, np.int64)])
            return self._replace(payloads=payloads, free=free, free_rows=np.array([more]))
        old, size = self.places[self.places[:, 0] >= 0], 2 * len(self.places)
        places = np.full((size, 3), -1, np.int64)
        places[old[:, 0] % size] = old
        return self._replace(places=places)


@njit(inline="always")
def copy_row(row, to):  # type: ignore[no-untyped-def]
    """Copy a row of numbers: ``to[:] = row`` would compile the text of an error of shapes, which takes seconds."""
    for a in range(to.size):
        to[a] = row[a]


@njit(inline="always")
def post(seq, tag, mail):  # type: ignore[no-untyped-def]
    """Row for the payload of a message that is sent now."""
    place = seq & (mail.places.shape[0] - 1)
    if mail.places[place, 0] >= 0:
        return PLACES_FULL
    if mail.free_rows[0] == 0:
        return ROWS_FULL
    mail.free_rows[0] -= 1
    row = mail.free[mail.free_rows[0]]
    mail.places[place, 0], mail.places[place, 1], mail.places[place, 2] = seq, row, tag
    return row


@njit(inline="always")
def take(seq, mail):  # type: ignore[no-untyped-def]
    """Row and tag of a message that ends; −1 for one that carried no model. The row is free from now on."""
    place = seq & (mail.places.shape[0] - 1)
    if mail.places[place, 0] != seq:
        return -1, -1
    mail.places[place, 0] = -1
    row = mail.places[place, 1]
    mail.free[mail.free_rows[0]] = row
    mail.free_rows[0] += 1
    return row, mail.places[place, 2]
