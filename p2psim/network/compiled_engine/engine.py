"""The array engine: events made by compiled code without SimPy; here those of networks where no message takes time.

It gives the same events, bit for bit, as :mod:`p2psim.network.simpy_engine.engine`: the same draws at the same places,
the same sums in the same order, and what is due at one instant in the order of `p2psim.network.order`. Where no message
takes time, losses and missed wakes are masks: each is a draw at a place of its sender's, or its agent's, stream. Other
networks are a `p2psim.network.compiled_engine.run.MachineRun`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.events import COMMIT, LEARNER, NEIGHBOURS, NOBODY, NONE, OK, SEND, SPENT, WAKE
from p2psim.core.philox import exponential, uniform
from p2psim.core.randomness import Streams
from p2psim.network.compiled_engine import ideal
from p2psim.network.compiled_engine import state as st
from p2psim.network.verify_messages import NEVER

if TYPE_CHECKING:
    from p2psim.network.compiled_engine.run import MachineRun
    from p2psim.network.section import Network, RunSetup
    from p2psim.network.spec import CompiledExchange

#: Writes events to an array, and returns how many.
Fill = Callable[[np.ndarray], int]


@njit(allocates=False)
def _fill(  # type: ignore[no-untyped-def]
    out, pattern, hears, one_sided, asks, key, peer_key, miss_key, rates, misses, indptr, indices, running, last_time,
    times, agents, places, begun, run, wire,
):  # fmt: skip
    """Write events until fewer than one wake's worth of room is left, or the run is over; returns how many.

    ``indices`` is None where a learner asks the owner that wakes: nothing of graphs is compiled then.
    """
    at, counters, versions = 0, run.counters, run.versions
    room = 1 + ideal.MOST
    for i in range(indptr.size - 1):
        room = max(room, 3 + indptr[i + 1] - indptr[i])
    while at + room <= out.size:
        now, i = times[0], agents[0]
        if now > last_time:
            counters[ideal.STATE] = st.BY_TIME
            break
        missed = False
        if misses is not None:
            missed = uniform(miss_key, np.int64(i), places[i]) < misses[i]
        # Who updates on hearing only tells its model when it pushes, which needs no release.
        spent = run.releases[i] >= run.limits[i] and not run.goes_on and not (hears and pattern == st.PUSH)
        wake = counters[ideal.SEQ]
        if not missed:
            counters[ideal.SEQ] += 1
            ideal.put(out, at, wake, now, WAKE, i, NOBODY, NONE, NONE, NONE, SPENT if spent else OK)
            at += 1
        if not missed and not spent:
            if indices is None:
                at = _serve(out, at, now, i, wake, run, wire)
            elif asks is not None and not asks[i]:
                # It only answers, and updates alone.
                release = ideal.make_release(i, run)
                at = ideal.commit(out, at, now, i, NOBODY, wake, release, run)
            elif pattern == st.BROADCAST or (pattern == st.PUSH and not hears):
                release = ideal.make_release(i, run)
                at = ideal.commit(out, at, now, i, NOBODY, wake, release, run)
                if counters[ideal.STATE] == st.RUNNING:
                    first, near = indptr[i], indptr[i + 1] - indptr[i]
                    if pattern == st.PUSH:
                        first, near = ideal.draw_link(peer_key, i, begun[i], indptr, running), 1
                        begun[i] += 1
                    at = _tell(out, at, now, i, first, near, indices, versions[i], release, wire, counters)
            else:
                link = ideal.draw_link(peer_key, i, begun[i], indptr, running)
                begun[i] += 1
                at = ideal.meet(out, at, now, i, indices[link], link, wake, pattern, one_sided, run, wire)
            if counters[ideal.STATE] == st.RUNNING and counters[ideal.ABLE] == 0:
                counters[ideal.STATE] = st.EXHAUSTED
            if counters[ideal.STATE] != st.RUNNING:
                break
        places[i] += 1
        times[0] = now + exponential(key, np.int64(i), places[i]) / rates[i]
        ideal.sift_down(times, agents, np.int64(0), times.size)
    return at


@njit(inline="always")
def _serve(out, at, now, i, wake, run, wire):  # type: ignore[no-untyped-def]
    """Write a query to an owner, its answer and the learner's commit, as far as it comes; returns the place after."""
    counters = run.counters
    k = counters[ideal.TOTAL]
    ideal.put(out, at, wake + 1, now, SEND, LEARNER, i, k, wake, NONE, OK)
    if not ideal.end_message(out, at + 1, wake + 2, now, i, LEARNER, i, k, wake + 1, NONE, wire):
        counters[ideal.SEQ] += 2
        return at + 2
    release = ideal.make_release(i, run)
    ideal.put(out, at + 2, wake + 3, now, SEND, i, LEARNER, k, wake + 2, release, OK)
    if not ideal.end_message(out, at + 3, wake + 4, now, LEARNER, i, i, k, wake + 3, release, wire):
        counters[ideal.SEQ] += 4
        return at + 4
    ideal.put(out, at + 4, wake + 5, now, COMMIT, LEARNER, i, k + 1, wake + 4, release, OK)
    counters[ideal.SEQ] += 5
    counters[ideal.TOTAL] += 1
    if counters[ideal.TOTAL] == counters[ideal.LAST]:
        counters[ideal.STATE] = st.BY_COMMITS
    return at + 5


