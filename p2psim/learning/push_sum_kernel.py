"""The compiled replay of push-sum.

State: ``mass`` (n, p + 1), each agent's sum and, last, its weight; ``models`` (n, p), sums by weights; ``heard``
(n, p + 1) and ``heard_seq`` (n,), what each agent heard last and the delivery that brought it; messages on their way
(:mod:`p2psim.learning.in_flight`).
"""

from p2psim.compiled import njit
from p2psim.learning.averaging_kernel import COMMITS, SENT, UNHEARD
from p2psim.learning.in_flight import DONE, post, take
from p2psim.network.events import COMMIT, DELIVER, DROP, SEND


@njit()
def replay(  # type: ignore[no-untyped-def]
    events, start, mass, models, heard, heard_seq, places, payloads, free, free_rows, counters
):
    """Replay events from ``start``; returns (status, next event)."""
    p = models.shape[1]
    for at in range(start, events.size):
        event = events[at]
        kind, i = event.kind, event.agent
        if kind == SEND and event.version >= 0:
            row = post(event.seq, 0, places, free, free_rows)
            if row < 0:
                return row, at
            for a in range(p + 1):
                mass[i, a] *= 0.5
                payloads[row, a] = mass[i, a]
            counters[SENT] += 1
        elif kind in (DELIVER, DROP):
            row, _ = take(event.cause, places, free, free_rows)
            if kind == DELIVER and row >= 0:
                heard[i] = payloads[row]
                heard_seq[i] = event.seq
        elif kind == COMMIT:
            if heard_seq[i] != event.cause:
                return UNHEARD, at
            for a in range(p + 1):
                mass[i, a] += heard[i, a]
            for a in range(p):
                models[i, a] = mass[i, a] / mass[i, p]
            counters[COMMITS] += 1
    return DONE, events.size
