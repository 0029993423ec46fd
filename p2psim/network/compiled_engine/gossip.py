"""Gossip and synchronous rounds in the compiled engine.

See :class:`p2psim.network.exchanges.gossip.Gossip` for the modes of gossip. Rounds take no time here: a round ends at
the moment at which it begins.
"""

from p2psim.core.compiled import njit
from p2psim.core.events import COMMIT, DROP, LEARNER, NEIGHBOURS, NONE, OFFLINE, OK, SEND
from p2psim.core.philox import uniform
from p2psim.core.times import until
from p2psim.network.compiled_engine.codes import EDGE, PULL, PUSH, PUSH_PULL
from p2psim.network.compiled_engine.common import (
    ABLE,
    BY_COMMITS,
    BY_TIME,
    EXHAUSTED,
    LAST,
    RUNNING,
    SEQ,
    STATE,
    TOTAL,
    commit,
    end_message,
    make_release,
    put,
)

#: Most events that follow a wake.
MOST = 6


@njit()
def meet(  # type: ignore[no-untyped-def]
    out, at, now, i, j, link, wake, mode, limits, goes_on, releases, versions, wire, counters,
):  # fmt: skip
    """Write what follows when an agent turns to a neighbour, updates being made on hearing; returns the place after."""
    release = NONE
    if mode == EDGE:
        release = make_release(i, limits, goes_on, releases, counters)
    version = NONE if mode == PULL else versions[i]
    arrives, heard = _message(out, at, now, i, j, link, version, wake, release, wire, counters)
    at += 2
    if arrives and mode == PUSH:
        at = _update(out, at, now, j, i, heard, limits, goes_on, releases, versions, counters)
    elif arrives and mode == EDGE:
        if goes_on or releases[j] < limits[j]:
            release = make_release(j, limits, goes_on, releases, counters)
            arrives, back = _message(out, at, now, j, i, link, versions[j], heard, release, wire, counters)
            at += 2
            if arrives:
                at = commit(out, at, now, i, j, back, NONE, versions, counters)
    elif arrives:
        arrives, back = _message(out, at, now, j, i, link, versions[j], heard, NONE, wire, counters)
        at += 2
        if arrives:
            at = _update(out, at, now, i, j, back, limits, goes_on, releases, versions, counters)
        if mode == PUSH_PULL and counters[STATE] == RUNNING:
            at = _update(out, at, now, j, i, heard, limits, goes_on, releases, versions, counters)
    return at


@njit()
def _message(out, at, now, sender, receiver, link, version, cause, release, wire, counters):  # type: ignore[no-untyped-def]
    """Write a send and its end; returns whether it has arrived, and the number of its end."""
    sent = counters[SEQ]
    counters[SEQ] += 2
    put(out, at, sent, now, SEND, sender, receiver, version, cause, release, OK)
    arrives = end_message(out, at + 1, sent + 1, now, receiver, sender, link, version, sent, release, wire)
    return arrives, sent + 1


@njit()
def _update(out, at, now, agent, peer, cause, limits, goes_on, releases, versions, counters):  # type: ignore[no-untyped-def]
    """Write a commit with what was heard, if its agent may make one."""
    if releases[agent] >= limits[agent] and not goes_on:
        return at
    release = make_release(agent, limits, goes_on, releases, counters)
    at = commit(out, at, now, agent, peer, cause, release, versions, counters)
    if counters[STATE] == RUNNING and counters[ABLE] == 0:
        counters[STATE] = EXHAUSTED
    return at


@njit()
def fill(  # type: ignore[no-untyped-def]
    out, interval, miss_key, misses, limits, last_time, heard, releases, wire, counters,
):  # fmt: skip
    """Write rounds until there is no room for another, or the run is over; returns how many events.

    ``heard`` (N,) counts the queries at which each owner could have missed one, each the place of a draw. Other
    arguments as in `p2psim.network.compiled_engine.engine`.
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
