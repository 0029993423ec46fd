"""Compares what was recorded of models on a graph with models that were recomputed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import numpy as np

from p2psim.learning.graph_metrics import GRAPH_FACTS, GRAPH_METRICS, Seen
from p2psim.learning.graph_optimum import minimise_together
from p2psim.learning.graph_problem import GraphProblem
from p2psim.study.compared import Compared
from p2psim.study.families.observer import Observer
from p2psim.study.outcome import Series
from p2psim.study.record import RecordSection

#: Metrics that do not follow from the models.
_OTHER = {"vectors_sent", *GRAPH_FACTS}


def recorded_steps(record: RecordSection, problem: GraphProblem, events: np.ndarray) -> list[int]:
    """Commits before each record of a run."""
    observer = Observer(record, problem, None, {}, dict, float)
    steps = [0]
    if events.size:
        pieces = observer.pieces(events, np.empty(0, np.int64))
        steps = [step for *_, step, _ in pieces if step is not None]
        if steps[-1] != observer.step or not isinstance(record.every, int):
            steps.append(observer.step)
    return steps


def compare(
    problem: GraphProblem,
    path: Iterable[np.ndarray],
    steps: Sequence[int],
    groups: Sequence[str] | None,
    series: Sequence[Series],
    models: np.ndarray | None,
) -> Iterator[Compared]:
    """Set records beside what recomputed models give.

    Differences are relative to the largest number of a series, or of all models; of gaps, to the largest objective.

    Parameters
    ----------
    problem : GraphProblem
    path : iterable of ndarray, shape (n, p)
        All models after every commit; the first is the start.
    steps : sequence of int
        Where something was recorded.
    groups : sequence of str or None
        The agents' groups.
    series : sequence of Series
    models : ndarray, shape (records, n, p), optional
    """
    wanted = set(steps)
    theta = {step: models for step, models in enumerate(path) if step in wanted}

    @cache
    def minimum() -> float:
        return problem.objective(minimise_together(problem))

    @cache
    def measured(name: str, step: int) -> float | np.ndarray:
        here = theta[step]
        return GRAPH_METRICS[name].measure(Seen(problem, here, lambda: problem.objective(here), minimum, 0))

    for one in series:
        name, _, group = one.metric.removesuffix("]").partition("[")
        if one.model != "main" or name in _OTHER:
            continue
        if one.agent is not None:
            members = [one.agent]
        else:
            members = [i for i in range(problem.agents) if not group or (groups and groups[i] == group)]
        values = [measured(name, int(step)) for step in one.step]
        again = np.array([np.nanmean(np.atleast_1d(v)[members] if np.ndim(v) else v) for v in values])
        if name == "objective_gap":
            scale = max(abs(float(measured("objective", int(step)))) for step in one.step)
        else:
            scale = _size(again, one.value)
        yield Compared(one.value, again, scale)
    if models is not None:
        expected = np.array([theta[step] for step in steps])
        yield Compared(models, expected, _size(expected, models))


def _size(a: np.ndarray, b: np.ndarray) -> float:
    return max(float(np.abs(a).max()), float(np.abs(b).max()), float(np.finfo(float).tiny))
