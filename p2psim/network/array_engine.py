"""The array engine: the events of a network where no message takes time, made by compiled code without SimPy.

It gives the same events, bit for bit, as :mod:`p2psim.network.world`: the same draws at the same places, the
same sums in the same order, and ties in time broken, as SimPy breaks them, by the order of scheduling. Losses and
missed wakes are masks: each is a draw at a place of its sender's, or its agent's, stream.
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
    Wire,
    commit,
    end_message,
    make_release,
    put,
)
from p2psim.network.availability import Bernoulli
from p2psim.network.channels.loss import GilbertElliott, chances
from p2psim.network.clock_heap import first_ticks, sift_down
from p2psim.network.events import (
    COMMIT,
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
from p2psim.network.members import Members
from p2psim.network.partners import draw_link, running_weights
from p2psim.randomness import Streams
from p2psim.streams import exponential, uniform

if TYPE_CHECKING:
    from p2psim.network.simulation import Network

REQUEST, BROADCAST = 0, 1
_REASONS = ("", "commits", "time", "exhausted")


@njit()
def _fill(  # type: ignore[no-untyped-def]
    out, pattern, hears, key, peer_key, miss_key, rates, misses, indptr, indices, running, limits, goes_on, last_time,
    times, orders, agents, places, begun, releases, versions, wire, counters,
):  # fmt: skip
    """Write events until fewer than one wake's worth of room is left, or the run is over; returns how many."""
    at = 0
    room = 1 + MOST
    for i in range(indptr.size - 1):
        room = max(room, 3 + indptr[i + 1] - indptr[i])
    while at + room <= out.size:
        now, i = times[0], agents[0]
        if now >= last_time:
            counters[STATE] = BY_TIME
            break
        missed = False
        if misses is not None:
            missed = uniform(miss_key, i, places[i]) < misses[i]
        # Who updates on hearing only tells its model when it pushes, which needs no release.
        spent = releases[i] >= limits[i] and not goes_on and not (hears and pattern == PUSH)
        wake = counters[SEQ]
        if not missed:
            counters[SEQ] += 1
            put(out, at, wake, now, WAKE, i, NOBODY, NONE, NONE, NONE, SPENT if spent else OK)
            at += 1
        if not missed and not spent:
            if pattern == REQUEST:
                at = _serve(out, at, now, i, wake, limits, releases, wire, counters)
            elif pattern == BROADCAST or (pattern == PUSH and not hears):
                release = make_release(i, limits, goes_on, releases, counters)
                at = commit(out, at, now, i, NOBODY, wake, release, versions, counters)
                if counters[STATE] == RUNNING:
                    first, near = indptr[i], indptr[i + 1] - indptr[i]
                    if pattern == PUSH:
                        first, near = draw_link(peer_key, i, begun[i], indptr, running), 1
                        begun[i] += 1
                    at = _tell(out, at, now, i, first, near, indices, versions[i], release, wire, counters)
            else:
                link = draw_link(peer_key, i, begun[i], indptr, running)
                begun[i] += 1
                at = meet(
                    out, at, now, i, indices[link], link, wake, pattern, limits, goes_on, releases, versions, wire,
                    counters,
                )  # fmt: skip
            if counters[STATE] == RUNNING and counters[ABLE] == 0:
                counters[STATE] = EXHAUSTED
            if counters[STATE] != RUNNING:
                break
        places[i] += 1
        times[0] = now + exponential(key, i, places[i]) / rates[i]
        orders[0] = counters[ORDER]
        counters[ORDER] += 1
        sift_down(times, orders, agents, 0, times.size)
    return at


@njit(inline="always")
def _serve(out, at, now, i, wake, limits, releases, wire, counters):  # type: ignore[no-untyped-def]
    """Write a query to an owner, its answer and the learner's commit, as far as it comes; returns the place after."""
    k = counters[TOTAL]
    put(out, at, wake + 1, now, SEND, LEARNER, i, k, wake, NONE, OK)
    if not end_message(out, at + 1, wake + 2, now, i, LEARNER, i, k, wake + 1, NONE, wire):
        counters[SEQ] += 2
        return at + 2
    release = make_release(i, limits, False, releases, counters)
    put(out, at + 2, wake + 3, now, SEND, i, LEARNER, k, wake + 2, release, OK)
    if not end_message(out, at + 3, wake + 4, now, LEARNER, i, i, k, wake + 3, release, wire):
        counters[SEQ] += 4
        return at + 4
    put(out, at + 4, wake + 5, now, COMMIT, LEARNER, i, k + 1, wake + 4, release, OK)
    counters[SEQ] += 5
    counters[TOTAL] += 1
    if counters[TOTAL] == counters[LAST]:
        counters[STATE] = BY_COMMITS
    return at + 5


@njit(inline="always")
def _tell(out, at, now, i, first, near, indices, version, release, wire, counters):  # type: ignore[no-untyped-def]
    """Write the send of a model just committed over some links, and how it ends; returns the place after."""
    sent = counters[SEQ]
    peer = indices[first] if near == 1 else np.int32(NEIGHBOURS)
    put(out, at, sent, now, SEND, i, peer, version, sent - 1, release, OK)
    for e in range(near):
        link = first + e
        end_message(out, at + 1 + e, sent + 1 + e, now, indices[link], i, link, version, sent, release, wire)
    counters[SEQ] += 1 + near
    return at + 1 + near


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
        self._misses = _misses(network)
        self._wire = _wire(network, streams)
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
        first_ticks(key, self._rates, times, orders, agents)
        places, begun, releases, versions = (np.zeros(n, np.int64) for _ in range(4))
        counters = np.array([0, 0, n, n, RUNNING, self._commits])
        room = self._chunk + max(1 + MOST, 3 + int(np.diff(self._links.indptr).max()))
        kept = np.empty(0, EVENT)
        while counters[STATE] == RUNNING:
            out = np.zeros(room, EVENT)  # the padding too: streams are compared byte by byte
            out[: kept.size] = kept
            written = _fill(
                out[kept.size :], self._pattern, self._hears, key, self._streams.key("peers"),
                self._streams.key("availability"), self._rates, self._misses, self._links.indptr, self._links.indices,
                self._running, self._limits, self._goes_on, self._time, times, orders, agents, places, begun,
                releases, versions, self._wire, counters,
            )  # fmt: skip
            out = out[: kept.size + written]
            self.ended = _REASONS[counters[STATE]]
            whole = out.size - out.size % self._chunk
            for start in range(0, whole, self._chunk):
                yield out[start : start + self._chunk]
            kept = out[whole:]
        if kept.size:
            yield kept


# None stands for no mask, of which the compiler makes code of its own, as fast as if there were no masks at all.


def _misses(network: Network) -> np.ndarray | None:
    """Probability that each agent misses a wake, shape (n,)."""
    if not isinstance(network.availability, Bernoulli):
        return None
    members = network.members or Members.unnamed(network.links.agents)
    return network.availability.chances(members, network.links)


def _wire(network: Network, streams: Streams) -> Wire | None:
    """What becomes of messages, where any can be lost."""
    loss = network.channel.loss
    if isinstance(loss, GilbertElliott) or loss == 0:
        return None
    drawn = np.zeros(network.links.agents + 1, np.int64)
    return Wire(streams.key("loss"), chances(loss, network.links), drawn)
