"""Replays one replica on a graph, and records metrics of its models and of baselines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.core.errors import SimulationError
from p2psim.learning.graph.metrics import GRAPH_FACTS, GRAPH_METRICS, GraphMetric, Snapshot
from p2psim.learning.graph.optimum import minimum
from p2psim.scenario.record import RecordSection
from p2psim.simulation.algorithms.replay import Replay, ReplayResult
from p2psim.simulation.outcome import Series
from p2psim.simulation.recorder import Marks

if TYPE_CHECKING:
    from p2psim.learning.graph.models import ModelReplay
    from p2psim.learning.sgd.replay import ModelsReplay


class RecordedGraphReplay(Replay):
    """One replica on a graph, and the series of its metrics in progress.

    Parameters
    ----------
    replay : ModelReplay or ModelsReplay
    record : RecordSection
    problem : GraphProblem or SharedProblem
    groups : sequence of str or None
        What kind of agent each is, where means over those of a kind are recorded.
    baselines : dict of ndarray, shape (n, p) each
        Models to compare with, by name.
    facts : callable
        Gives the facts of the graph.
    lowest : callable, optional
        Gives the minimum of the objective; Q_L* when left out.
    """

    def __init__(
        self,
        replay: ModelReplay | ModelsReplay,
        record: RecordSection,
        problem: Any,
        groups: Sequence[str] | None,
        baselines: dict[str, np.ndarray],
        facts: Callable[[], dict[str, float]],
        lowest: Callable[[], float] | None = None,
    ):
        super().__init__(replay)
        self._record, self._problem = record, problem
        self._minimum = cache(lowest or partial(minimum, problem))
        self._baselines, self._facts = baselines, facts
        # Others are recorded once, or of the events alone.
        named = dict.fromkeys([*record.metrics, *record.per_agent])
        self._metrics = [GRAPH_METRICS[name] for name in named if name in GRAPH_METRICS]
        self._groups = None if groups is None else np.array(groups)
        self._rows: dict[Key, list[tuple[int, float, float]]] = {}
        self._models: list[np.ndarray] = []
        self._observed: tuple[int, float] | None = None

    def feed(self, events: np.ndarray, noise: np.ndarray, places: np.ndarray, marks: Marks) -> None:
        """See `Replay.feed`."""
        rows = np.searchsorted(places, marks.places).tolist()
        start = row = 0
        for stop, last, step, time in zip(
            marks.places.tolist(), rows, marks.steps.tolist(), marks.times.tolist(), strict=True
        ):
            self._replay.feed(events[start:stop], noise[row:last])
            self._observe(step, time)
            start, row = stop, last
        self._replay.feed(events[start:], noise[row:])

    def finish(self, marks: Marks) -> ReplayResult:
        """See `Replay.finish`; measures the baselines at the first and the last record."""
        self._replay.check()
        for step, time in zip(marks.steps.tolist(), marks.times.tolist(), strict=True):
            self._observe(step, time)
        assert self._observed is not None
        ends = dict.fromkeys([(0, 0.0), self._observed])
        for name, theta in self._baselines.items():
            problem = self._problem
            snapshot = Snapshot(problem, theta, partial(problem.objective, theta), self._minimum, 0)
            for step, time in ends:
                self._measure(name, step, time, snapshot)
        series = tuple(series_of(key, rows) for key, rows in self._rows.items())
        return ReplayResult(series, np.array(self._models))

    def _observe(self, step: int, time: float) -> None:
        """Measure all models now."""
        if self._observed is None:
            self._note_facts(step, time)
        self._observed = step, time
        problem, theta, sent = self._problem, self._replay.theta, self._replay.vectors_sent
        self._measure("main", step, time, Snapshot(problem, theta, self._objective, self._minimum, sent))
        if self._record.models:
            self._models.append(theta.copy())

    def _objective(self) -> float:
        tracked = self._replay.objective
        return self._problem.objective(self._replay.theta) if tracked is None else tracked

    def _note_facts(self, step: int, time: float) -> None:
        wanted = [name for name in self._record.metrics if name in GRAPH_FACTS]
        facts = self._facts() if wanted else {}
        for name in wanted:
            if name in facts:  # some are left out where the graph is large
                self._rows[name, "main", None] = [(step, time, float(facts[name]))]

    def _measure(self, model: str, step: int, time: float, snapshot: Snapshot) -> None:
        for metric in self._metrics:
            if model == "main" or metric.of_models:
                for key, value in values_of(metric, model, snapshot, self._record, self._groups).items():
                    self._rows.setdefault(key, []).append((step, time, value))


#: A metric, perhaps of a group, a model and an agent.
Key = tuple[str, str, int | None]


def values_of(
    metric: type[GraphMetric],
    model: str,
    snapshot: Snapshot,
    record: RecordSection,
    groups: np.ndarray | None,
) -> dict[Key, float]:
    """What is recorded of a metric at one moment: of all agents, of each group, and of single agents.

    Raises
    ------
    SimulationError
        If a number is not finite.
    """
    name = metric.name
    with np.errstate(over="ignore", invalid="ignore"):  # said below
        value = metric.measure(snapshot)
    recorded: dict[Key, float] = {}
    if not metric.each:
        recorded[name, model, None] = float(value)
    else:
        values = np.asarray(value)
        known = ~np.isnan(values)  # agents without records held out have none
        if name in record.metrics:
            recorded[name, model, None] = float(values[known].mean())
            for group in () if groups is None else dict.fromkeys(groups.tolist()):
                members = known & (groups == group)
                if members.any():
                    recorded[f"{name}[{group}]", model, None] = float(values[members].mean())
        if name in record.per_agent:
            recorded |= {(name, model, int(agent)): float(values[agent]) for agent in np.flatnonzero(known)}
    if not np.isfinite(list(recorded.values())).all():
        raise SimulationError(
            f"{name} is not finite: models grow beyond all numbers; a smaller step may help"
        )
    return recorded


def series_of(key: Key, rows: list[tuple[int, float, float]]) -> Series:
    """A series from its rows: step, time and value."""
    step, time, value = zip(*rows, strict=True)
    return Series(*key, np.array(step, np.int64), np.array(time, np.float64), np.array(value, np.float64))
