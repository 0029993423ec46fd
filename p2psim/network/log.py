"""Where the SimPy engine writes its events: packed at once, in the layout of the event format."""

import struct
from collections import deque

import numpy as np

from p2psim.network.events import COMMIT, EVENT, EVENT_STRUCT, NOBODY, NONE, OK, SEND, WAKE

_PACK = struct.Struct(EVENT_STRUCT).pack_into
_PACK_THREE = struct.Struct("<" + 3 * EVENT_STRUCT.removeprefix("<")).pack_into

#: Room for what is written at once beyond the end of a chunk, in events.
_SPARE = 3


class EventLog:
    """Events in order of writing, handed out in chunks of a fixed size.

    Parameters
    ----------
    chunk : int
        Events in a chunk; only the last one may be smaller.
    """

    def __init__(self, chunk: int):
        self._bytes = chunk * EVENT.itemsize
        self._room = self._bytes + _SPARE * EVENT.itemsize
        self._buffer = bytearray(self._room)
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
        offset = self._offset
        _PACK(self._buffer, offset, seq, time, version, cause, agent, peer, release, kind, outcome)
        self.seq = seq + 1
        self._offset = offset = offset + 48
        if offset >= self._bytes:
            self._cut()
        return seq

    def write_update(self, time: float, agent: int, peer: int, version: int, release: int) -> int:
        """Append an agent's wake, the commit that it causes, and the send of that model; return the send's number.

        The same as three times `write`, at half the cost.
        """
        seq = self.seq
        offset = self._offset
        commit = seq + 1
        send = seq + 2
        _PACK_THREE(
            self._buffer, offset,
            seq, time, NONE, NONE, agent, NOBODY, NONE, WAKE, OK,
            commit, time, version, seq, agent, NOBODY, release, COMMIT, OK,
            send, time, version, commit, agent, peer, release, SEND, OK,
        )  # fmt: skip
        self.seq = seq + 3
        self._offset = offset = offset + 144
        if offset >= self._bytes:
            self._cut()
        return send

    def _cut(self) -> None:
        """Put full chunks aside."""
        whole, size = self._offset, self._bytes
        written = self._buffer
        while whole >= size:
            self.full.append(written[:size])
            written, whole = written[size:], whole - size
        self._buffer = written[:whole] + bytes(self._room - whole)
        self._offset = whole

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
