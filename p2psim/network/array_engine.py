"""The array engine: the events of an ideal network, made by compiled code without SimPy.

It gives the same events, bit for bit, as :mod:`p2psim.network.world`: the same draws at the same places, the
same sums in the same order, and ties in time broken, as SimPy breaks them, by the order of scheduling.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from p2psim.compiled import njit
from p2psim.network.array_gossip import MOST, PUSH, meet
from p2psim.network.array_parts import (
    ABLE,
    BY_COMMITS,
    BY_TIME,
    EXHAUSTED,
    LAST,
    ORDER,
    RUNNING,
    SEQ,
    STATE,
    TOTAL,
    commit,
    make_release,
    put,
)
from p2psim.network.events import (
    COMMIT,
    DELIVER,
    EVENT,
    LEARNER,
    NEIGHBOURS,
    NOBODY,
    NONE,
    OK,
    SEND,
    SPENT,
    WAKE,
)
from p2psim.network.exchanges.gossip import Gossip
from p2psim.network.partners import draw_link, running_weights
from p2psim.randomness import Streams
from p2psim.streams import exponential

if TYPE_CHECKING:
    from p2psim.network.simulation import Network

REQUEST, BROADCAST = 0, 1
_REASONS = ("", "commits", "time", "exhausted")


@njit(inline="always")
def _before(times, orders, a, b):  # type: ignore[no-untyped-def]
    return times[a] < times[b] or (times[a] == times[b] and orders[a] < orders[b])


@njit()
def sift_down(times, orders, agents, place, size):  # type: ignore[no-untyped-def]
    """Restore the heap below a place; the earliest time, then the lowest order, is on top."""
    while True:
        child = 2 * place + 1
        if child >= size:
            return
        if child + 1 < size and _before(times, orders, child + 1, child):
            child += 1
        if not _before(times, orders, child, place):
            return
        times[child], times[place] = times[place], times[child]
        orders[child], orders[place] = orders[place], orders[child]
        agents[child], agents[place] = agents[place], agents[child]
        place = child


@njit()
def _first_ticks(key, rates, times, orders, agents):  # type: ignore[no-untyped-def]
    """Each agent's first tick, as a heap."""
    n = times.size
    for i in range(n):
        times[i] = exponential(key, i, 0) / rates[i]
        orders[i] = i
        agents[i] = i
    for place in range(n // 2, -1, -1):
        sift_down(times, orders, agents, place, n)


@njit()
def _fill(  # type: ignore[no-untyped-def]
    out, pattern, hears, key, peer_key, rates, indptr, indices, running, limits, goes_on, last_time,
    times, orders, agents, places, begun, releases, versions, counters,
):  # fmt: skip
    """Write events until fewer than one wake's worth of room is left, or the run is over; returns how many."""
    at, size = 0, times.size
    room = 1 + MOST
    for i in range(indptr.size - 1):
        room = max(room, 3 + indptr[i + 1] - indptr[i])
    while at + room <= out.size:
        now, i = times[0], agents[0]
        if now >= last_time:
            counters[STATE] = BY_TIME
            break
        wake = counters[SEQ]
        counters[SEQ] += 1
        # Who updates on hearing only tells its model when it pushes, which needs no release.
        if releases[i] >= limits[i] and not goes_on and not (hears and pattern == PUSH):
            put(out, at, wake, now, WAKE, i, NOBODY, NONE, NONE, NONE, SPENT)
            at += 1
        else:
            put(out, at, wake, now, WAKE, i, NOBODY, NONE, NONE, NONE, OK)
            at += 1
            if pattern == REQUEST:
                at = _serve(out, at, now, i, wake, limits, releases, counters)
            elif pattern == BROADCAST or (pattern == PUSH and not hears):
                release = make_release(i, limits, goes_on, releases, counters)
                at = commit(out, at, now, i, NOBODY, wake, release, versions, counters)
                if counters[STATE] == RUNNING:
                    first, near = indptr[i], indptr[i + 1] - indptr[i]
                    if pattern == PUSH:
                        first, near = draw_link(peer_key, i, begun[i], indptr, running), 1
                        begun[i] += 1
                    at = _tell(out, at, now, i, indices[first : first + near], versions[i], release, counters)
            else:
                j = indices[draw_link(peer_key, i, begun[i], indptr, running)]
                begun[i] += 1
                at = meet(out, at, now, i, j, wake, pattern, limits, goes_on, releases, versions, counters)
            if counters[STATE] == RUNNING and counters[ABLE] == 0:
                counters[STATE] = EXHAUSTED
            if counters[STATE] != RUNNING:
                break
        places[i] += 1
        times[0] = now + exponential(key, i, places[i]) / rates[i]
        orders[0] = counters[ORDER]
        counters[ORDER] += 1
        sift_down(times, orders, agents, 0, size)
    return at


@njit(inline="always")
def _serve(out, at, now, i, wake, limits, releases, counters):  # type: ignore[no-untyped-def]
    """Write a query to an owner, its answer and the learner's commit; returns the place after."""
    k, release = counters[TOTAL], make_release(i, limits, False, releases, counters)
    put(out, at, wake + 1, now, SEND, LEARNER, i, k, wake, NONE, OK)
    put(out, at + 1, wake + 2, now, DELIVER, i, LEARNER, k, wake + 1, NONE, OK)
    put(out, at + 2, wake + 3, now, SEND, i, LEARNER, k, wake + 2, release, OK)
    put(out, at + 3, wake + 4, now, DELIVER, LEARNER, i, k, wake + 3, release, OK)
    put(out, at + 4, wake + 5, now, COMMIT, LEARNER, i, k + 1, wake + 4, release, OK)
    counters[SEQ] += 5
    counters[TOTAL] += 1
    if counters[TOTAL] == counters[LAST]:
        counters[STATE] = BY_COMMITS
    return at + 5


@njit(inline="always")
def _tell(out, at, now, i, receivers, version, release, counters):  # type: ignore[no-untyped-def]
    """Write the send of a model just committed, and its deliveries; returns the place after."""
    sent = counters[SEQ]
    peer = receivers[0] if receivers.size == 1 else np.int32(NEIGHBOURS)
    put(out, at, sent, now, SEND, i, peer, version, sent - 1, release, OK)
    for j in range(receivers.size):
        put(out, at + 1 + j, sent + 1 + j, now, DELIVER, receivers[j], i, version, sent, release, OK)
    counters[SEQ] += 1 + receivers.size
    return at + 1 + receivers.size


class ArrayRun:
    """One run of the array engine; the parameters are those of :class:`p2psim.network.world.World`."""

    def __init__(
        self,
        network: Network,
        pattern: int,
        rates: np.ndarray,
        streams: Streams,
        limits: np.ndarray | None,
        commits: int | None,
        time: float | None,
        chunk: int,
    ):
        self._links = network.links
        self._goes_on = network.goes_on
        self._hears = network.updates == "hear"
        exchange = network.exchange
        by_weight = isinstance(exchange, Gossip) and exchange.partner == "weight"
        self._running = (
            running_weights(network.links.indptr, network.links.weights) if by_weight else np.empty(0)
        )
        self._pattern = pattern
        self._rates = rates
        self._streams = streams
        self._limits = limits if limits is not None else np.full(network.links.agents, np.iinfo(np.int64).max)
        self._commits = commits if commits is not None else np.iinfo(np.int64).max
        self._time = time if time is not None else np.inf
        self._chunk = chunk
        self.ended = ""

    def run(self) -> Iterator[np.ndarray]:
        """Yield chunks of events."""
        n, key = self._links.agents, self._streams.key("clocks")
        times, orders, agents = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int32)
        _first_ticks(key, self._rates, times, orders, agents)
        places, begun, releases, versions = (np.zeros(n, np.int64) for _ in range(4))
        counters = np.array([0, 0, n, n, RUNNING, self._commits])
        room = self._chunk + max(1 + MOST, 3 + int(np.diff(self._links.indptr).max()))
        kept = np.empty(0, EVENT)
        while counters[STATE] == RUNNING:
            out = np.zeros(room, EVENT)  # the padding too: streams are compared byte by byte
            out[: kept.size] = kept
            written = _fill(
                out[kept.size :], self._pattern, self._hears, key, self._streams.key("peers"), self._rates,
                self._links.indptr, self._links.indices, self._running, self._limits, self._goes_on, self._time,
                times, orders, agents, places, begun, releases, versions, counters,
            )  # fmt: skip
            out = out[: kept.size + written]
            self.ended = _REASONS[counters[STATE]]
            whole = out.size - out.size % self._chunk
            for start in range(0, whole, self._chunk):
                yield out[start : start + self._chunk]
            kept = out[whole:]
        if kept.size:
            yield kept
