"""Kernels of networks where no message takes time, and the clocks and draws that they share with other networks.

The gap before an agent's k-th tick is draw k of its stream, divided by its rate, and ties in time go to the lower
agent; the clocks of a few agents are a heap, those of many are sorted window by window. A neighbour is drawn uniformly,
or in proportion to the weight of the link. See :class:`p2psim.network.exchanges.gossip.Gossip` for the modes of gossip.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.events import COMMIT, DELIVER, DROP, LEARNER, LOSS, NEIGHBOURS, NONE, OK, SEND
from p2psim.core.philox import exponential, uniform
from p2psim.network.compiled_engine import state as st

#: The clocks of so many agents are no heap.
MANY = 4096
#: Ticks for each agent, about, that are drawn and sorted at a time. Of fewer, more time goes into looking for them; of
#: more, into sorting.
_SHARE = 0.125


@njit()
def sift_down(times, agents, place, size):  # type: ignore[no-untyped-def]
    """Restore the heap below a place; the earliest time, then the lowest agent, is on top.

    Entries move up into the hole that the sinking one leaves. Which of two children comes first nobody can predict, so
    that it is added, and not branched on; equal times are rare.
    """
    time, agent = times[place], agents[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size:
            left, right = times[child], times[child + 1]
            if left == right:
                child += agents[child + 1] < agents[child]
            else:
                child += right < left
        first = times[child]
        if first > time or (first == time and agents[child] > agent):
            break
        times[place], agents[place] = first, agents[child]
        place = child
    times[place], agents[place] = time, agent


@njit()
def first_ticks(key, rates, times, agents):  # type: ignore[no-untyped-def]
    """Each agent's first tick, as a heap."""
    n = times.size
    for i in range(n):
        times[i] = exponential(key, i, np.int64(0)) / rates[i]
        agents[i] = i
    for place in range(n // 2, -1, -1):
        sift_down(times, agents, place, n)


@njit()
def _ticks_before(key, rates, times, places, end, expected):  # type: ignore[no-untyped-def]
    """Ticks before a moment, agent by agent, and whose they are; sets each clock, at first −1, to its next one."""
    moments, agents, count = np.empty(expected), np.empty(expected, np.int32), 0
    for i in range(times.size):
        now = times[i]
        if now < 0.0:
            now = exponential(key, i, np.int64(0)) / rates[i]
        while now < end:
            if count == moments.size:
                moments, agents = np.append(moments, moments), np.append(agents, agents)
            moments[count], agents[count] = now, i
            count += 1
            places[i] += 1
            now += exponential(key, i, places[i]) / rates[i]
        times[i] = now
    return moments[:count], agents[:count]


def ticks(key: np.ndarray, rates: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Ticks of all agents in order, without end, as arrays of times and agents: those that a heap would give.

    A heap of many clocks lies all over the memory. When clocks tick does not depend on what agents do, so that all
    ticks before a moment can be drawn agent by agent, and sorted. Of equal times the lower agent's comes first.

    Parameters
    ----------
    key : ndarray of uint64, shape (2,)
        Of the purpose ``clocks``.
    rates : ndarray, shape (n,)
        Ticks of each agent per unit of time.
    """
    times, places = np.full(rates.size, -1.0), np.zeros(rates.size, np.int64)
    end = width = _SHARE * rates.size / float(rates.sum())
    while True:
        moments, agents = _ticks_before(key, rates, times, places, end, int(1.1 * _SHARE * rates.size) + 1)
        order = np.argsort(moments)
        if (np.diff(moments[order]) == 0).any():
            order = np.argsort(moments, kind="stable")
        yield moments[order], agents[order]
        end += width


@njit()
def running_weights(indptr, weights):  # type: ignore[no-untyped-def]
    """Sums of each agent's weights up to each link, shape (m,)."""
    out = np.empty(weights.size)
    for i in range(indptr.size - 1):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            total += weights[e]
            out[e] = total
    return out


@njit()
def draw_link(key, agent, place, indptr, running):  # type: ignore[no-untyped-def]
    """Place in ``indices`` of the neighbour that an agent turns to at a place of its stream.

    Parameters
    ----------
    key : ndarray of uint64, shape (2,)
        Of the purpose ``peers``.
    agent, place : int
    indptr : ndarray
    running : ndarray
        From `running_weights`; empty for a uniform choice.
    """
    first, last = indptr[agent], indptr[agent + 1]
    u = uniform(key, np.int64(agent), place)
    if running.size == 0:
        return first + np.int64(u * (last - first))
    mark = u * running[last - 1]
    low, high = first, last - 1  # rounding can lift the mark to the whole sum: that is the last link's
    while low < high:
        middle = (low + high) >> 1
        if running[middle] <= mark:
            low = middle + 1
        else:
            high = middle
    return low


@njit()
def draw_links(key, agent, place, size, indptr, running):  # type: ignore[no-untyped-def]
    """`draw_link` at places place, …, place + size − 1: shape (size,)."""
    out = np.empty(size, np.int64)
    for i in range(size):
        out[i] = draw_link(key, agent, place + i, indptr, running)
    return out


# Places in the vector of counters that is kept between chunks: the next event's number, commits, agents that may make
# releases, state of the run, and the commit that ends it.
SEQ, TOTAL, ABLE, STATE, LAST = range(5)


class Progress(NamedTuple):
    """What agents have done, and may do.

    Attributes
    ----------
    limits : ndarray of int64, shape (n,)
        The most releases of each.
    goes_on : bool
        Whether those that may make no more releases go on without.
    releases, versions : ndarray of int64, shape (n,)
        Releases and commits of each.
    counters : ndarray of int64
        `SEQ`, `TOTAL`, `ABLE`, `STATE` and `LAST`.
    """

    limits: np.ndarray
    goes_on: bool
    releases: np.ndarray
    versions: np.ndarray
    counters: np.ndarray


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
def make_release(agent, run):  # type: ignore[no-untyped-def]
    """Number of the release that an agent makes now; `NONE` if it may make no more."""
    number, limit = run.releases[agent], run.limits[agent]
    if number >= limit:
        return NONE
    run.releases[agent] = number + 1
    if number + 1 == limit and not run.goes_on:
        run.counters[ABLE] -= 1
    return number


@njit(allocates=False)
def commit(out, at, now, agent, peer, cause, release, run):  # type: ignore[no-untyped-def]
    """Write an agent's commit; ends the run if it was the last."""
    counters = run.counters
    run.versions[agent] += 1
    put(out, at, counters[SEQ], now, COMMIT, agent, peer, run.versions[agent], cause, release, OK)
    counters[SEQ] += 1
    counters[TOTAL] += 1
    if counters[TOTAL] == counters[LAST]:
        counters[STATE] = st.BY_COMMITS
    return at + 1


@njit(allocates=False)
def end_message(out, at, seq, now, receiver, sender, link, version, sent, release, wire):  # type: ignore[no-untyped-def]
    """Write how a message ends at a receiver; returns whether it has arrived.

    Each delivery takes the next draw of its sender, as `LossModel.open` has it; where ``wire`` is None none is
    lost.
    """
    if wire is not None:
        draw = uniform(wire.key, np.int64(sender), wire.drawn[sender])
        wire.drawn[sender] += 1
        if draw < wire.chances[link]:
            put(out, at, seq, now, DROP, receiver, sender, version, sent, release, LOSS)
            return False
    put(out, at, seq, now, DELIVER, receiver, sender, version, sent, release, OK)
    return True


#: Most events that follow a wake.
MOST = 6


@njit(allocates=False)
def meet(out, at, now, i, j, link, wake, mode, one_sided, run, wire):  # type: ignore[no-untyped-def]
    """Write what follows when an agent turns to a neighbour, updates being made on hearing; returns the place after."""
    release, versions, counters = NONE, run.versions, run.counters
    if mode == st.EDGE:
        release = make_release(i, run)
    version = NONE if mode == st.PULL else versions[i]
    arrives, heard = _message(out, at, now, i, j, link, version, wake, release, run, wire)
    at += 2
    if arrives and mode == st.PUSH:
        at = _update(out, at, now, j, i, heard, run)
    elif arrives and mode == st.EDGE:
        if run.goes_on or run.releases[j] < run.limits[j]:
            release = make_release(j, run)
            arrives, back = _message(out, at, now, j, i, link, versions[j], heard, release, run, wire)
            at += 2
            if arrives:
                at = commit(out, at, now, i, j, back, NONE, run)
    elif arrives:
        arrives, back = _message(out, at, now, j, i, link, versions[j], heard, NONE, run, wire)
        at += 2
        if arrives:
            at = _update(out, at, now, i, j, back, run)
        if mode == st.PUSH_PULL and one_sided:
            if counters[STATE] != st.BY_COMMITS:
                at = commit(out, at, now, j, i, heard, NONE, run)
        elif mode == st.PUSH_PULL and counters[STATE] == st.RUNNING:
            at = _update(out, at, now, j, i, heard, run)
    return at


@njit(allocates=False)
def _message(out, at, now, sender, receiver, link, version, cause, release, run, wire):  # type: ignore[no-untyped-def]
    """Write a send and its end; returns whether it has arrived, and the number of its end."""
    sent = run.counters[SEQ]
    run.counters[SEQ] += 2
    put(out, at, sent, now, SEND, sender, receiver, version, cause, release, OK)
    arrives = end_message(out, at + 1, sent + 1, now, receiver, sender, link, version, sent, release, wire)
    return arrives, sent + 1


@njit(allocates=False)
def _update(out, at, now, agent, peer, cause, run):  # type: ignore[no-untyped-def]
    """Write a commit with what was heard, if its agent may make one."""
    if run.releases[agent] >= run.limits[agent] and not run.goes_on:
        return at
    counters = run.counters
    at = commit(out, at, now, agent, peer, cause, make_release(agent, run), run)
    if counters[STATE] == st.RUNNING and counters[ABLE] == 0:
        counters[STATE] = st.EXHAUSTED
    return at


@njit(inline="always")
def serve(out, at, now, i, wake, run, wire):  # type: ignore[no-untyped-def]
    """Write a query to an owner, its answer and the learner's commit, as far as it comes; returns the place after."""
    counters = run.counters
    k = counters[TOTAL]
    put(out, at, wake + 1, now, SEND, LEARNER, i, k, wake, NONE, OK)
    if not end_message(out, at + 1, wake + 2, now, i, LEARNER, i, k, wake + 1, NONE, wire):
        counters[SEQ] += 2
        return at + 2
    release = make_release(i, run)
    put(out, at + 2, wake + 3, now, SEND, i, LEARNER, k, wake + 2, release, OK)
    if not end_message(out, at + 3, wake + 4, now, LEARNER, i, i, k, wake + 3, release, wire):
        counters[SEQ] += 4
        return at + 4
    put(out, at + 4, wake + 5, now, COMMIT, LEARNER, i, k + 1, wake + 4, release, OK)
    counters[SEQ] += 5
    counters[TOTAL] += 1
    if counters[TOTAL] == counters[LAST]:
        counters[STATE] = st.BY_COMMITS
    return at + 5


@njit(inline="always")
def tell(out, at, now, i, first, near, indices, version, release, wire, counters):  # type: ignore[no-untyped-def]
    """Write the send of a model just committed over some links, and how it ends; returns the place after."""
    sent = counters[SEQ]
    peer = indices[first] if near == 1 else np.int32(NEIGHBOURS)
    put(out, at, sent, now, SEND, i, peer, version, sent - 1, release, OK)
    for e in range(near):
        link = first + e
        end_message(out, at + 1 + e, sent + 1 + e, now, indices[link], i, link, version, sent, release, wire)
    counters[SEQ] += 1 + near
    return at + 1 + near
