"""Verification of a recorded replica by the reference, from the replica's events, noise and data alone.

`compare` is the comparison of records with recomputed models on a graph.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from p2psim.core.errors import SimulationError
from p2psim.core.process import one_thread
from p2psim.core.registry import place_of
from p2psim.learning.graph.metrics import GRAPH_FACTS, GRAPH_METRICS, Snapshot
from p2psim.learning.graph.optimum import minimum
from p2psim.network.metrics import NETWORK_METRICS, NetworkState
from p2psim.network.metrics_reference import ReferenceTally, in_words
from p2psim.network.section import Network
from p2psim.network.tally import Tally
from p2psim.scenario.model import Scenario
from p2psim.scenario.notices import Compared, drift
from p2psim.scenario.record import SPENDING
from p2psim.simulation.algorithms import adapter_of
from p2psim.simulation.algorithms.replay import RecordedReplica, ReplaySetup
from p2psim.simulation.outcome import Series, streams_of
from p2psim.simulation.prepared import PreparedData
from p2psim.simulation.recorder import Marks, compare_spending, marks_of_run, paces


def compare_network(
    network: Network, events: np.ndarray, marks: Marks, series: Sequence[Series], end: float | None = None
) -> Iterator[Compared]:
    """Set recorded metrics of the network beside those of a plain reading.

    Metrics from outside p2psim, which the plain reading does not know, are measured again. Differences are relative
    to the largest number of a series, at least 1: most are shares.

    Parameters
    ----------
    network : Network
    events : ndarray of EVENT
    marks : Marks
        Where in them the series were recorded.
    series : sequence of Series
        Of the network.
    end : float, optional
        End of the run.
    """
    if not series:
        return
    metrics, pace = {one.metric: NETWORK_METRICS[one.metric] for one in series}, paces(network)
    known = [name for name, metric in metrics.items() if place_of(metric) is None]
    others = [metric for metric in metrics.values() if place_of(metric) is not None]
    of_each = {one.metric for one in series if one.agent is not None}
    reading, tally = ReferenceTally(network.links, *pace, end=end), Tally(network.links, end)
    happened, rows, start = in_words(events), [], 0
    each = []
    for stop, time in zip(marks.places.tolist(), marks.times.tolist(), strict=True):
        reading.read(happened[start:stop])
        row = reading.record(time, known)
        each.append(dict[str, Any](reading.record_each(of_each.intersection(known))))
        if others:
            tally.count(events[start:stop])
            state = NetworkState(tally, time, *pace)
            row |= {metric.name: metric.measure(state) for metric in others}
            each[-1] |= {
                m.name: m.measure_each(state) for m in others if m.measure_each and m.name in of_each
            }
            tally.heard[:] = False
        rows.append(row)
        start = stop
    for one in series:
        again = [
            row[one.metric] if one.agent is None else of_agents[one.metric][one.agent]
            for row, of_agents in zip(rows, each, strict=True)
        ]
        yield Compared.of(one.value, np.array(again), least=1.0)


@dataclass(frozen=True)
class Recomputed:
    """A replica once more, from what the run folder holds.

    Attributes
    ----------
    problem : GraphProblem or SharedProblem
    theta : sequence or dict
        All models, shape (n, p) each: of each record; by the commits before, where ``sent`` is empty.
    sent : tuple of int
        Vectors sent before each record.
    groups : sequence of str or None
        The agents' groups.
    baselines : dict of ndarray, shape (n, p) each
        Models of the baselines, by name.
    facts : dict
        Of the graph.
    lowest : callable, optional
        Gives the minimum of the objective; Q_L* when left out.
    """

    problem: Any
    theta: Sequence[np.ndarray] | Mapping[int, np.ndarray]
    sent: tuple[int, ...]
    groups: Sequence[str] | None
    baselines: dict[str, np.ndarray]
    facts: dict[str, float]
    lowest: Callable[[], float] | None = None

    def values(self, entry: Series) -> np.ndarray:
        """What the numbers of a series should be."""
        name, _, group = entry.metric.removesuffix("]").partition("[")
        if name in GRAPH_FACTS:
            return np.array([self.facts[name]])
        if name == "vectors_sent":
            return np.array(self.sent, dtype=float)
        groups = self.groups or ("",) * self.problem.agents
        members = [i for i, its in enumerate(groups) if not group or its == group]
        if entry.agent is not None:
            members = [entry.agent]
        values = [self._measured(name, entry.model, int(step), i) for i, step in enumerate(entry.step)]
        return np.array([np.nanmean(np.atleast_1d(v)[members] if np.ndim(v) else v) for v in values])

    def compared(self, entry: Series) -> Compared:
        """A series beside its recomputed numbers; differences of gaps are relative to the largest objective."""
        again = self.values(entry)
        if not entry.metric.endswith("objective_gap"):
            return Compared.of(entry.value, again)
        largest = max(
            abs(float(self._measured("objective", entry.model, int(step), i)))
            for i, step in enumerate(entry.step)
        )
        unit = float(self.problem.degrees.sum()) if entry.metric.startswith("mean_") else 1.0
        return Compared(entry.value, again, largest / unit)

    def _measured(self, name: str, model: str, step: int, record: int) -> float | np.ndarray:
        main = model == "main"
        sent = self.sent[record] if main and self.sent else 0
        place = (record if self.sent else step) if main else -1
        key = name, model, place
        if key not in self._known:
            here = self.theta[place] if main else self.baselines[model]
            problem = self.problem
            objective, lowest = partial(problem.objective, here), self.lowest or partial(minimum, problem)
            self._known[key] = GRAPH_METRICS[name].measure(Snapshot(problem, here, objective, lowest, sent))
        return self._known[key]

    @cached_property
    def _known(self) -> dict[tuple[str, str, int], float | np.ndarray]:
        return {}


def compare(again: Recomputed, series: Sequence[Series], models: np.ndarray | None) -> Iterator[Compared]:
    """Set records beside what was recomputed.

    Parameters
    ----------
    again : Recomputed
    series : sequence of Series
    models : ndarray, shape (records, n, p), optional
    """
    yield from map(again.compared, series)
    if models is not None:
        yield Compared.of(models, np.array(again.theta))


#: Largest relative difference that rounding explains where nothing amplifies it.
TOLERANCE = 1e-9

#: By how much the features are scaled to see what becomes of rounding: four units in the last place.
NUDGE = 2.0**-50

#: Rounding at every step may move a replay so many times farther than one nudge does.
SLACK = 100


@dataclass(frozen=True)
class Differences:
    """How far a recorded replica is from the recomputed one.

    Attributes
    ----------
    values : int
        Numbers compared.
    largest : float
        Largest relative difference; each algorithm says relative to what.
    drift : float
        As large a difference between two reference replays, of which one has nudged data; zero where `largest` is
        within `TOLERANCE`, since it is not asked then.
    """

    values: int
    largest: float
    drift: float = 0.0


def verify_replica(
    scenario: Scenario,
    case: PreparedData,
    replica: int,
    events: np.ndarray,
    noise: np.ndarray,
    series: tuple[Series, ...],
    models: np.ndarray | None = None,
) -> Differences:
    """Replay a replica with the reference and compare what was recorded.

    An unstable step (h above 2) amplifies rounding, so that two right implementations part. Where the difference
    exceeds the tolerance, the reference therefore replays it once more, with all features scaled by
    1 + `NUDGE`, to see how far two reference replays differ.

    Parameters
    ----------
    scenario : Scenario
        Of the cell, without a sweep.
    case : PreparedData
        The prepared data, as in ``data.npz``, and the agents' labels and groups.
    replica : int
    events : ndarray of EVENT
    noise : ndarray, shape (releases, p)
        Ordered by (agent, release).
    series : tuple of Series
        What was recorded.
    models : ndarray, shape (records, …), optional
        The recorded models.

    Raises
    ------
    SimulationError
        If two reference replays differ though nothing was scaled.
    """
    adapter, streams = adapter_of(scenario), streams_of(scenario, replica)
    counted = tuple(entry for entry in series if entry.metric in NETWORK_METRICS)
    spent = tuple(entry for entry in series if entry.metric in SPENDING)
    learned = tuple(entry for entry in series if entry.metric not in {**NETWORK_METRICS, **SPENDING})
    cell = adapter.cell(scenario, case, replica)
    setup = cell.setup
    # What is counted does not depend on models, so that nothing amplifies its rounding.
    marks = marks_of_run(scenario.record.every, events, _end_of(setup, series))
    exact = [
        *compare_network(setup.network, events, marks, counted, setup.time),
        *compare_spending(setup.plan, setup.queries, events, marks, spent),
    ]
    recorded = RecordedReplica(streams, events, noise, marks, learned, models)
    # As in a run: last digits must not depend on the number of threads.
    with one_thread():
        compared = list(cell.verify(recorded))
        values = sum(pair.recorded.size for pair in (*exact, *compared))
        miscounted = max((pair.difference for pair in exact), default=0.0)
        largest = max((pair.difference for pair in compared), default=0.0)
        if miscounted > TOLERANCE or largest <= TOLERANCE:
            return Differences(values, max(miscounted, largest))
        again = adapter.cell(scenario, case, replica).verify(recorded)
        pairs = zip(compared, again, strict=True)
        if not all(np.array_equal(one.again, other.again, equal_nan=True) for one, other in pairs):
            message = "two replays of the same events and data differ: a part is not deterministic"
            raise SimulationError(message)
        nudged = replace(case, arrays={**case.arrays, "X": case.arrays["X"] * (1 + NUDGE)})
        again = adapter.cell(scenario, nudged, replica).verify(recorded)
        return Differences(values, largest, drift(compared, again))


def _end_of(setup: ReplaySetup, series: Sequence[Series]) -> float | None:
    """Time at which a recorded run ended; None if its records end with its last event."""
    last = max((float(entry.time[-1]) for entry in series if entry.time.size), default=np.inf)
    return setup.time if setup.time is not None and last >= setup.time else None
