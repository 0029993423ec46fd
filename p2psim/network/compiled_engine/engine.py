"""The array engine: events made by compiled code without SimPy; here those of networks where no message takes time.

It gives the same events, bit for bit, as :mod:`p2psim.network.simpy_engine.engine`: the same draws at the same places,
the same sums in the same order, and what is due at one instant in the order of `p2psim.network.order`. Where no message
takes time, losses and missed wakes are masks: each is a draw at a place of its sender's, or its agent's, stream. Other
networks are a `p2psim.network.compiled_engine.run.MachineRun`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.events import COMMIT, EVENT, LEARNER, NEIGHBOURS, NOBODY, NONE, OK, SEND, SPENT, WAKE
from p2psim.core.philox import exponential, uniform
from p2psim.core.randomness import Streams
from p2psim.network.availability import Bernoulli
from p2psim.network.channels.loss import GilbertElliott, chances
from p2psim.network.channels.retransmission import NoRetransmission
from p2psim.network.compiled_engine.ideal import (
    ABLE,
    LAST,
    MOST,
    SEQ,
    STATE,
    TOTAL,
    Wire,
    commit,
    draw_link,
    end_message,
    first_ticks,
    make_release,
    meet,
    put,
    running_weights,
    sift_down,
)
from p2psim.network.compiled_engine.ideal import fill as fill_rounds
from p2psim.network.compiled_engine.run import MachineRun
from p2psim.network.compiled_engine.state import (
    BROADCAST,
    BY_COMMITS,
    BY_TIME,
    ENDS,
    EXHAUSTED,
    MODES,
    PUSH,
    REQUEST,
    ROUNDS,
    RUNNING,
    SYNCHRONOUS,
)
from p2psim.network.compiled_engine.synchronous import fill as fill_rounds_of_agents
from p2psim.network.exchanges import Exchange, Gossip, Poll, Request, Round, Synchronous
from p2psim.network.exchanges.sides import asking_side
from p2psim.network.members import Members

if TYPE_CHECKING:
    from p2psim.network.section import Network

#: Writes events to an array, and returns how many.
Fill = Callable[[np.ndarray], int]


@njit()
def _fill(  # type: ignore[no-untyped-def]
    out, pattern, hears, one_sided, asks, key, peer_key, miss_key, rates, misses, indptr, indices, running, limits,
    goes_on, last_time, times, agents, places, begun, releases, versions, wire, counters,
):  # fmt: skip
    """Write events until fewer than one wake's worth of room is left, or the run is over; returns how many."""
    at = 0
    room = 1 + MOST
    for i in range(indptr.size - 1):
        room = max(room, 3 + indptr[i + 1] - indptr[i])
    while at + room <= out.size:
        now, i = times[0], agents[0]
        if now > last_time:
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
            elif asks is not None and not asks[i]:
                # It only answers, and updates alone.
                release = make_release(i, limits, goes_on, releases, counters)
                at = commit(out, at, now, i, NOBODY, wake, release, versions, counters)
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
                    out, at, now, i, indices[link], link, wake, pattern, one_sided, limits, goes_on, releases,
                    versions, wire, counters,
                )  # fmt: skip
            if counters[STATE] == RUNNING and counters[ABLE] == 0:
                counters[STATE] = EXHAUSTED
            if counters[STATE] != RUNNING:
                break
        places[i] += 1
        times[0] = now + exponential(key, i, places[i]) / rates[i]
        sift_down(times, agents, 0, times.size)
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


def open_run(
    network: Network,
    rates: np.ndarray,
    streams: Streams,
    limits: np.ndarray | None,
    commits: int | None,
    time: float | None,
    chunk: int,
) -> IdealRun | MachineRun:
    """A run of the compiled engine; parameters as of :class:`p2psim.network.simpy_engine.engine.SimPyRun`."""
    if _takes_no_time(network):
        return IdealRun(network, _pattern(network.exchange), rates, streams, limits, commits, time, chunk)
    return MachineRun(network, rates, streams, limits, commits, time, chunk)


def _takes_no_time(network: Network) -> bool:
    """Whether no message takes time, so that losses and missed wakes are only masks."""
    exchange, channel = network.exchange, network.channel
    wait = exchange.service if isinstance(exchange, Request) else 0
    wait = exchange.response if isinstance(exchange, Poll | Round) else wait
    return (
        wait == 0
        and network.compute is None
        and not isinstance(exchange, Poll)
        and channel.latency == 0
        and channel.airtime == 0
        and channel.bandwidth is None
        and not isinstance(channel.loss, GilbertElliott)
        and isinstance(channel.retransmit, NoRetransmission)
        and not channel.effects
        and not network.availability.has_spans
        and network.links.changes is None
    )


