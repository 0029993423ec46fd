"""The layout of events is public: it must not move by accident, nor depend on chunks or engines."""

import struct

import numpy as np
import pytest
from network_cases import Broadcast, Channel, Gossip, Poll, Request, complete, glue, play, ring, star

from p2psim.core import events as format_
from p2psim.core.events import COMMIT, DELIVER, EVENT, EVENT_STRUCT, SEND, WAKE
from p2psim.network.simpy_engine.log import EventLog

#: The format as it is documented: name, type, offset in bytes.
DOCUMENTED = [
    ("seq", "<i8", 0),
    ("time", "<f8", 8),
    ("version", "<i8", 16),
    ("cause", "<i8", 24),
    ("agent", "<i4", 32),
    ("peer", "<i4", 36),
    ("release", "<i4", 40),
    ("kind", "|u1", 44),
    ("outcome", "|u1", 45),
]


class TestLayout:
    def test_fields(self) -> None:
        fields = EVENT.fields
        assert fields is not None
        assert [(name, fields[name][0].str, fields[name][1]) for name in EVENT.names or ()] == DOCUMENTED
        assert EVENT.itemsize == 48

    def test_struct_layout_is_that_of_the_dtype(self) -> None:
        assert struct.calcsize(EVENT_STRUCT) == 48
        values = (2**40 + 1, 1.5, 2**41 + 2, 2**42 + 3, -1, -3, 2**31 - 1, 200, 255)
        packed = np.frombuffer(struct.pack(EVENT_STRUCT, *values), EVENT)[0]
        assert packed.item() == values

    def test_codes(self) -> None:
        """Codes are stored in files; a new one is added at the end."""
        assert format_.KINDS == ("wake", "send", "deliver", "drop", "commit", "join", "leave", "retry")
        assert format_.OUTCOMES == (
            "ok", "queued", "busy", "spent", "loss", "collision", "offline", "superseded", "gave-up", "unacknowledged",
        )  # fmt: skip
        assert (format_.LEARNER, format_.NOBODY, format_.NEIGHBOURS, format_.NONE) == (-1, -2, -3, -1)
        for names in (format_.KINDS, format_.OUTCOMES):
            assert [getattr(format_, name.upper().replace("-", "_")) for name in names] == list(
                range(len(names))
            )

    def test_log_writes_what_it_is_told(self) -> None:
        log = EventLog(2)
        rows = [(0.5 * i, i % 7, i - 1, -2, i, i - 1, -1, i % 8) for i in range(5)]
        assert [log.write(*row) for row in rows] == [0, 1, 2, 3, 4]
        chunks = []
        while log.chunk_ready:
            chunks.append(log.take())
        chunks.append(log.rest())
        assert [chunk.size for chunk in chunks] == [2, 2, 1]
        names = ("seq", "time", "kind", "agent", "peer", "version", "cause", "release", "outcome")
        written = [tuple(event[name].item() for name in names) for event in glue(*chunks)]
        assert written == [(seq, *row) for seq, row in enumerate(rows)]
        assert log.rest().size == 0

    def test_log_writes_a_delivery_as_any_event(self) -> None:
        short, long = EventLog(3), EventLog(3)
        for i in range(7):
            assert short.write_delivery(0.5 * i, i, -1, i + 5, i - 1, -1) == i
            assert long.write(0.5 * i, DELIVER, i, -1, i + 5, i - 1, -1, 0) == i
        for _ in range(2):
            assert short.take().tobytes() == long.take().tobytes()
        assert short.rest().tobytes() == long.rest().tobytes()

    @pytest.mark.parametrize("chunk", [1, 2, 3, 4, 7])
    def test_log_writes_an_update_as_its_three_events(self, chunk: int) -> None:
        at_once, one_by_one = EventLog(chunk), EventLog(chunk)
        for i in range(9):
            assert at_once.write(i, WAKE, 8, -2, -1, -1, -1, 2) == 4 * i
            assert at_once.write_update(i + 0.5, i, i - 3, i + 5, i - 1) == 4 * i + 3
            one_by_one.write(i, WAKE, 8, -2, -1, -1, -1, 2)
            wake = one_by_one.write(i + 0.5, WAKE, i, -2, -1, -1, -1, 0)
            commit = one_by_one.write(i + 0.5, COMMIT, i, -2, i + 5, wake, i - 1, 0)
            one_by_one.write(i + 0.5, SEND, i, i - 3, i + 5, commit, i - 1, 0)
        parts = [[*(log.take() for _ in range(36 // chunk)), log.rest()] for log in (at_once, one_by_one)]
        assert [part.tobytes() for part in parts[0]] == [part.tobytes() for part in parts[1]]
        assert sum(part.size for part in parts[0]) == 36


CASES = {
    "request": (star(4), Request(), Channel()),
    "broadcast": (complete(7), Broadcast(), Channel()),
    "gossip": (ring(5), Gossip(), Channel()),
    "poll": (star(4), Poll(), Channel(latency=0.1, loss=0.3)),
}


class TestJoin:
    def test_records_keep_their_layout(self) -> None:
        """``numpy.concatenate`` would drop the padding, and with it the format."""
        events, _ = play(star(3), Request(), commits=20)
        joined = format_.join([events[:7], events[7:8], events[8:]])
        assert joined.dtype == EVENT
        assert joined.tobytes() == events.tobytes()

    def test_of_nothing(self) -> None:
        assert format_.join([]).dtype == EVENT

    @pytest.mark.parametrize("engine", ["simpy", "array"])
    def test_a_stream_read_at_once_has_the_format(self, engine: str) -> None:
        events, _ = play(star(3), Request(), commits=20, engine=engine, chunk=7)
        assert events.dtype == EVENT


class TestChunks:
    @pytest.mark.parametrize("engine", ["simpy", "auto"])
    @pytest.mark.parametrize("case", CASES)
    @pytest.mark.parametrize("chunk", [1, 2, 7, 64, 10_000])
    def test_size_of_chunks_changes_no_byte(self, case: str, engine: str, chunk: int) -> None:
        where, exchange, channel = CASES[case]
        whole, ended = play(where, exchange, channel, engine=engine, commits=150)
        parts, ended_too = play(where, exchange, channel, engine=engine, commits=150, chunk=chunk)
        assert parts.tobytes() == whole.tobytes()
        assert (ended, ended_too) == ("commits", "commits")

    @pytest.mark.parametrize("engine", ["simpy", "array"])
    @pytest.mark.parametrize("chunk", [1, 5, 100])
    def test_all_chunks_but_the_last_are_full(self, engine: str, chunk: int) -> None:
        from p2psim.core.randomness import Streams
        from p2psim.network.section import Network
        from p2psim.network.simulation import simulate_events

        network = Network(star(3), Request())
        stream = simulate_events(network, Streams(), engine=engine, commits=100, chunk=chunk)
        assert stream.engine == engine
        sizes = [part.size for part in stream]
        assert sum(sizes) == 600
        assert set(sizes[:-1]) <= {chunk}
        assert 0 < sizes[-1] <= chunk

    @pytest.mark.parametrize("engine", ["simpy", "array"])
    def test_padding_is_zero(self, engine: str) -> None:
        """Bytes 46 and 47 of each event; what happened to be in memory must not get into files."""
        np.full((1 << 15) * 8, 0xFF, np.uint8)  # leaves dirty memory behind for the allocator
        written, _ = play(complete(7), Broadcast(), engine=engine, commits=5000, chunk=1000)
        assert not written.view(np.uint8).reshape(-1, 48)[:, 46:].any()
