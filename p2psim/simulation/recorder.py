"""Where in a stream of events something is recorded, and the series of network metrics and of the privacy spent.

Metrics of the network are recorded for any algorithm, from the events alone. The privacy spent is recorded so that runs
can be compared at equal privacy.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple

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
        commits = np.flatnonzero((events["kind"] if kinds is None else kinds) == COMMIT)
        last = float(events["time"][-1])
        if self._every is not None:
            skipped = self._every - self._step % self._every - 1
            found = commits[skipped :: self._every]
            places, times = found + 1, events["time"][found]
            steps = np.arange(self._step + skipped + 1, self._step + commits.size + 1, self._every)
        else:
            times = self._before(last)
            places = upto(events["time"], times)
            self._made += times.size
            steps = self._step + np.searchsorted(commits, places)
        if not self._begun and (last > 0 or commits.size):
            self._begun = True
            first = min(int(upto(events["time"], 0.0)), *commits[:1].tolist(), events.size)
            firsts, columns = (first, 0, 0.0), (places, steps, times)
            places, steps, times = (
                np.concatenate([[one], more]) for one, more in zip(firsts, columns, strict=True)
            )
        self._step += commits.size
        self._time = last
        return Marks(places, steps, times)

    def finish(self, end: float | None = None) -> Marks:
        """Records after the last event, which all see the same state.

        Parameters
        ----------
        end : float, optional
            The time that the run lasted; left out, that of its last event.
        """
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


class NetworkWatch:
    """Series of network metrics in progress; idle where none is recorded.

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
        self._idle = not self._metrics and not self._each
        if self._idle:
            return
        links = network.links
        for metric in self._metrics:
            if metric.most_agents is not None and links.agents > metric.most_agents:
                message = f"is found for up to {metric.most_agents} agents, there are {links.agents}"
                raise MeaningError(f"record.metrics.{record.metrics.index(metric.name)}", message)
        self._tally = Tally(links, end)
        self._paces = paces(network)
        self._rows: list[tuple[int, float, list[float]]] = []
        self._of_each: list[list[np.ndarray]] = []

    def feed(self, events: np.ndarray, marks: Marks) -> None:
        """Read the next chunk of the stream, and record at its marks."""
        if self._idle:
            return
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
        """All series."""
        if self._idle:
            return ()
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
    """Series of the privacy spent in progress; idle where it is not recorded.

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
        self._on = self._of_all or self._of_each
        self._plan, self._totals = plan, totals
        # The mean over agents of what their own releases cost; of a record that several hold it is a maximum.
        alone = plan.limit.holders == 1
        self._adds_up = alone and (not plan.mechanism.is_private or is_pure(plan.mechanism.noise))
        self._parts: list[Releases] = []
        self._rows: list[tuple[int, float, float, Any]] = []
        self._each = spent_by_each(plan, joined([]), totals) if self._on else np.zeros(0)
        self._spent = float(self._each.mean()) if self._on else 0.0

    def feed(self, releases: Releases, marks: Marks) -> None:
        """Read the releases of the next chunk of the stream, and record at its marks."""
        if not self._on:
            return
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
        """The series."""
        if not self._on:
            return ()
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
