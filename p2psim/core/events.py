"""The event format: fixed-width records in global order. Public and versioned.

A stream of events is a sequence of chunks, each a NumPy structured array of dtype `EVENT`. Together with
the data and the noise it is enough to recompute every model, by any program.
"""

from collections.abc import Sequence
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


def event_table(events: np.ndarray) -> "pa.Table":
    """Events as a table with one column per field; kinds and outcomes are words."""
    import pyarrow as pa

    arrays: dict[str, Any] = {}
    for name in COLUMNS:
        values = np.ascontiguousarray(events[name])
        if name in ("kind", "outcome"):
            known = pa.array(KINDS if name == "kind" else OUTCOMES, pa.string())
            arrays[name] = pa.DictionaryArray.from_arrays(pa.array(values.astype(np.int32)), known)
        else:
            arrays[name] = pa.array(values)
    return pa.table(arrays)
