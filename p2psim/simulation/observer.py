"""Records metrics of models on a graph: when, of whom, and of which baselines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from p2psim.core.errors import SimulationError
from p2psim.learning.graph.metrics import GRAPH_FACTS, GRAPH_METRICS, GraphMetric, Seen
from p2psim.learning.graph.optimum import minimise_together
from p2psim.learning.graph.problem import GraphProblem
from p2psim.scenario.record import RecordSection
from p2psim.simulation.outcome import Series


class Replayed(Protocol):
    """What is seen of a replay."""

    theta: np.ndarray

    @property
    def vectors_sent(self) -> int:
        """Models sent so far."""


class Observer:
    """Series in progress.

    Parameters
    ----------
    record : RecordSection
    problem : GraphProblem
    groups : sequence of str or None
        The agents' groups.
    baselines : dict of ndarray, shape (n, p) each
        Models to compare with, by name.
    facts : callable
        Gives the facts of the graph.
    objective : callable
        Gives Q_L at the models of the replay.
    """

    def __init__(
        self,
        record: RecordSection,
        problem: GraphProblem,
        groups: Sequence[str] | None,
        baselines: dict[str, np.ndarray],
        facts: Callable[[], dict[str, float]],
        objective: Callable[[], float],
    ):
        self._record, self._problem, self._baselines = record, problem, baselines
        # Others are recorded once, or of the events alone.
        named = dict.fromkeys([*record.metrics, *record.per_agent])
        self._metrics = [GRAPH_METRICS[name] for name in named if name in GRAPH_METRICS]
        self._facts, self._objective = facts, objective
        self._groups = np.array(groups) if record.by == "group" and groups is not None else None
        self._rows: dict[tuple[str, str, int | None], list[tuple[int, float, float]]] = {}
        self._models: list[np.ndarray] = []
        self._observed: tuple[int, float] | None = None

    def observe(self, step: int, time: float, replay: Replayed) -> None:
        """Measure all models now."""
        if self._observed is None:
            self._note_facts(step, time)
        self._observed = step, time
        seen = Seen(self._problem, replay.theta, self._objective, lambda: self._minimum, replay.vectors_sent)
        self._measure("main", step, time, seen)
        if self._record.models:
            self._models.append(replay.theta.copy())

    def finish(self) -> tuple[tuple[Series, ...], np.ndarray]:
        """Measure the baselines at the first and the last record; all series, and the recorded models."""
        assert self._observed is not None
        ends = dict.fromkeys([(0, 0.0), self._observed])
        for name, theta in self._baselines.items():
            seen = self._of_baseline(theta)
            for step, time in ends:
                self._measure(name, step, time, seen)
        series = tuple(_series(key, rows) for key, rows in self._rows.items())
        return series, np.array(self._models)

    def _note_facts(self, step: int, time: float) -> None:
        wanted = [name for name in self._record.metrics if name in GRAPH_FACTS]
        facts = self._facts() if wanted else {}
        for name in wanted:
            if name in facts:  # some are left out where the graph is large
                self._rows[name, "main", None] = [(step, time, float(facts[name]))]

    def _of_baseline(self, theta: np.ndarray) -> Seen:
        return Seen(self._problem, theta, lambda: self._problem.objective(theta), lambda: self._minimum, 0)

    @cached_property
    def _minimum(self) -> float:
        return self._problem.objective(minimise_together(self._problem))

    def _measure(self, model: str, step: int, time: float, seen: Seen) -> None:
        for metric in self._metrics:
            if model == "main" or metric.of_models:
                for key, value in self._values(metric, model, seen):
                    self._rows.setdefault(key, []).append((step, time, value))

    def _values(
        self, metric: type[GraphMetric], model: str, seen: Seen
    ) -> Iterator[tuple[tuple[str, str, int | None], float]]:
        name, value = metric.name, metric.measure(seen)
        if not metric.each:
            yield (name, model, None), _finite(name, float(value))
            return
        values = np.asarray(value)
        known = ~np.isnan(values)  # agents without records held out have none
        if name in self._record.metrics:
            yield (name, model, None), _finite(name, float(values[known].mean()))
            if self._groups is not None:
                for group in dict.fromkeys(self._groups.tolist()):
                    members = known & (self._groups == group)
                    if members.any():
                        yield (f"{name}[{group}]", model, None), _finite(name, float(values[members].mean()))
        if name in self._record.per_agent:
            for agent in np.flatnonzero(known):
                yield (name, model, int(agent)), _finite(name, float(values[agent]))


def _finite(name: str, value: float) -> float:
    if not np.isfinite(value):
        raise SimulationError(f"{name} is not finite")
    return value


def _series(key: tuple[str, str, int | None], rows: list[tuple[int, float, float]]) -> Series:
    step, time, value = zip(*rows, strict=True)
    return Series(*key, np.array(step, np.int64), np.array(time, np.float64), np.array(value, np.float64))
