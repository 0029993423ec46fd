"""Gossip in the array engine; see :class:`p2psim.network.exchanges.gossip.Gossip` for what happens and why."""

from p2psim.compiled import njit
from p2psim.network.array_parts import (
    ABLE,
    EXHAUSTED,
    RUNNING,
    SEQ,
    STATE,
    commit,
    end_message,
    make_release,
    put,
)
from p2psim.network.events import NONE, OK, SEND

PUSH, PULL, PUSH_PULL, EDGE = 2, 3, 4, 5

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
