"""What the patterns of the array engine share: how events are written, how messages end, and the counters of a run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.events import COMMIT, DELIVER, DROP, LOSS, NONE, OK
from p2psim.core.philox import uniform

RUNNING, BY_COMMITS, BY_TIME, EXHAUSTED = 0, 1, 2, 3

# Places in the vector of counters that is kept between chunks: the next event's number, commits, agents that may make
# releases, state of the run, and the commit that ends it.
SEQ, TOTAL, ABLE, STATE, LAST = range(5)


class Wire(NamedTuple):
    """What becomes of messages.

    Attributes
    ----------
    key : ndarray of uint64, shape (2,)
        Of the purpose ``loss``.
    chances : ndarray, shape (m,)
        Probability that a delivery over each entry of `Graph.indices` is lost.
    drawn : ndarray of int64, shape (n + 1,)
        Draws that each sender has made; the last are the learner's.
    """

    key: np.ndarray
    chances: np.ndarray
    drawn: np.ndarray


@njit(inline="always")
def put(out, at, seq, time, kind, agent, peer, version, cause, release, outcome):  # type: ignore[no-untyped-def]
    """Write one event."""
    event = out[at]
    event.seq = seq
    event.time = time
    event.version = version
    event.cause = cause
    event.agent = agent
    event.peer = peer
    event.release = release
    event.kind = kind
    event.outcome = outcome


@njit(inline="always")
def make_release(agent, limits, goes_on, releases, counters):  # type: ignore[no-untyped-def]
    """Number of the release that an agent makes now; `NONE` if it may make no more."""
    number = releases[agent]
    if number >= limits[agent]:
        return NONE
    releases[agent] = number + 1
    if number + 1 == limits[agent] and not goes_on:
        counters[ABLE] -= 1
    return number


@njit()
def commit(out, at, now, agent, peer, cause, release, versions, counters):  # type: ignore[no-untyped-def]
    """Write an agent's commit; ends the run if it was the last."""
    versions[agent] += 1
    put(out, at, counters[SEQ], now, COMMIT, agent, peer, versions[agent], cause, release, OK)
    counters[SEQ] += 1
    counters[TOTAL] += 1
    if counters[TOTAL] == counters[LAST]:
        counters[STATE] = BY_COMMITS
    return at + 1


@njit()
def end_message(out, at, seq, now, receiver, sender, link, version, sent, release, wire):  # type: ignore[no-untyped-def]
    """Write how a message ends at a receiver; returns whether it has arrived.

    Each delivery takes the next draw of its sender, as `channels.loss.open_loss` has it; where ``wire`` is None none is
    lost.
    """
    if wire is not None:
        draw = uniform(wire.key, sender, wire.drawn[sender])
        wire.drawn[sender] += 1
        if draw < wire.chances[link]:
            put(out, at, seq, now, DROP, receiver, sender, version, sent, release, LOSS)
            return False
    put(out, at, seq, now, DELIVER, receiver, sender, version, sent, release, OK)
    return True
