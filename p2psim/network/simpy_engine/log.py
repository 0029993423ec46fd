"""Where the SimPy engine writes its events, in the layout of the event format."""

import struct
from collections.abc import Iterator

import numpy as np

from p2psim.core.events import EVENT, EVENT_STRUCT

_PACK = struct.Struct(EVENT_STRUCT).pack_into
_SIZE = EVENT.itemsize


class EventLog:
    """Events in order of writing, handed out in chunks of a fixed size.

    Parameters
    ----------
    chunk : int
        Events in a chunk; only the last one may be smaller.

    Attributes
    ----------
    seq : int
        Number of the next event.
    full : list of ndarray
        Chunks that have not been taken.
    """

    def __init__(self, chunk: int):
        self._chunk = chunk
        self._bytes = bytearray(chunk * _SIZE)
        self._size = 0
        self.seq = 0
        self.full: list[np.ndarray] = []

    def __repr__(self) -> str:
        return f"<EventLog of {self.seq} events>"

    def write(
        self,
        time: float,
        kind: int,
        agent: int,
        peer: int,
        version: int,
        cause: int,
        release: int,
        outcome: int,
    ) -> int:
        """Append one event and return its sequence number."""
        seq = self.seq
        offset = self._size * _SIZE
        _PACK(self._bytes, offset, seq, time, version, cause, agent, peer, release, kind, outcome)
        self.seq = seq + 1
        self._size += 1
        if self._size == self._chunk:
            self.full.append(self.rest())
        return seq

    def take(self) -> Iterator[np.ndarray]:
        """Remove and return full chunks, the oldest first."""
        while self.full:
            yield self.full.pop(0)

    def rest(self) -> np.ndarray:
        """Remove and return what does not fill a chunk, possibly nothing."""
        events = np.frombuffer(self._bytes, EVENT, self._size)
        self._bytes, self._size = bytearray(self._chunk * _SIZE), 0
        return events
