"""The layout of events is public: it must not move by accident, nor depend on chunks or engines."""

import struct

import numpy as np
import pytest
from network_cases import Broadcast, Channel, Gossip, Poll, Request, complete, glue, play, ring, star

from p2psim.core import events as format_
from p2psim.core.events import EVENT, EVENT_STRUCT
from p2psim.network.simpy_engine.engine import EventLog

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
        assert format_.KINDS == (
            "wake",
            "send",
            "deliver",
            "drop",
            "commit",
            "join",
            "leave",
            "retry",
            "begin",
        )
        assert format_.OUTCOMES == (
            "ok", "queued", "busy", "spent", "loss", "collision", "offline", "superseded", "gave-up", "unacknowledged",
            "alone",
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
        chunks = [*log.take(), log.rest()]
        assert [chunk.size for chunk in chunks] == [2, 2, 1]
        names = ("seq", "time", "kind", "agent", "peer", "version", "cause", "release", "outcome")
        written = [tuple(event[name].item() for name in names) for event in glue(*chunks)]
        assert written == [(seq, *row) for seq, row in enumerate(rows)]
        assert log.rest().size == 0

    @pytest.mark.parametrize("chunk", [1, 2, 3, 4, 7, 36, 50])
    def test_chunks_do_not_change_what_is_written(self, chunk: int) -> None:
        rows = [(0.5 * i, i % 8, i % 5, -1, i + 5, i - 1, -1, i % 10) for i in range(36)]
        whole, cut = EventLog(36), EventLog(chunk)
        for row in rows:
            whole.write(*row)
            cut.write(*row)
        parts = [*cut.take(), cut.rest()]
        assert [part.size for part in parts] == [chunk] * (36 // chunk) + [36 % chunk]
        assert b"".join(part.tobytes() for part in parts) == next(whole.take()).tobytes()


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
