"""Gossip in the array engine; see :class:`p2psim.network.exchanges.gossip.Gossip` for what happens and why."""

from p2psim.compiled import njit
from p2psim.network.array_parts import ABLE, EXHAUSTED, RUNNING, SEQ, STATE, commit, make_release, put
from p2psim.network.events import DELIVER, NONE, OK, SEND

PUSH, PULL, PUSH_PULL, EDGE = 2, 3, 4, 5

#: Most events that follow a wake.
MOST = 6


@njit()
def meet(  # type: ignore[no-untyped-def]
    out, at, now, i, j, wake, mode, limits, goes_on, releases, versions, counters,
):  # fmt: skip
    """Write what follows when an agent turns to a neighbour, updates being made on hearing; returns the place after."""
    release = NONE
    if mode == EDGE:
        release = make_release(i, limits, goes_on, releases, counters)
    version = NONE if mode == PULL else versions[i]
    at, heard = _message(out, at, now, i, j, version, wake, release, counters)
    if mode == PUSH:
        return _update(out, at, now, j, i, heard, limits, goes_on, releases, versions, counters)
    if mode == EDGE:
        if goes_on or releases[j] < limits[j]:
            release = make_release(j, limits, goes_on, releases, counters)
            at, back = _message(out, at, now, j, i, versions[j], heard, release, counters)
            at = commit(out, at, now, i, j, back, NONE, versions, counters)
        if counters[STATE] == RUNNING and counters[ABLE] == 0:
            counters[STATE] = EXHAUSTED
        return at
    at, back = _message(out, at, now, j, i, versions[j], heard, NONE, counters)
    at = _update(out, at, now, i, j, back, limits, goes_on, releases, versions, counters)
    if mode == PUSH_PULL and counters[STATE] == RUNNING:
        at = _update(out, at, now, j, i, heard, limits, goes_on, releases, versions, counters)
    return at


@njit()
def _message(out, at, now, sender, receiver, version, cause, release, counters):  # type: ignore[no-untyped-def]
    """Write a send and its delivery; returns the place after, and the delivery's number."""
    seq = counters[SEQ]
    put(out, at, seq, now, SEND, sender, receiver, version, cause, release, OK)
    put(out, at + 1, seq + 1, now, DELIVER, receiver, sender, version, seq, release, OK)
    counters[SEQ] += 2
    return at + 2, seq + 1


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