@njit(inline="always")
def _tell(out, at, now, i, first, near, indices, version, release, wire, counters):  # type: ignore[no-untyped-def]
    """Write the send of a model just committed over some links, and how it ends; returns the place after."""
    sent = counters[ideal.SEQ]
    peer = indices[first] if near == 1 else np.int32(NEIGHBOURS)
    ideal.put(out, at, sent, now, SEND, i, peer, version, sent - 1, release, OK)
    for e in range(near):
        link = first + e
        ideal.end_message(
            out, at + 1 + e, sent + 1 + e, now, indices[link], i, link, version, sent, release, wire
        )
    counters[ideal.SEQ] += 1 + near
    return at + 1 + near


def kind_of_run(network: Network) -> Callable[[RunSetup], IdealRun | MachineRun]:
    """What begins runs of a network in the compiled engine."""
    if _takes_no_time(network):
        return partial(IdealRun, form=network.exchange.compiled(network.links))
    # Here: it takes a while to load, and many networks do without.
    from p2psim.network.compiled_engine.run import MachineRun

    return MachineRun


def _takes_no_time(network: Network) -> bool:
    """Whether no message takes time, so that losses and missed wakes are only masks."""
    exchange, channel = network.exchange, network.channel
    return (
        exchange.answer_delay == 0
        and network.compute is None
        and exchange.polled is None
        and channel.latency == 0
        and channel.airtime == 0
        and channel.bandwidth is None
        and channel.losses.is_independent
        and channel.resending == NEVER
        and not channel.effects
        and not network.availability.has_spans
        and network.links.changes is None
    )


