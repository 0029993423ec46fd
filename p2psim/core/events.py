"""The event format: fixed-width records in global order. Public and versioned.

A stream of events is a sequence of chunks, each a NumPy structured array of dtype `EVENT`. Together with
the data and the noise it is enough to recompute every model, by any program.
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

#: Raised whenever the meaning of a field, a code or the order changes.
FORMAT_VERSION: Final = 5

#: One event. 48 bytes, little-endian, aligned.
EVENT: Final = np.dtype(
    {
        "names": ["seq", "time", "version", "cause", "agent", "peer", "release", "kind", "outcome"],
        "formats": ["<i8", "<f8", "<i8", "<i8", "<i4", "<i4", "<i4", "u1", "u1"],
        "offsets": [0, 8, 16, 24, 32, 36, 40, 44, 45],
        "itemsize": 48,
    }
)

#: The same layout for :mod:`struct`.
EVENT_STRUCT: Final = "<qdqqiiiBBxx"

#: ``retry``: a message is sent again, with the same bytes, to one receiver. ``begin``: an agent begins to compute, with
#: the model that it reads now.
KINDS: Final = ("wake", "send", "deliver", "drop", "commit", "join", "leave", "retry", "begin")
WAKE, SEND, DELIVER, DROP, COMMIT, JOIN, LEAVE, RETRY, BEGIN = range(len(KINDS))

#: ``ok``; for a wake: ``queued`` or ``busy`` (the learner was busy, or the agent computes), ``offline`` (the learner
#: was away), ``spent`` (no release is left), ``alone`` (no link is there now); for a drop: ``superseded`` (a newer
#: query, or model, came first), ``spent``, ``offline`` (who was to compute has left), ``alone`` (no link is there for
#: what was computed), or, as for a retry, why a message did not arrive: ``loss``, ``collision``, ``offline``, ``busy``
#: (its sender was sending), ``gave-up`` (its sender never found the medium free). A retry is ``unacknowledged`` where
#: only the acknowledgement was lost.
OUTCOMES: Final = (
    "ok", "queued", "busy", "spent", "loss", "collision", "offline", "superseded", "gave-up", "unacknowledged",
    "alone",
)  # fmt: skip
OK, QUEUED, BUSY, SPENT, LOSS, COLLISION, OFFLINE, SUPERSEDED, GAVE_UP, UNACKNOWLEDGED, ALONE = range(
    len(OUTCOMES)
)

#: Why a message does not arrive.
FAILURES: Final = (LOSS, COLLISION, OFFLINE, BUSY, GAVE_UP)

#: Index of the central learner of a star.
LEARNER: Final = -1
#: Peer of an event that concerns no one else.
NOBODY: Final = -2
#: Peer of a send that all neighbours may hear, and of a learner's commit with all the answers to its last query.
NEIGHBOURS: Final = -3

#: ``cause`` of an event that nothing in the stream caused, ``release`` where nothing is released.
NONE: Final = -1


def join(chunks: Sequence[np.ndarray]) -> np.ndarray:
    """One array of the events of all chunks, in order, of dtype `EVENT`.

    NumPy's own ``concatenate`` gives records of 46 bytes, without the padding.
    """
    events = np.zeros(sum(chunk.size for chunk in chunks), EVENT)
    start = 0
    for chunk in chunks:
        events[start : start + chunk.size] = chunk
        start += chunk.size
    return events


#: Fields of an event in the order of the columns of ``events.parquet``.
COLUMNS: Final = ("seq", "time", "kind", "agent", "peer", "version", "cause", "release", "outcome")
#: Those of them that count events: numbers of events, and of commits.
COUNTS: Final = ("seq", "version", "cause")


def event_table(events: np.ndarray, brief: bool = False) -> "pa.Table":
    """Events as a table with one column per field; kinds and outcomes are words.

    Parameters
    ----------
    events : ndarray of EVENT
    brief : bool
        Have four bytes for each number of `COUNTS`, if the numbers of all events fit: the others are not larger.
    """
    import pyarrow as pa

    arrays: dict[str, Any] = {}
    brief = brief and bool(events["seq"].max(initial=0) < 2**31)
    for name in COLUMNS:
        if name in ("kind", "outcome"):
            known = _words(KINDS if name == "kind" else OUTCOMES)
            codes = number_column(events[name].astype(np.int8))
            arrays[name] = pa.DictionaryArray.from_arrays(codes, known, safe=False)
        else:
            values = events[name]
            arrays[name] = number_column(values.astype(np.int32) if brief and name in COUNTS else values)
    return pa.table(arrays)


@cache
def _words(known: tuple[str, ...]) -> "pa.StringArray":
    return text_column(known)


def number_column(values: np.ndarray, known: np.ndarray | None = None) -> "pa.Array":
    """Numbers or truth values as a column of a table, null where they are not `known`.

    ``pyarrow.array`` would import pandas, to see whether it is given something of it; a simulation needs none.
    """
    import pyarrow as pa

    content = np.packbits(values, bitorder="little") if values.dtype == bool else np.ascontiguousarray(values)
    valid = None if known is None or known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, values.size, [valid, pa.py_buffer(content)])


def text_column(texts: Sequence[str]) -> "pa.StringArray":
    """Text as a column of a table; see `number_column`."""
    import pyarrow as pa

    written, ends = "".join(texts).encode(), np.zeros(len(texts) + 1, np.int32)
    sizes = map(len, texts) if written.isascii() else (len(text.encode()) for text in texts)
    np.cumsum(np.fromiter(sizes, np.int32, len(texts)), out=ends[1:])
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends), pa.py_buffer(written))


def numbers_of(column: "pa.ChunkedArray | pa.Array") -> np.ndarray:
    """Numbers or truth values of a column, NaN where null; see `number_column`."""
    whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    there, content = whole.buffers()
    part = slice(whole.offset, whole.offset + len(whole))

    def bits(buffer: "pa.Buffer | None") -> np.ndarray:
        return np.unpackbits(np.frombuffer(buffer or b"", np.uint8), bitorder="little")[part].astype(bool)

    kind = whole.type.to_pandas_dtype()
    values = bits(content) if kind is np.bool_ else np.frombuffer(content or b"", kind)[part]
    return np.where(bits(there), values, np.nan) if whole.null_count else values
