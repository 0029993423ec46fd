"""Where the SimPy engine writes its events: packed at once, in the layout of the event format."""

import struct
from collections import deque

import numpy as np

from p2psim.network.events import EVENT, EVENT_STRUCT

_PACK = struct.Struct(EVENT_STRUCT).pack_into


class EventLog:
    """Events in order of writing, handed out in chunks of a fixed size.

    Parameters
    ----------
    chunk : int
        Events in a chunk; only the last one may be smaller.
    """

    def __init__(self, chunk: int):
        self._bytes = chunk * EVENT.itemsize
        self._buffer = bytearray(self._bytes)
        self._offset = 0
        #: Chunks that can be taken.
        self.full: deque[bytearray] = deque()
        self.seq = 0

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
        _PACK(self._buffer, self._offset, seq, time, version, cause, agent, peer, release, kind, outcome)
        self.seq = seq + 1
        self._offset += 48
        if self._offset == self._bytes:
            self.full.append(self._buffer)
            self._buffer = bytearray(self._bytes)
            self._offset = 0
        return seq

    @property
    def chunk_ready(self) -> bool:
        """Whether a full chunk can be taken."""
        return bool(self.full)

    def take(self) -> np.ndarray:
        """Remove and return the oldest full chunk."""
        return np.frombuffer(self.full.popleft(), dtype=EVENT)

    def rest(self) -> np.ndarray:
        """Remove and return what does not fill a chunk, possibly nothing."""
        events = np.frombuffer(bytes(self._buffer[: self._offset]), dtype=EVENT)
        self._offset = 0
        return events
