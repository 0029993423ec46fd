"""The array engine: events made by compiled code without SimPy; here those of networks where no message takes time.

It gives the same events, bit for bit, as :mod:`p2psim.network.simpy_engine.engine`: the same draws at the same places,
the same sums in the same order, and what is due at one instant in the order of `p2psim.network.order`. Where no message
takes time, losses and missed wakes are masks: each is a draw at a place of its sender's, or its agent's, stream. Other
networks are a `p2psim.network.compiled_engine.run.MachineRun`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.events import EVENT, NOBODY, NONE, OK, SPENT, WAKE
from p2psim.core.philox import exponential, prefetch, uniform
from p2psim.core.randomness import Streams
from p2psim.network.compiled_engine import ideal
from p2psim.network.compiled_engine import state as st
from p2psim.network.verify_messages import NEVER

if TYPE_CHECKING:
    from p2psim.network.compiled_engine.run import MachineRun
    from p2psim.network.graph import Graph
    from p2psim.network.section import Network, RunSetup
    from p2psim.network.spec import CompiledExchange

_MOST = np.iinfo(np.int64).max
#: How many times a chunk the events of several runs may be.
_GROWN = 4
#: How many wakes ahead what is known of an agent is fetched.
_AHEAD = 8

#: Writes events to an array, and returns how many.
Fill = Callable[[np.ndarray], int]


@njit(inline="always")
def _fetch(agent, nearer, indptr, indices, run):  # type: ignore[no-untyped-def]
    """Prefetch what is known of an agent that wakes soon, and the links of one that wakes sooner."""
    prefetch(indptr, np.int64(agent))
    prefetch(run.versions, np.int64(agent))
    prefetch(run.releases, np.int64(agent))
    prefetch(run.limits, np.int64(agent))
    if indices is not None:
        prefetch(indices, indptr[nearer])


@njit(allocates=False)
def _fill(  # type: ignore[no-untyped-def]
    out, room, pattern, hears, one_sided, asks, key, peer_key, miss_key, rates, misses, indptr, indices, running,
    last_time, times, agents, places, window, begun, run, wire,
):  # fmt: skip
    """Write events until fewer than ``room``, one wake's worth, are left, or the run is over; returns how many.

    Clocks are a heap, ``times`` and ``agents``, or these are ticks in order, of which ``window`` (1,) counts those that
    were taken; ``window`` is None for a heap. Ticks in order can also come to their end.

    ``indices`` is None where a learner asks the owner that wakes: nothing of graphs is compiled then.
    """
    at, counters, versions = 0, run.counters, run.versions
    while at + room <= out.size:
        if window is None:
            now, i = times[0], agents[0]
        else:
            if window[0] == times.size:
                break
            now, i = times[window[0]], agents[window[0]]
            if window[0] + _AHEAD < times.size:
                _fetch(agents[window[0] + _AHEAD], agents[window[0] + _AHEAD // 2], indptr, indices, run)
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
                at = ideal.serve(out, at, now, i, wake, run, wire)
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
                    at = ideal.tell(
                        out, at, now, i, first, near, indices, versions[i], release, wire, counters
                    )
            else:
                link = ideal.draw_link(peer_key, i, begun[i], indptr, running)
                begun[i] += 1
                at = ideal.meet(out, at, now, i, indices[link], link, wake, pattern, one_sided, run, wire)
            if counters[ideal.STATE] == st.RUNNING and counters[ideal.ABLE] == 0:
                counters[ideal.STATE] = st.EXHAUSTED
            if counters[ideal.STATE] != st.RUNNING:
                break
        if window is None:
            places[i] += 1
            times[0] = now + exponential(key, np.int64(i), places[i]) / rates[i]
            ideal.sift_down(times, agents, np.int64(0), times.size)
        else:
            window[0] += 1
            if misses is not None:
                places[i] += 1
    return at


@njit(allocates=False)
def _fill_each(  # type: ignore[no-untyped-def]
    out, room, bounds, ends, made, keys, miss_keys, loss_keys, rates, misses, chances, indptr, running, last_time,
    times, agents, places, begun, drawn, last, run,
):  # fmt: skip
    """Write the events of one run of a star after the other; returns how many runs are whole, for want of room.

    Run r takes the keys of row r, and its events end at ``bounds[r + 1]``. ``ends[r]`` is its state then, ``made[r]``
    the releases of each owner.
    """
    n, counters = rates.size, run.counters
    for r in range(keys.shape[0]):
        for i in range(n):
            run.releases[i], run.versions[i], places[i], begun[i], drawn[i] = 0, 0, 0, 0, 0
        drawn[n] = 0
        counters[ideal.SEQ], counters[ideal.TOTAL], counters[ideal.ABLE] = 0, 0, n
        counters[ideal.STATE], counters[ideal.LAST] = st.RUNNING, last
        ideal.first_ticks(keys[r], rates, times, agents)
        wire = ideal.Wire(loss_keys[r], chances, drawn) if chances is not None else None
        bounds[r + 1] = bounds[r] + _fill(
            out[bounds[r] :], room, st.REQUEST, False, False, None, keys[r], keys[r], miss_keys[r], rates, misses,
            indptr, None, running, last_time, times, agents, places, None, begun, run, wire,
        )  # fmt: skip
        if counters[ideal.STATE] == st.RUNNING:
            return r
        ends[r] = counters[ideal.STATE]
        for i in range(n):
            made[r, i] = run.releases[i]
    return keys.shape[0]


def kind_of_run(network: Network) -> Callable[[RunSetup], IdealRun | MachineRun]:
    """What begins runs of a network in the compiled engine."""
    if _takes_no_time(network):
        return partial(IdealRun, masks=Masks.of(network))
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


@dataclass(frozen=True)
class Masks:
    """What all runs of a network have in common in which no message takes time.

    Of what is None the compiler makes code of its own, as fast as if there were no masks at all.

    Attributes
    ----------
    form : CompiledExchange
    misses : ndarray, shape (n,), or None
        Probability that each agent misses a wake.
    chances : ndarray, shape (m,), or None
        Probability that a delivery over each entry of `Graph.indices` is lost.
    """

    form: CompiledExchange
    misses: np.ndarray | None
    chances: np.ndarray | None
    links: Graph

    @classmethod
    def of(cls, network: Network) -> Masks:
        """Those of a network."""
        links, losses = network.links, network.channel.losses
        missed = network.availability.missed(network.known_members, links, Streams())
        chances = None if losses.shared_chance == 0 else losses.chances(links)
        return cls(network.exchange.compiled(links), missed[0].chances if missed else None, chances, links)

    @cached_property
    def running(self) -> np.ndarray:
        """`ideal.running_weights` where neighbours are drawn by weight."""
        by_weight = self.form.settings.get("by_weight")
        return ideal.running_weights(self.links.indptr, self.links.weights) if by_weight else np.empty(0)

    @cached_property
    def room(self) -> int:
        """Events that a wake leads to at most."""
        return max(1 + ideal.MOST, 3 + int(np.diff(self.links.indptr).max()))


class IdealRun:
    """One run in which no message takes time."""

    def __init__(self, setup: RunSetup, masks: Masks):
        network, self._rates, streams, limits, commits, time, self._chunk = setup
        self._network, self._streams, self._masks, n = network, streams, masks, self._rates.size
        self._time = np.inf if time is None else time
        self._wire = None
        if masks.chances is not None:
            self._wire = ideal.Wire(streams.key("loss"), masks.chances, np.zeros(n + 1, np.int64))
        self._progress = ideal.Progress(
            np.full(n, _MOST) if limits is None else limits,
            network.goes_on,
            np.zeros(n, np.int64),
            np.zeros(n, np.int64),
            np.array([0, 0, n, st.RUNNING, _MOST if commits is None else commits]),
        )

    @property
    def ended(self) -> str:
        """How the run ended; empty while it goes on."""
        return st.ENDS[self._progress.counters[ideal.STATE]]

    def run(self) -> Iterator[np.ndarray]:
        """Yield chunks of events."""
        pattern, counters = self._masks.form.pattern, self._progress.counters
        if pattern == "rounds":
            fill, least = self._rounds()
        else:
            fill, least = self._rounds_of_agents() if pattern == "synchronous" else self._wakes()
        return st.in_chunks(
            self._chunk,
            least,
            lambda: counters[ideal.STATE] == st.RUNNING,
            lambda out, kept: kept + fill(out[kept:]),
            least * float(counters[ideal.LAST]),
        )

    def _wakes(self) -> tuple[Fill, int]:
        """What writes events wake by wake, and the room that it needs for one."""
        network, masks, rates, key = self._network, self._masks, self._rates, self._streams.key("clocks")
        links, misses, n = masks.links, masks.misses, rates.size
        progress, wire, time = self._progress, self._wire, self._time
        places, begun = np.zeros(n, np.int64), np.zeros(n, np.int64)
        hears, one_sided = network.updates == "hear", not network.answerer_releases
        pattern, asks, running = st.PATTERNS[masks.form.pattern], masks.form.arrays.get("asks"), masks.running
        indices = links.indices if pattern != st.REQUEST else None
        # A key that nothing is drawn with stays unhashed: any stands in its place.
        peer_key = key if indices is None else self._streams.key("peers")
        miss_key = key if misses is None else self._streams.key("availability")

        def write(out: np.ndarray, times: np.ndarray, agents: np.ndarray, window: np.ndarray | None) -> int:
            return _fill(
                out, masks.room, pattern, hears, one_sided, asks, key, peer_key, miss_key, rates, misses,
                links.indptr, indices, running, time, times, agents, places, window, begun, progress, wire,
            )  # fmt: skip

        if n < ideal.MANY:
            heap = np.empty(n), np.empty(n, np.int32)
            ideal.first_ticks(key, rates, *heap)
            return lambda out: write(out, *heap, None), masks.room
        windows, taken = ideal.ticks(key, rates), np.zeros(1, np.int64)
        ticks = next(windows)

        def fill(out: np.ndarray) -> int:
            nonlocal ticks
            at = write(out, *ticks, taken)
            while taken[0] == ticks[0].size and progress.counters[ideal.STATE] == st.RUNNING:
                ticks, taken[0] = next(windows), 0
                at += write(out[at:], *ticks, taken)
            return at

        return fill, masks.room

    def _rounds(self) -> tuple[Fill, int]:
        """What writes events round by round, and the room that it needs for one."""
        from p2psim.network.compiled_engine import rounds

        form, misses, n = self._masks.form, self._masks.misses, self._rates.size
        asked, heard = form.arrays["asked"], np.zeros(n, np.int64)
        miss_key, choice_key = self._streams.key("availability"), self._streams.key("participants")
        interval, some = form.settings["interval"], np.int64(form.settings["some"])

        def fill(out: np.ndarray) -> int:
            return rounds.fill(
                out, interval, choice_key, some, asked, miss_key, misses, self._time, heard, self._progress,
                self._wire,
            )  # fmt: skip

        return fill, 2 + 4 * n

    def _rounds_of_agents(self) -> tuple[Fill, int]:
        """The same of rounds of agents on a graph."""
        from p2psim.network.compiled_engine import synchronous

        form, misses, links, n = self._masks.form, self._masks.misses, self._masks.links, self._rates.size
        interval, wakes = form.settings["interval"], form.arrays["wakes"]
        ticks = np.zeros(n, np.int64)
        miss_key = self._streams.key("availability")

        def fill(out: np.ndarray) -> int:
            return synchronous.fill(
                out, interval, self._network.updates == "hear", miss_key, misses, self._time, links.indptr,
                links.indices, ticks, wakes, self._progress, self._wire,
            )  # fmt: skip

        return fill, 3 * n + links.indices.size


class RunsTogether(NamedTuple):
    """Events of several runs, in one array.

    Attributes
    ----------
    events : ndarray of EVENT
    bounds : ndarray of int64, shape (runs + 1,)
        Those of run r are from bounds[r] to bounds[r + 1].
    ended : list of str
        How each run ended.
    made : ndarray of int64, shape (runs, n)
        Releases of each agent.
    """

    events: np.ndarray
    bounds: np.ndarray
    ended: list[str]
    made: np.ndarray


def run_together(network: Network) -> Callable[[RunSetup, Sequence[Streams]], RunsTogether | None] | None:
    """What makes the events of several runs of a network at once, which differ in their streams alone; None if nothing.

    Runs of a star where no message takes time are so short that calls of Python would take as long as they do. It
    gives up, and returns None, where all events together are many times a chunk: of a network that loses most messages.
    """
    if not _takes_no_time(network) or network.exchange.compiled(network.links).pattern != "request":
        return None
    return partial(_runs_together, Masks.of(network))


def _runs_together(masks: Masks, setup: RunSetup, streams: Sequence[Streams]) -> RunsTogether | None:
    network, rates, _, limits, commits, time, _ = setup
    runs, n, most = len(streams), rates.size, _MOST if commits is None else commits
    keys = np.array([one.key("clocks") for one in streams])
    miss_keys = keys if masks.misses is None else np.array([one.key("availability") for one in streams])
    loss_keys = keys if masks.chances is None else np.array([one.key("loss") for one in streams])
    bounds, ends, made = np.zeros(runs + 1, np.int64), np.zeros(runs, np.int64), np.zeros((runs, n), np.int64)
    limits = np.full(n, _MOST) if limits is None else limits
    releases, versions = np.zeros((2, n), np.int64)
    progress = ideal.Progress(limits, network.goes_on, releases, versions, np.zeros(5, np.int64))
    times, agents = np.empty(n), np.empty(n, np.int32)
    places, begun, drawn = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n + 1, np.int64)
    room = setup.chunk
    while room <= _GROWN * setup.chunk:
        out = st.records(room, EVENT)
        whole = _fill_each(
            out, masks.room, bounds, ends, made, keys, miss_keys, loss_keys, rates, masks.misses, masks.chances,
            masks.links.indptr, masks.running, np.inf if time is None else time, times, agents, places, begun, drawn,
            most, progress,
        )  # fmt: skip
        if whole == runs:
            return RunsTogether(out[: bounds[-1]], bounds, [st.ENDS[end] for end in ends.tolist()], made)
        room *= 2
    return None
