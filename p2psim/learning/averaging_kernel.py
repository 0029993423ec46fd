"""The compiled replay of gossip averaging: who hears a model takes the mean of it and its own.

State: ``models`` (n, p); ``heard`` (n, p) and ``heard_seq`` (n,), what each agent heard last and the delivery that
brought it, since an agent may answer between hearing a model and using it; messages on their way
(:mod:`p2psim.learning.in_flight`).
"""

from p2psim.compiled import njit
from p2psim.learning.in_flight import DONE, post, take
from p2psim.network.events import COMMIT, DELIVER, DROP, SEND

#: Status of a stream in which a model is updated without one that was heard.
UNHEARD = -3

# Places in the vector of counters.
COMMITS, SENT, COUNTERS = 0, 1, 2


@njit()
def replay(  # type: ignore[no-untyped-def]
    events, start, models, heard, heard_seq, places, payloads, free, free_rows, counters,
):  # fmt: skip
    """Replay events from ``start``; returns (status, next event)."""
    p = models.shape[1]
    for at in range(start, events.size):
        event = events[at]
        kind, i = event.kind, event.agent
        if kind == SEND and event.version >= 0:
            row = post(event.seq, 0, places, free, free_rows)
            if row < 0:
                return row, at
            for a in range(p):
                payloads[row, a] = models[i, a]
            counters[SENT] += 1
        elif kind in (DELIVER, DROP):
            row, _ = take(event.cause, places, free, free_rows)
            if kind == DELIVER and row >= 0:
                for a in range(p):
                    heard[i, a] = payloads[row, a]
                heard_seq[i] = event.seq
        elif kind == COMMIT:
            if heard_seq[i] != event.cause:
                return UNHEARD, at
            for a in range(p):
                models[i, a] = 0.5 * (models[i, a] + heard[i, a])
            counters[COMMITS] += 1
    return DONE, events.size
