"""Where in a stream of events something is recorded, and the series of network metrics and of the privacy spent.

Metrics of the network are recorded for any algorithm, from the events alone. The privacy spent is recorded so that runs
can be compared at equal privacy.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from p2psim.core.errors import MeaningError, SimulationError
from p2psim.core.events import COMMIT
from p2psim.core.times import ROUNDING, upto
from p2psim.network.channels.draws import Airtime
from p2psim.network.metrics import NETWORK_METRICS, NetworkMetric, NetworkState
from p2psim.network.section import Network
from p2psim.network.tally import Tally
from p2psim.privacy.accounting.noises import is_pure
from p2psim.privacy.plan import Claims, Plan
from p2psim.privacy.releases import ReleaseCounter, by_agent, joined
from p2psim.privacy.shares import Releases, Totals
from p2psim.scenario.notices import Compared
from p2psim.scenario.record import SPENDING, EveryTime, RecordSection, between_records
from p2psim.simulation.outcome import Series


class Marks(NamedTuple):
    """Places in a chunk of events where something is recorded, in order; arrays of one length.

    Attributes
    ----------
    places : ndarray of int64
        Events of the chunk that come before the record.
    steps : ndarray of int64
        Commits so far.
    times : ndarray
        What is written down as the time.
    """

    places: np.ndarray
    steps: np.ndarray
    times: np.ndarray


class Recorder:
    """Where in a stream of events something is recorded: by ``record.every``, and at the first and the last moment.

    The first record is of time 0, after what happens then except commits: agents that are offline at first have left.
    By time, the k-th is of k·interval, after what happens then (`p2psim.core.times`).

    Parameters
    ----------
    every : int or EveryTime
        As in the record section.
    """

    def __init__(self, every: int | EveryTime):
        self._every, self._interval = between_records(every)
        self._begun = False
        self._made = 1  # records by time, that of time 0 among them
        self._step, self._time = 0, 0.0

    def read(self, events: np.ndarray, kinds: np.ndarray | None = None) -> Marks:
        """Records within the next chunk of events; ``kinds`` are those of the events, where they are at hand."""
        if not events.size:
            return NOWHERE
        times = events["time"]
        commits = np.flatnonzero((events["kind"] if kinds is None else kinds) == COMMIT)
        last = float(times[-1])
        begins = not self._begun and (last > 0 or commits.size > 0)
        first = int(begins)
        if self._every is not None:
            skipped = self._every - self._step % self._every - 1
            found = commits[skipped :: self._every]
            marks = _room(first + found.size)
            np.add(found, 1, out=marks.places[first:])
            marks.times[first:] = times[found]
            start = self._step + skipped + 1
            marks.steps[first:] = np.arange(start, start + self._every * found.size, self._every)
        else:
            moments = self._before(last)
            marks = _room(first + moments.size)
            marks.places[first:] = upto(times, moments)
            marks.times[first:] = moments
            self._made += moments.size
            marks.steps[first:] = self._step + np.searchsorted(commits, marks.places[first:])
        if begins:
            self._begun = True
            before = int(upto(times, 0.0)) if times[0] <= 0 else 0
            marks.places[0] = min(before, int(commits[0])) if commits.size else before
            marks.steps[0], marks.times[0] = 0, 0.0
        self._step += commits.size
        self._time = last
        return marks

    def finish(self, end: float | None = None) -> Marks:
        """Records after the last event, which all see the same state.

        Parameters
        ----------
        end : float, optional
            The time that the run lasted; left out, that of its last event.
        """
        if self._begun and self._every is not None and self._step % self._every == 0:
            return NOWHERE
        times = np.zeros(0 if self._begun else 1)
        if self._every is not None:
            times = times if self._step % self._every == 0 else np.append(times, self._time)
        elif end is not None:
            times = np.concatenate([times, self._before(end), [end]])
        elif self._begun:
            times = np.append(times, self._time)
        return _marks(np.zeros(times.size), np.full(times.size, self._step), times)

    def _before(self, moment: float) -> np.ndarray:
        """Times to record at that are not recorded yet and are before a moment, not by rounding alone."""
        assert self._interval is not None
        times = self._interval * np.arange(self._made, int(moment / self._interval) + 2)
        return times[moment > times * (1 + ROUNDING)]


def _room(size: int) -> Marks:
    return Marks(np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size))


def _marks(places: ArrayLike, steps: ArrayLike, times: ArrayLike) -> Marks:
    return Marks(np.array(places, np.int64), np.array(steps, np.int64), np.array(times, float))


#: Nothing is recorded in a chunk.
NOWHERE = _marks([], [], [])


def marks_of_run(every: int | EveryTime, events: np.ndarray, end: float | None) -> Marks:
    """Records of a whole run; ``end`` as in `Recorder.finish`."""
    recorder = Recorder(every)
    inside, after = recorder.read(events), recorder.finish(end)
    places, steps, times = (np.concatenate(pair) for pair in zip(inside, after, strict=True))
    places[inside.places.size :] = events.size
    return Marks(places, steps, times)


def marks_of_runs(
    every: int, events: np.ndarray, kinds: np.ndarray, bounds: np.ndarray
) -> tuple[Marks, np.ndarray]:
    """Records by commits of several whole runs.

    Parameters
    ----------
    every : int
    events : ndarray of EVENT
    kinds : ndarray of uint8
        Theirs.
    bounds : ndarray of int64, shape (runs + 1,)
        Those of run r are from bounds[r] to bounds[r + 1]. A run whose first event is at time 0 has a commit.

    Returns
    -------
    marks : Marks
        Of one run after the other; places are counted from the run's first event.
    mark_bounds : ndarray of int64, shape (runs + 1,)
    """
    times, commits = events["time"], np.flatnonzero(kinds == COMMIT)
    until = np.searchsorted(commits, bounds)
    made = np.diff(until)
    regular, rest = made // every, made % every > 0
    mark_bounds = np.concatenate([[0], np.cumsum(1 + regular + rest)])
    marks = _room(int(mark_bounds[-1]))
    first, last = mark_bounds[:-1], mark_bounds[1:] - 1
    # What happens at time 0, except commits, comes before the first record.
    marks.places[first] = [
        min(int(upto(times[start:end], 0.0)), int(commits[k]) - start) if times[start] <= 0 else 0
        for start, end, k in zip(bounds[:-1].tolist(), bounds[1:].tolist(), until[:-1].tolist(), strict=True)
    ]
    marks.steps[first], marks.times[first] = 0, 0.0
    numbers = np.arange(1, commits.size + 1) - np.repeat(until[:-1], made)
    found = np.flatnonzero(numbers % every == 0) if every > 1 else np.arange(commits.size)
    inner = np.ones(marks.places.size, bool)
    inner[first] = False
    inner[last[rest]] = False
    marks.places[inner] = commits[found] + 1 - np.repeat(bounds[:-1], regular)
    marks.steps[inner], marks.times[inner] = numbers[found], times[commits[found]]
    # The last moment, where it is not one of those.
    marks.places[last[rest]] = np.diff(bounds)[rest]
    marks.steps[last[rest]], marks.times[last[rest]] = made[rest], times[bounds[1:][rest] - 1]
    return marks, mark_bounds


class Observer(Protocol):
    """Series in progress."""

    def feed(self, events: np.ndarray, releases: Releases, marks: Marks) -> None:
        """Read the next chunk of the stream, with its releases, and record at its marks."""

    def finish(self) -> tuple[Series, ...]:
        """All series."""


def observers(
    record: RecordSection, network: Network, plan: Plan, end: float | None
) -> tuple[Callable[[Totals | None], Observer], ...]:
    """What begins the series of a replica, from the totals of `Plan.totals`; nothing for what is not recorded.

    Parameters
    ----------
    record : RecordSection
    network : Network
    plan : Plan
    end : float or None
        End of the run.
    """
    named = {*record.metrics, *record.per_agent}
    kinds: list[Callable[[Totals | None], Observer]] = []
    if any(name in NETWORK_METRICS for name in named):
        kinds.append(lambda totals: NetworkWatch(record, network, end))
    if any(name in SPENDING for name in named):
        kinds.append(lambda totals: Spending(record, plan, totals))
    return tuple(kinds)


class NetworkWatch:
    """Series of network metrics in progress.

    Parameters
    ----------
    record : RecordSection
    network : Network
    end : float, optional
        End of the run.

    Raises
    ------
    MeaningError
        If a metric is not found for so many agents.
    """

    def __init__(self, record: RecordSection, network: Network, end: float | None = None):
        self._metrics = [NETWORK_METRICS[name] for name in record.metrics if name in NETWORK_METRICS]
        self._each = [NETWORK_METRICS[name] for name in record.per_agent if name in NETWORK_METRICS]
        links = network.links
        for metric in self._metrics:
            if metric.most_agents is not None and links.agents > metric.most_agents:
                message = f"is found for up to {metric.most_agents} agents, there are {links.agents}"
                raise MeaningError(f"record.metrics.{record.metrics.index(metric.name)}", message)
        self._tally = Tally(links, end)
        self._paces = paces(network)
        self._rows: list[tuple[int, float, list[float]]] = []
        self._of_each: list[list[np.ndarray]] = []

    def feed(self, events: np.ndarray, releases: Releases, marks: Marks) -> None:
        """See `Observer.feed`."""
        start = 0
        for stop, step, time in zip(*(column.tolist() for column in marks), strict=True):
            self._tally.count(events[start:stop])
            state = NetworkState(self._tally, time, *self._paces)
            self._rows.append((step, time, measured(self._metrics, state)))
            self._of_each.append([metric.measure_each(state) for metric in self._each if metric.measure_each])
            self._tally.heard[:] = False
            start = stop
        self._tally.count(events[start:])

    def finish(self) -> tuple[Series, ...]:
        """See `Observer.finish`."""
        steps, times, values = map(np.array, zip(*self._rows, strict=True))
        return *(
            Series(metric.name, "main", None, steps, times, np.ascontiguousarray(values[:, i]))
            for i, metric in enumerate(self._metrics)
        ), *(
            series
            for i, metric in enumerate(self._each)
            for series in _of_agents(metric.name, steps, times, np.array([row[i] for row in self._of_each]))
        )


def _of_agents(name: str, steps: np.ndarray, times: np.ndarray, values: np.ndarray) -> Iterator[Series]:
    """A series for each agent, from values of shape (records, n)."""
    for agent, column in enumerate(np.ascontiguousarray(values.T)):
        yield Series(name, "main", agent, steps, times, column)


def measured(metrics: Sequence[type[NetworkMetric]], state: NetworkState) -> list[float]:
    """Values of metrics at one moment.

    Raises
    ------
    SimulationError
        If one is not finite.
    """
    values = {metric.name: metric.measure(state) for metric in metrics}
    for name, value in values.items():
        if not isfinite(value):
            raise SimulationError(f"{name} is not finite at time {state.time:g}")
    return list(values.values())


def paces(network: Network) -> tuple[float, Airtime, int]:
    """What metrics ask of a network: the rate of its clocks, the time of transmissions, and places at its learner.

    The rate is the ticks of all clocks per unit of time, 0 where nobody has a clock.
    """
    exchange = network.exchange
    rate = float(network.known_rates.sum()) if exchange.has_clocks else 0.0
    return rate, network.airtime, exchange.places(network.links.agents)


class Spending:
    """Series of the privacy spent in progress.

    Parameters
    ----------
    record : RecordSection
    plan : Plan
    totals : Totals or None
        From `Plan.totals`.
    """

    def __init__(self, record: RecordSection, plan: Plan, totals: Totals | None):
        self._of_all, self._of_each = (
            any(name in SPENDING for name in kept) for kept in (record.metrics, record.per_agent)
        )
        self._plan, self._totals = plan, totals
        # The mean over agents of what their own releases cost; of a record that several hold it is a maximum.
        alone = plan.limit.holders == 1
        self._adds_up = alone and (not plan.mechanism.is_private or is_pure(plan.mechanism.noise))
        self._parts: list[Releases] = []
        self._rows: list[tuple[int, float, float, Any]] = []
        self._each = spent_by_each(plan, joined([]), totals)
        self._spent = float(self._each.mean())

    def feed(self, events: np.ndarray, releases: Releases, marks: Marks) -> None:
        """See `Observer.feed`."""
        counts = np.searchsorted(releases.places, marks.places).tolist()
        if self._adds_up:
            costs = _costs(self._plan, releases, self._totals)
            spent = [self._spent, *(self._spent + np.cumsum(costs / self._each.size)).tolist()]
            values = [spent[count] for count in counts]
            self._spent = spent[-1]
            each = [self._each] * len(counts)
            if self._of_each:
                ends = pairwise([0, *counts, costs.size])
                new = [np.bincount(releases.agents[i:j], costs[i:j], self._each.size) for i, j in ends]
                *each, self._each = self._each + np.cumsum(new, axis=0)
        else:
            parts = ([*self._parts, _first(releases, count)] for count in counts)
            each = [spent_by_each(self._plan, joined(pieces), self._totals) for pieces in parts]
            values = [float(one.mean()) for one in each]
            self._parts.append(releases)
        numbers = each if self._of_each else counts
        self._rows += zip(marks.steps.tolist(), marks.times.tolist(), values, numbers, strict=True)

    def finish(self) -> tuple[Series, ...]:
        """See `Observer.finish`."""
        (name,) = SPENDING
        steps, times, values, each = map(np.array, zip(*self._rows, strict=True))
        mean = (Series(name, "main", None, steps, times, values),) * self._of_all
        return *mean, *(_of_agents(name, steps, times, each) if self._of_each else ())


def spent_by_each(plan: Plan, releases: Releases, totals: Totals | None) -> np.ndarray:
    """What each agent has spent after these releases, from the first on, shape (n,)."""
    pure = plan.mechanism.is_private and is_pure(plan.mechanism.noise)
    accountant = "basic" if pure else plan.limit.enforce
    return plan.epsilon(accountant, plan.charges(Claims.of(plan, releases, totals), plan.limit.start))


def _costs(plan: Plan, releases: Releases, totals: Totals | None) -> np.ndarray:
    """ε of each release, in the order of the events; infinite without noise."""
    if not plan.mechanism.is_private:
        return np.full(releases.agents.size, np.inf)
    order = by_agent(releases)
    charges = plan.charges(Claims(releases.agents[order], plan.claimed(releases, totals)[order]))
    costs = np.empty(order.size)
    costs[order] = charges.each(lambda noise, losses: noise.pure(losses))
    return costs


def _first(releases: Releases, count: int) -> Releases:
    return Releases(releases.agents[:count], releases.numbers[:count], releases.steps[:count])


def compare_spending(
    plan: Plan, queries: int, events: np.ndarray, marks: Marks, series: Sequence[Series]
) -> Iterator[Compared]:
    """Set recorded spending beside what accountants say of all releases until each record."""
    if not series:
        return
    releases = ReleaseCounter.empty(plan.budget.size, queries).read(events)
    totals = plan.totals([releases])
    counts = np.searchsorted(releases.places, marks.places).tolist()
    each = np.array([spent_by_each(plan, _first(releases, count), totals) for count in counts])
    for one in series:
        again = each.mean(axis=1) if one.agent is None else each[:, one.agent]
        yield Compared(one.value, again, max(1.0, again[np.isfinite(again)].max(initial=0.0)))
