"""Synchronous rounds on the array engine: nothing takes time, so a round is over in the moment in which it begins."""

from p2psim.compiled import njit
from p2psim.moments import until
from p2psim.network.array_parts import (
    ABLE,
    BY_COMMITS,
    BY_TIME,
    EXHAUSTED,
    LAST,
    RUNNING,
    SEQ,
    STATE,
    TOTAL,
    end_message,
    make_release,
    put,
)
from p2psim.network.events import COMMIT, DROP, LEARNER, NEIGHBOURS, NONE, OFFLINE, OK, SEND
from p2psim.streams import uniform


@njit()
def fill(  # type: ignore[no-untyped-def]
    out, interval, miss_key, misses, limits, last_time, heard, releases, wire, counters,
):  # fmt: skip
    """Write rounds until there is no room for another, or the run is over; returns how many events.

    ``heard`` (N,) counts the queries at which each owner could have missed one, each the place of a draw. Other
    arguments as in `p2psim.network.array_engine`.
    """
    owners = releases.size
    at = 0
    while at + 2 + 3 * owners <= out.size:
        began = until((counters[TOTAL] + 1) * interval, last_time)
        if began > last_time:
            counters[STATE] = BY_TIME
            break
        k, query = counters[TOTAL], counters[SEQ]
        seq = query + 1
        put(out, at, query, began, SEND, LEARNER, NEIGHBOURS if owners > 1 else 0, k, NONE, NONE, OK)
        at += 1
        for i in range(owners):
            arrived = end_message(out, at, seq, began, i, LEARNER, i, k, query, NONE, wire)
            at += 1
            seq += 1
            if not arrived or releases[i] >= limits[i]:
                continue
            if misses is not None:
                missed = uniform(miss_key, i, heard[i]) < misses[i]
                heard[i] += 1
                if missed:
                    put(out, at, seq, began, DROP, i, LEARNER, k, seq - 1, NONE, OFFLINE)
                    at += 1
                    seq += 1
                    continue
            release = make_release(i, limits, False, releases, counters)
            put(out, at, seq, began, SEND, i, LEARNER, k, seq - 1, release, OK)
            end_message(out, at + 1, seq + 1, began, LEARNER, i, i, k, seq, release, wire)
            at += 2
            seq += 2
        put(out, at, seq, began, COMMIT, LEARNER, NEIGHBOURS, k + 1, query, NONE, OK)
        at += 1
        counters[SEQ] = seq + 1
        counters[TOTAL] = k + 1
        if counters[TOTAL] == counters[LAST]:
            counters[STATE] = BY_COMMITS
        elif counters[ABLE] == 0:
            counters[STATE] = EXHAUSTED
        if counters[STATE] != RUNNING:
            break
    return at
