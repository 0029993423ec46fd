"""Where the SimPy engine writes its events: packed at once, in the layout of the event format."""

import struct
from collections import deque

import numpy as np

from p2psim.core.events import COMMIT, DELIVER, EVENT, EVENT_STRUCT, NOBODY, NONE, OK, SEND, WAKE

_PACK = struct.Struct(EVENT_STRUCT).pack_into
# An agent's wake, its commit and its send: what is the same in all of them is packed beforehand.
_PACK_UPDATE = struct.Struct("<qd16si12sqdqqi4si4sqdqqiii4s").pack_into
_PACK_END = struct.Struct("<qdqqiii4s").pack_into
_DELIVERIES = struct.pack("<BBxx", DELIVER, OK)
_NONES = struct.pack("<qq", NONE, NONE)
_WAKES = struct.pack("<iiBBxx", NOBODY, NONE, WAKE, OK)
_NOBODY = struct.pack("<i", NOBODY)
_COMMITS = struct.pack("<BBxx", COMMIT, OK)
_SENDS = struct.pack("<BBxx", SEND, OK)

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
        #: Chunks that can be taken: the memory that they are in, and where they begin there.
        self.full: deque[tuple[bytearray, int]] = deque()
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

    def write_delivery(
        self, time: float, agent: int, peer: int, version: int, cause: int, release: int
    ) -> int:
        """Append a delivery, the event that most messages end with, and return its number; as `write` does."""
        seq = self.seq
        offset = self._offset
        _PACK_END(self._buffer, offset, seq, time, version, cause, agent, peer, release, _DELIVERIES)
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
        _PACK_UPDATE(
            self._buffer, offset,
            seq, time, _NONES, agent, _WAKES,
            commit, time, version, seq, agent, _NOBODY, release, _COMMITS,
            send, time, version, commit, agent, peer, release, _SENDS,
        )  # fmt: skip
        self.seq = seq + 3
        self._offset = offset = offset + 144
        if offset >= self._bytes:
            self._cut()
        return send

    def _cut(self) -> None:
        """Put full chunks aside, with the memory that they are in."""
        written, begin, end = self._buffer, 0, self._offset
        while end - begin >= self._bytes:
            self.full.append((written, begin))
            begin += self._bytes
        self._buffer = bytearray(self._room)
        self._buffer[: end - begin] = written[begin:end]
        self._offset = end - begin

    @property
    def chunk_ready(self) -> bool:
        """Whether a full chunk can be taken."""
        return bool(self.full)

    def take(self) -> np.ndarray:
        """Remove and return the oldest full chunk."""
        buffer, begin = self.full.popleft()
        return np.frombuffer(buffer, EVENT, self._bytes // EVENT.itemsize, begin)

    def rest(self) -> np.ndarray:
        """Remove and return what does not fill a chunk, possibly nothing."""
        events = np.frombuffer(bytes(self._buffer[: self._offset]), dtype=EVENT)
        self._offset = 0
        return events