class IdealRun:
    """One run in which no message takes time."""

    def __init__(self, setup: RunSetup, form: CompiledExchange):
        network, self._rates, self._streams, limits, commits, time, self._chunk = setup
        n, most = network.links.agents, np.iinfo(np.int64).max
        self._network, self._form = network, form
        self._misses, self._wire = _misses(network, self._streams), _wire(network, self._streams)
        self._time = time if time is not None else np.inf
        self._progress = ideal.Progress(
            limits if limits is not None else np.full(n, most),
            network.goes_on,
            np.zeros(n, np.int64),
            np.zeros(n, np.int64),
            np.array([0, 0, n, st.RUNNING, commits if commits is not None else most]),
        )

    @property
    def ended(self) -> str:
        """How the run ended; empty while it goes on."""
        return st.ENDS[self._progress.counters[ideal.STATE]]

    def run(self) -> Iterator[np.ndarray]:
        """Yield chunks of events."""
        how = {"rounds": self._rounds, "synchronous": self._rounds_of_agents}.get(
            self._form.pattern, self._wakes
        )
        fill, least = how()
        return st.in_chunks(
            self._chunk,
            least,
            lambda: self._progress.counters[ideal.STATE] == st.RUNNING,
            lambda out, kept: kept + fill(out[kept:]),
            least * float(self._progress.counters[ideal.LAST]),
        )

    def _wakes(self) -> tuple[Fill, int]:
        """What writes events wake by wake, and the room that it needs for one."""
        links, form, key = self._network.links, self._form, self._streams.key("clocks")
        by_weight = form.settings.get("by_weight")
        running = ideal.running_weights(links.indptr, links.weights) if by_weight else np.empty(0)
        n = links.agents
        times, agents = np.empty(n), np.empty(n, np.int32)
        ideal.first_ticks(key, self._rates, times, agents)
        places, begun = np.zeros(n, np.int64), np.zeros(n, np.int64)
        hears, one_sided = self._network.updates == "hear", not self._network.answerer_releases
        pattern, asks = st.PATTERNS[form.pattern], form.arrays.get("asks")
        indices = links.indices if pattern != st.REQUEST else None
        # A key that nothing is drawn with stays unhashed: any stands in its place.
        peer_key = key if indices is None else self._streams.key("peers")
        miss_key = key if self._misses is None else self._streams.key("availability")

        def fill(out: np.ndarray) -> int:
            return _fill(
                out, pattern, hears, one_sided, asks, key, peer_key, miss_key, self._rates, self._misses,
                links.indptr, indices, running, self._time, times, agents, places, begun, self._progress, self._wire,
            )  # fmt: skip

        return fill, max(1 + ideal.MOST, 3 + int(np.diff(links.indptr).max()))

    def _rounds(self) -> tuple[Fill, int]:
        """What writes events round by round, and the room that it needs for one."""
        settings, asked, n = self._form.settings, self._form.arrays["asked"], self._network.links.agents
        heard = np.zeros(n, np.int64)
        miss_key, choice_key = self._streams.key("availability"), self._streams.key("participants")
        interval, some = settings["interval"], np.int64(settings["some"])

        def fill(out: np.ndarray) -> int:
            return ideal.fill(
                out, interval, choice_key, some, asked, miss_key, self._misses, self._time, heard, self._progress,
                self._wire,
            )  # fmt: skip

        return fill, 2 + 4 * n

    def _rounds_of_agents(self) -> tuple[Fill, int]:
        """The same of rounds of agents on a graph."""
        from p2psim.network.compiled_engine import synchronous

        network, links, interval = self._network, self._network.links, self._form.settings["interval"]
        n, wakes = links.agents, self._form.arrays["wakes"]
        ticks = np.zeros(n, np.int64)
        miss_key = self._streams.key("availability")

        def fill(out: np.ndarray) -> int:
            return synchronous.fill(
                out, interval, network.updates == "hear", miss_key, self._misses, self._time, links.indptr,
                links.indices, ticks, wakes, self._progress, self._wire,
            )  # fmt: skip

        return fill, 3 * n + links.indices.size


# None stands for no mask, of which the compiler makes code of its own, as fast as if there were no masks at all.


def _misses(network: Network, streams: Streams) -> np.ndarray | None:
    """Probability that each agent misses a wake, shape (n,)."""
    missed = network.availability.missed(network.known_members, network.links, streams)
    return missed[0].chances if missed else None


def _wire(network: Network, streams: Streams) -> ideal.Wire | None:
    """What becomes of messages, where any can be lost."""
    losses = network.channel.losses
    if losses.shared_chance == 0 or (chances := losses.chances(network.links)) is None:
        return None
    return ideal.Wire(streams.key("loss"), chances, np.zeros(network.links.agents + 1, np.int64))