def _pattern(exchange: Exchange) -> np.int64:
    """Code of what agents do."""
    if isinstance(exchange, Gossip):
        return MODES[exchange.mode]
    kinds = {Request: REQUEST, Round: ROUNDS, Synchronous: SYNCHRONOUS}
    return kinds.get(type(exchange), BROADCAST)


class IdealRun:
    """One run in which no message takes time; the parameters are those of `open_run`, and the pattern."""

    def __init__(
        self,
        network: Network,
        pattern: np.int64,
        rates: np.ndarray,
        streams: Streams,
        limits: np.ndarray | None,
        commits: int | None,
        time: float | None,
        chunk: int,
    ):
        n, most = network.links.agents, np.iinfo(np.int64).max
        self._network, self._pattern, self._rates, self._streams = network, pattern, rates, streams
        self._misses, self._wire = _misses(network), _wire(network, streams)
        self._limits = limits if limits is not None else np.full(n, most)
        self._time = time if time is not None else np.inf
        self._chunk = chunk
        self._counters = np.array([0, 0, n, RUNNING, commits if commits is not None else most])

    @property
    def ended(self) -> str:
        """How the run ended; empty while it goes on."""
        return ENDS[self._counters[STATE]]

    def run(self) -> Iterator[np.ndarray]:
        """Yield chunks of events."""
        how = {ROUNDS: self._rounds, SYNCHRONOUS: self._rounds_of_agents}.get(self._pattern, self._wakes)
        fill, least = how()
        room, kept = self._chunk + least, np.empty(0, EVENT)
        while self._counters[STATE] == RUNNING:
            out = np.zeros(room, EVENT)  # the padding too: streams are compared byte by byte
            out[: kept.size] = kept
            out = out[: kept.size + fill(out[kept.size :])]
            whole = out.size - out.size % self._chunk
            for start in range(0, whole, self._chunk):
                yield out[start : start + self._chunk]
            kept = out[whole:]
        if kept.size:
            yield kept

    def _wakes(self) -> tuple[Fill, int]:
        """What writes events wake by wake, and the room that it needs for one."""
        links, exchange, key = self._network.links, self._network.exchange, self._streams.key("clocks")
        by_weight = isinstance(exchange, Gossip) and exchange.partner == "weight"
        running = running_weights(links.indptr, links.weights) if by_weight else np.empty(0)
        n = links.agents
        times, agents = np.empty(n), np.empty(n, np.int32)
        first_ticks(key, self._rates, times, agents)
        places, begun, releases, versions = (np.zeros(n, np.int64) for _ in range(4))
        hears, goes_on = self._network.updates == "hear", self._network.goes_on
        one_sided = not self._network.answerer_releases
        blocks = isinstance(exchange, Gossip) and exchange.blocking
        asks = asking_side(links) if blocks else None
        peer_key, miss_key = self._streams.key("peers"), self._streams.key("availability")

        def fill(out: np.ndarray) -> int:
            return _fill(
                out, self._pattern, hears, one_sided, asks, key, peer_key, miss_key, self._rates, self._misses,
                links.indptr, links.indices, running, self._limits, goes_on, self._time,
                times, agents, places, begun, releases, versions, self._wire, self._counters,
            )  # fmt: skip

        return fill, max(1 + MOST, 3 + int(np.diff(links.indptr).max()))

    def _rounds(self) -> tuple[Fill, int]:
        """What writes events round by round, and the room that it needs for one."""
        exchange, n = self._network.exchange, self._network.links.agents
        assert isinstance(exchange, Round)
        heard, releases, asked = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.uint8)
        miss_key, choice_key = self._streams.key("availability"), self._streams.key("participants")
        some = np.int64(exchange.asked(n) if exchange.asks_some(n) else 0)

        def fill(out: np.ndarray) -> int:
            return fill_rounds(
                out, exchange.interval, choice_key, some, asked, miss_key, self._misses, self._limits, self._time,
                heard, releases, self._wire, self._counters,
            )  # fmt: skip

        return fill, 2 + 4 * n

    def _rounds_of_agents(self) -> tuple[Fill, int]:
        """The same of rounds of agents on a graph."""
        network, links = self._network, self._network.links
        exchange, n = network.exchange, links.agents
        assert isinstance(exchange, Synchronous)
        ticks, releases, versions, wakes = (np.zeros(n, np.int64) for _ in range(4))
        miss_key = self._streams.key("availability")

        def fill(out: np.ndarray) -> int:
            return fill_rounds_of_agents(
                out, exchange.interval, network.updates == "hear", miss_key, self._misses, self._limits,
                network.goes_on, self._time, links.indptr, links.indices, ticks, releases, versions, wakes,
                self._wire, self._counters,
            )  # fmt: skip

        return fill, 3 * n + links.indices.size


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
