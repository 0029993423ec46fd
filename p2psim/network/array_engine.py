"""The array engine: the events of an ideal network, made by compiled code without SimPy.

It gives the same events, bit for bit, as :mod:`p2psim.network.world`: the same draws at the same places, the
same sums in the same order, and ties in time broken, as SimPy breaks them, by the order of scheduling.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from p2psim.compiled import njit
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
from p2psim.randomness import Streams
from p2psim.streams import exponential, uniform

if TYPE_CHECKING:
    from p2psim.network.simulation import Network

REQUEST, BROADCAST, GOSSIP = 0, 1, 2
_RUNNING, _COMMITS, _TIME, _EXHAUSTED = 0, 1, 2, 3
_REASONS = ("", "commits", "time", "exhausted")

# Places in the vector of counters that is kept between chunks.
_SEQ, _TOTAL, _ORDER, _ABLE, _STATE = 0, 1, 2, 3, 4


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


@njit(inline="always")
def _put(out, at, seq, time, kind, agent, peer, version, cause, release, outcome):  # type: ignore[no-untyped-def]
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


@njit()
def _fill(  # type: ignore[no-untyped-def]
    out, pattern, key, peer_key, rates, indptr, indices, limits, goes_on, last_commit, last_time,
    times, orders, agents, places, releases, versions, counters,
):  # fmt: skip
    """Write events until fewer than one wake's worth of room is left, or the run is over; returns how many."""
    at, seq, size = 0, counters[_SEQ], times.size
    degree = 0
    for i in range(indptr.size - 1):
        degree = max(degree, indptr[i + 1] - indptr[i])
    room = max(6, 3 + degree)
    while at + room <= out.size:
        now, i = times[0], agents[0]
        if now >= last_time:
            counters[_STATE] = _TIME
            break
        is_spent = releases[i] >= limits[i]
        if is_spent and not goes_on:
            _put(out, at, seq, now, WAKE, i, NOBODY, NONE, NONE, NONE, SPENT)
            at, seq = at + 1, seq + 1
        else:
            release = np.int64(NONE)
            if not is_spent:
                release = releases[i]
                releases[i] += 1
                if releases[i] == limits[i] and not goes_on:
                    counters[_ABLE] -= 1
            _put(out, at, seq, now, WAKE, i, NOBODY, NONE, NONE, NONE, OK)
            if pattern == REQUEST:
                k = counters[_TOTAL]
                _put(out, at + 1, seq + 1, now, SEND, LEARNER, i, k, seq, NONE, OK)
                _put(out, at + 2, seq + 2, now, DELIVER, i, LEARNER, k, seq + 1, NONE, OK)
                _put(out, at + 3, seq + 3, now, SEND, i, LEARNER, k, seq + 2, release, OK)
                _put(out, at + 4, seq + 4, now, DELIVER, LEARNER, i, k, seq + 3, release, OK)
                _put(out, at + 5, seq + 5, now, COMMIT, LEARNER, i, k + 1, seq + 4, release, OK)
                at, seq = at + 6, seq + 6
                counters[_TOTAL] += 1
                done = counters[_TOTAL] == last_commit
            else:
                versions[i] += 1
                version, first, near = versions[i], indptr[i], indptr[i + 1] - indptr[i]
                _put(out, at + 1, seq + 1, now, COMMIT, i, NOBODY, version, seq, release, OK)
                counters[_TOTAL] += 1
                done = counters[_TOTAL] == last_commit
                if done:
                    at, seq = at + 2, seq + 2
                else:
                    if pattern == GOSSIP:
                        first += np.int64(uniform(peer_key, i, version - 1) * near)
                        near = 1
                    peer = indices[first] if near == 1 else NEIGHBOURS
                    sent = seq + 2
                    _put(out, at + 2, sent, now, SEND, i, peer, version, seq + 1, release, OK)
                    for j in range(near):
                        _put(
                            out,
                            at + 3 + j,
                            sent + 1 + j,
                            now,
                            DELIVER,
                            indices[first + j],
                            i,
                            version,
                            sent,
                            release,
                            OK,
                        )
                    at, seq = at + 3 + near, seq + 3 + near
            if done:
                counters[_STATE] = _COMMITS
                break
            if counters[_ABLE] == 0:
                counters[_STATE] = _EXHAUSTED
                break
        places[i] += 1
        times[0] = now + exponential(key, i, places[i]) / rates[i]
        orders[0] = counters[_ORDER]
        counters[_ORDER] += 1
        sift_down(times, orders, agents, 0, size)
    counters[_SEQ] = seq
    return at


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
        places, releases, versions = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
        counters = np.array([0, 0, n, n, _RUNNING])
        degree = int(np.diff(self._links.indptr).max())
        room = self._chunk + max(6, 3 + degree)
        kept = np.empty(0, EVENT)
        while counters[_STATE] == _RUNNING:
            out = np.zeros(room, EVENT)  # the padding too: streams are compared byte by byte
            out[: kept.size] = kept
            written = _fill(
                out[kept.size :], self._pattern, key, self._streams.key("peers"), self._rates, self._links.indptr,
                self._links.indices, self._limits, self._goes_on, self._commits, self._time,
                times, orders, agents, places, releases, versions, counters,
            )  # fmt: skip
            out = out[: kept.size + written]
            self.ended = _REASONS[counters[_STATE]]
            whole = out.size - out.size % self._chunk
            for start in range(0, whole, self._chunk):
                yield out[start : start + self._chunk]
            kept = out[whole:]
        if kept.size:
            yield kept
