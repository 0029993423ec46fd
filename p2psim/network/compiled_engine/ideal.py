"""Kernels of networks where no message takes time, and the clocks and draws that they share with other networks.

The clocks of all agents are one heap: the gap before an agent's k-th tick is draw k of its stream, divided by its rate,
and ties in time go to the lower agent. A neighbour is drawn uniformly, or in proportion to the weight of the link. See
:class:`p2psim.network.exchanges.gossip.Gossip` for the modes of gossip. Rounds end at the moment at which they begin.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.events import COMMIT, DELIVER, DROP, LEARNER, LOSS, NEIGHBOURS, NONE, OFFLINE, OK, SEND
from p2psim.core.philox import exponential, uniform
from p2psim.core.times import until
from p2psim.network.compiled_engine import state as st

#: Ticks that are drawn ahead at once: few enough for a short run, many enough for a call of compiled code.
AHEAD = 256


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
def _take(key, rates, times, agents, places, out_times, out_agents):  # type: ignore[no-untyped-def]
    """Take the next ticks off the heap, and set each clock again."""
    for k in range(out_times.size):
        now, i = times[0], agents[0]
        out_times[k] = now
        out_agents[k] = i
        places[i] += 1
        times[0] = now + exponential(key, np.int64(i), places[i]) / rates[i]
        sift_down(times, agents, np.int64(0), times.size)


def ticks(key: np.ndarray, rates: np.ndarray) -> Iterator[tuple[float, int]]:
    """Ticks of all agents in order, without end: (time, agent).

    Parameters
    ----------
    key : ndarray of uint64, shape (2,)
        Of the purpose ``clocks``.
    rates : ndarray, shape (n,)
        Ticks of each agent per unit of time.
    """
    n = rates.size
    times, agents = np.empty(n), np.empty(n, np.int32)
    first_ticks(key, rates, times, agents)
    places = np.zeros(n, np.int64)
    while True:
        next_times, next_agents = np.empty(AHEAD), np.empty(AHEAD, np.int32)
        _take(key, rates, times, agents, places, next_times, next_agents)
        yield from zip(next_times.tolist(), next_agents.tolist(), strict=True)


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


@njit()
def draw_owners(marks, owners, key, place, some):  # type: ignore[no-untyped-def]
    """Mark so many owners, by draws from a place on, as `p2psim.network.exchanges.rounds.drawn` does."""
    for i in range(owners):
        marks[i] = 0
    for last in range(owners - some, owners):
        one = np.int64(uniform(key, LEARNER, place) * (last + 1))
        place += 1
        marks[last if marks[one] else one] = 1


@njit(allocates=False)
def fill(  # type: ignore[no-untyped-def]
    out, interval, choice_key, some, asked, miss_key, misses, last_time, heard, run, wire
):
    """Write rounds until there is no room for another, or the run is over; returns how many events.

    ``some`` owners are drawn for each round, all of them where it is 0; ``asked`` (N,) marks them. ``heard`` (N,)
    counts the queries at which each owner could have missed one, each the place of a draw. Other arguments as in
    `p2psim.network.compiled_engine.engine`.
    """
    releases, limits, counters = run.releases, run.limits, run.counters
    owners, at = releases.size, 0
    while at + 2 + 4 * owners <= out.size:
        began = until((counters[TOTAL] + 1) * interval, last_time)
        if began > last_time:
            counters[STATE] = st.BY_TIME
            break
        k, query = counters[TOTAL], counters[SEQ]
        seq, sent = query, query
        if some:
            draw_owners(asked, owners, choice_key, k * some, some)
        else:
            put(out, at, query, began, SEND, LEARNER, NEIGHBOURS if owners > 1 else 0, k, NONE, NONE, OK)
            at += 1
            seq += 1
        for i in range(owners):
            if some:
                if not asked[i]:
                    continue
                sent = seq
                put(out, at, sent, began, SEND, LEARNER, i, k, NONE, NONE, OK)
                at += 1
                seq += 1
            arrived = end_message(out, at, seq, began, i, LEARNER, i, k, sent, NONE, wire)
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
            release = make_release(i, run)
            put(out, at, seq, began, SEND, i, LEARNER, k, seq - 1, release, OK)
            end_message(out, at + 1, seq + 1, began, LEARNER, i, i, k, seq, release, wire)
            at += 2
            seq += 2
        put(out, at, seq, began, COMMIT, LEARNER, NEIGHBOURS, k + 1, query, NONE, OK)
        at += 1
        counters[SEQ] = seq + 1
        counters[TOTAL] = k + 1
        if counters[TOTAL] == counters[LAST]:
            counters[STATE] = st.BY_COMMITS
        elif counters[ABLE] == 0:
            counters[STATE] = st.EXHAUSTED
        if counters[STATE] != st.RUNNING:
            break
    return at
