"""Where in a stream of events something is to be recorded.

Records metrics of the network, of any family, from the events alone.

Records how much privacy has been spent, so that runs can be compared at the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

import numpy as np

from p2psim.core.errors import MeaningError, SimulationError
from p2psim.core.events import COMMIT
from p2psim.core.times import is_past, upto
from p2psim.network.channels.draws import Airtime, airtime_of
from p2psim.network.metrics import NETWORK_METRICS, NetworkMetric, Seen
from p2psim.network.simulation import Network
from p2psim.network.tally import Tally
from p2psim.privacy.accounting.noises import Noise, PureNoise, is_pure
from p2psim.privacy.ledger import Claims, claimed_charges
from p2psim.privacy.plan import Plan
from p2psim.privacy.releases import Book, by_agent, joined
from p2psim.privacy.shares import Releases, Totals
from p2psim.scenario.notices import Compared
from p2psim.scenario.record import SPENDING, EveryTime, RecordSection
from p2psim.simulation.outcome import Series


class Marks:
    """Moments of recording: after every so many commits, or at regular times; the first and the last always.

    The first is time 0, after what happens then: agents that are away at first have left.

    Parameters
    ----------
    every : int or EveryTime
        As in the record section.

    Attributes
    ----------
    step, time
        Commits so far, and the time of the last event.
    """

    def __init__(self, every: int | EveryTime):
        self._every_step, self._every_time = (
            (0, every.time) if isinstance(every, EveryTime) else (every, np.inf)
        )
        self._next_time = self._every_time
        self.step, self.time = 0, 0.0
        self._begun = False

    def places(self, events: np.ndarray) -> Iterator[tuple[int, int, float]]:
        """Where to stop in the next chunk, with the commits so far and the time to write down."""
        commits = events["kind"] == COMMIT
        if not self._begun and events[-1]["time"] > 0:
            self._begun = True
            yield int(upto(events["time"], 0.0)), 0, 0.0
        if self._every_step:
            found = np.flatnonzero(commits)
            first = self._every_step - self.step % self._every_step - 1
            for k in range(first, found.size, self._every_step):
                yield int(found[k]) + 1, self.step + k + 1, float(events[found[k]]["time"])
        else:
            counts = np.cumsum(commits)
            while is_past(events[-1]["time"], self._next_time):
                stop = int(upto(events["time"], self._next_time))
                yield stop, self.step + (int(counts[stop - 1]) if stop else 0), self._next_time
                self._next_time = self._every_time * np.rint(self._next_time / self._every_time + 1.0)
        self.step += int(np.count_nonzero(commits))
        self.time = float(events[-1]["time"])

    def is_last(self, observed: tuple[int, float]) -> bool:
        """Whether what was observed last is where the run stands now."""
        return observed[0] == self.step and not np.isfinite(self._every_time)


def places_of(every: int | EveryTime, events: np.ndarray, steps: np.ndarray, times: np.ndarray) -> list[int]:
    """How many events come before each record of a finished run; before the first, those of time 0.

    Parameters
    ----------
    every : int or EveryTime
        As in the record section.
    events : ndarray of EVENT
        All of the run.
    steps, times : ndarray, shape (records,)
        As they were written down.
    """
    first = int(upto(events["time"], 0.0))
    if isinstance(every, int):
        commits = np.flatnonzero(events["kind"] == COMMIT) + 1
        # The last record is of the end, unless it is one by count.
        at = [events.size if step % every else int(commits[step - 1]) for step in steps[1:].tolist()]
        return [first, *at]
    before = upto(events["time"], times[1:-1]).tolist()
    return [first, *before, events.size][: times.size]


class NetworkWatch:
    """Series of network metrics in progress; idle where none is recorded.

    Parameters
    ----------
    record : RecordSection
    network : Network

    Raises
    ------
    MeaningError
        If a metric is not found for so many agents.
    """

    def __init__(self, record: RecordSection, network: Network):
        self._metrics = [NETWORK_METRICS[name] for name in record.metrics if name in NETWORK_METRICS]
        if not self._metrics:
            return
        links = network.links
        for metric in self._metrics:
            if metric.most_agents is not None and links.agents > metric.most_agents:
                raise MeaningError(
                    f"record.metrics.{record.metrics.index(metric.name)}",
                    f"is found for up to {metric.most_agents} agents, there are {links.agents}",
                )
        self._marks = Marks(record.every)
        self._tally = Tally(links)
        self._rate, self._airtime = paces(network)
        self._rows: list[tuple[int, float, list[float]]] = []

    def feed(self, events: np.ndarray) -> None:
        """Read the next chunk of the stream."""
        if not self._metrics or not events.size:
            return
        start = 0
        for stop, step, time in self._marks.places(events):
            self._tally.count(events[start:stop])
            self._note(step, time)
            start = stop
        self._tally.count(events[start:])

    def finish(self) -> tuple[Series, ...]:
        """Record the last moment, and return all series."""
        if not self._metrics:
            return ()
        if not self._rows:
            self._note(0, 0.0)
        elif not self._marks.is_last(self._rows[-1][:2]):
            self._note(self._marks.step, self._marks.time)
        steps = np.array([row[0] for row in self._rows], np.int64)
        times = np.array([row[1] for row in self._rows])
        values = np.array([row[2] for row in self._rows])
        return tuple(
            Series(metric.name, "main", None, steps, times, np.ascontiguousarray(values[:, i]))
            for i, metric in enumerate(self._metrics)
        )

    def _note(self, step: int, time: float) -> None:
        seen = Seen(self._tally, time, self._rate, self._airtime)
        self._rows.append((step, time, measured(self._metrics, seen)))
        self._tally.heard[:] = False


def measured(metrics: Sequence[type[NetworkMetric]], seen: Seen) -> list[float]:
    """Values of metrics at one moment.

    Raises
    ------
    SimulationError
        If one is not finite.
    """
    values = [metric.measure(seen) for metric in metrics]
    if not all(map(isfinite, values)):
        wrong = next(
            metric.name for metric, value in zip(metrics, values, strict=True) if not isfinite(value)
        )
        raise SimulationError(f"{wrong} is not finite at time {seen.time:g}")
    return values


def paces(network: Network) -> tuple[float, Airtime]:
    """Ticks of all clocks per unit of time, 0 where nobody has a clock, and the time that transmissions take."""
    channel = network.channel
    rates = network.rates if network.rates is not None else np.ones(network.links.agents)
    rate = float(rates.sum()) if network.exchange.has_clocks else 0.0
    return rate, airtime_of(channel.airtime, channel.bandwidth, network.vectors)


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
        self._on = not SPENDING.keys().isdisjoint(record.metrics)
        self._marks = Marks(record.every)
        self._plan, self._totals = plan, totals
        # The mean over agents of what their own releases cost; of a record that several hold it is a maximum.
        alone = plan.limit.holders == 1
        self._adds_up = alone and (not plan.mechanism.is_private or is_pure(plan.mechanism.noise))
        self._parts: list[Releases] = []
        self._rows: list[tuple[int, float, float]] = []
        self._spent = mean_spent(plan, joined([]), totals) if self._on else 0.0

    def feed(self, events: np.ndarray, releases: Releases) -> None:
        """Read the next chunk of the stream, and the releases in it."""
        if not self._on or not events.size:
            return
        marks = list(self._marks.places(events))
        counts = np.searchsorted(releases.places, [stop for stop, _, _ in marks]).tolist()
        if self._adds_up:
            costs = _costs(self._plan, releases, self._totals) / self._plan.budget.size
            spent = [self._spent, *(self._spent + np.cumsum(costs)).tolist()]
            values = [spent[count] for count in counts]
            self._spent = spent[-1]
        else:
            values = [self._after(_first(releases, count)) for count in counts]
            self._parts.append(releases)
        self._rows += [(step, time, value) for (_, step, time), value in zip(marks, values, strict=True)]

    def finish(self) -> tuple[Series, ...]:
        """Record the last moment, and return the series."""
        if not self._on:
            return ()
        if not self._rows or not self._marks.is_last(self._rows[-1][:2]):
            last = self._spent if self._adds_up else self._after(joined([]))
            self._rows.append((self._marks.step, self._marks.time, last))
        steps, times, values = zip(*self._rows, strict=True)
        (name,) = SPENDING
        return (Series(name, "main", None, np.array(steps), np.array(times), np.array(values)),)

    def _after(self, more: Releases) -> float:
        """What is spent after the parts before, and some more."""
        return mean_spent(self._plan, joined([*self._parts, more]), self._totals)


def mean_spent(plan: Plan, releases: Releases, totals: Totals | None) -> float:
    """What is spent after these releases, from the first on."""
    pure = plan.mechanism.is_private and is_pure(plan.mechanism.noise)
    accountant = "basic" if pure else plan.limit.enforce
    return float(plan.epsilon(accountant, claimed_charges(plan, Claims.of(plan, releases, totals))).mean())


def _costs(plan: Plan, releases: Releases, totals: Totals | None) -> np.ndarray:
    """ε of each release, in the order of the events; infinite without noise."""
    if not plan.mechanism.is_private:
        return np.full(releases.agents.size, np.inf)
    order = by_agent(releases)
    charges = plan.charges(releases.agents[order], plan.claimed(releases, totals)[order])
    costs = np.empty(order.size)
    costs[order] = charges.each(_pure)
    return costs


def _pure(noise: Noise, losses: np.ndarray) -> np.ndarray:
    assert isinstance(noise, PureNoise)
    return noise.pure(losses)


def _first(releases: Releases, count: int) -> Releases:
    return Releases(releases.agents[:count], releases.numbers[:count], releases.steps[:count])


def compare_spending(
    plan: Plan, record: RecordSection, events: np.ndarray, series: Sequence[Series]
) -> Iterator[Compared]:
    """Set recorded spending beside what accountants say of all releases until each record."""
    if not series:
        return
    releases, _ = Book.empty(plan.budget.size).read(events)
    totals = plan.totals([releases])
    for one in series:
        counts = np.searchsorted(releases.places, places_of(record.every, events, one.step, one.time))
        again = np.array([mean_spent(plan, _first(releases, count), totals) for count in counts.tolist()])
        finite = again[np.isfinite(again)]
        yield Compared(one.value, again, max(1.0, finite.max(initial=0.0)))
