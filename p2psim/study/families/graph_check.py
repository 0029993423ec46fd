"""Compares what was recorded of models on a graph with models that were recomputed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from p2psim.learning.graph_metrics import GRAPH_FACTS, GRAPH_METRICS, Seen
from p2psim.learning.graph_optimum import minimise_together
from p2psim.learning.graph_problem import GraphProblem
from p2psim.network.events import SEND
from p2psim.study.compared import Compared
from p2psim.study.families.observer import Observer
from p2psim.study.outcome import Series
from p2psim.study.record import RecordSection


@dataclass(frozen=True)
class Recomputed:
    """A replica once more, from what the run folder holds.

    Attributes
    ----------
    problem : GraphProblem
    theta : dict
        All models after so many commits, shape (n, p) each, where something was recorded.
    steps, sent : tuple of int, one each record
        Commits before it, and vectors sent.
    groups : sequence of str or None
        The agents' groups.
    baselines : dict of ndarray, shape (n, p) each
        Models of the baselines, by name.
    facts : dict
        Of the graph.
    """

    problem: GraphProblem
    theta: dict[int, np.ndarray]
    steps: tuple[int, ...]
    sent: tuple[int, ...]
    groups: Sequence[str] | None
    baselines: dict[str, np.ndarray]
    facts: dict[str, float]

    def values(self, one: Series) -> np.ndarray:
        """What the numbers of a series should be."""
        name, _, group = one.metric.removesuffix("]").partition("[")
        if name in GRAPH_FACTS:
            return np.array([self.facts[name]])
        if name == "vectors_sent":
            return np.array(self.sent, dtype=float)
        groups = self.groups or ("",) * self.problem.agents
        members = [i for i, its in enumerate(groups) if not group or its == group]
        if one.agent is not None:
            members = [one.agent]
        values = [self._measured(name, one.model, int(step), i) for i, step in enumerate(one.step)]
        return np.array([np.nanmean(np.atleast_1d(v)[members] if np.ndim(v) else v) for v in values])

    def scale(self, one: Series, again: np.ndarray) -> float:
        """What differences are relative to: the largest number of a series; for gaps, the largest objective."""
        if not one.metric.endswith("objective_gap"):
            return _size(again, one.value)
        largest = max(
            abs(float(self._measured("objective", one.model, int(step), i)))
            for i, step in enumerate(one.step)
        )
        return largest / (float(self.problem.degrees.sum()) if one.metric.startswith("mean_") else 1.0)

    def _measured(self, name: str, model: str, step: int, record: int) -> float | np.ndarray:
        main = model == "main"
        sent = self.sent[record] if main and record < len(self.sent) else 0
        key = name, model, step if main else -1, sent
        if key not in self._known:
            here = self.theta[step] if main else self.baselines[model]
            seen = Seen(self.problem, here, lambda: self.problem.objective(here), self._minimum, sent)
            self._known[key] = GRAPH_METRICS[name].measure(seen)
        return self._known[key]

    @cached_property
    def _known(self) -> dict[tuple[str, str, int, int], float | np.ndarray]:
        return {}

    def _minimum(self) -> float:
        return self.problem.objective(minimise_together(self.problem))


def records_of(
    record: RecordSection, problem: GraphProblem, events: np.ndarray, vectors: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Commits and vectors sent before each record of a run, if a message that carries a model is so many vectors."""
    observer = Observer(record, problem, None, {}, dict, float)
    told = np.concatenate([[0], np.cumsum((events["kind"] == SEND) & (events["version"] >= 0))]) * vectors
    steps: list[int] = []
    places, place = [], 0
    if events.size:
        for piece, _, step, _ in observer.pieces(events, np.empty(0, np.int64)):
            place += piece.size
            if step is not None:
                steps.append(step)
                places.append(place)
    if not steps:  # nothing happened, or at time 0 alone
        return (0,), (0,)
    if steps[-1] != observer.step or not isinstance(record.every, int):
        steps.append(observer.step)
        places.append(events.size)
    return tuple(steps), tuple(told[places].tolist())


def compare(found: Recomputed, series: Sequence[Series], models: np.ndarray | None) -> Iterator[Compared]:
    """Set records beside what was recomputed.

    Parameters
    ----------
    found : Recomputed
    series : sequence of Series
    models : ndarray, shape (records, n, p), optional
    """
    for one in series:
        again = found.values(one)
        yield Compared(one.value, again, found.scale(one, again))
    if models is not None:
        expected = np.array([found.theta[step] for step in found.steps])
        yield Compared(models, expected, _size(expected, models))


def _size(a: np.ndarray, b: np.ndarray) -> float:
    return max(float(np.abs(a).max()), float(np.abs(b).max()), float(np.finfo(float).tiny))
