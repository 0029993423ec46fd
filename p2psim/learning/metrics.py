"""What can be recorded of the star: one function a metric, and its line in `METRICS`.

A metric takes the problem and the recorded models and gives series; it draws no random numbers and sees no events,
so that recording more changes nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from p2psim.learning.learner_replay import Recorded
    from p2psim.learning.star_problem import StarProblem


@dataclass(frozen=True)
class Series:
    """Values of one metric of one model.

    Attributes
    ----------
    metric, model : str
        The model is ``main``, or a baseline's name.
    agent : int or None
        None for a metric of no single agent.
    step : ndarray of int64
    time, value : ndarray of float64
        Of the same length.
    """

    metric: str
    model: str
    agent: int | None
    step: np.ndarray
    time: np.ndarray
    value: np.ndarray


@dataclass(frozen=True)
class Metric:
    """A metric and its meaning."""

    measure: Callable[[StarProblem, Recorded], Iterator[Series]]
    meaning: str


def relative_fitness(problem: StarProblem, recorded: Recorded) -> Iterator[Series]:
    """ψ of the learner's model at each record."""
    values = problem.relative_fitness(recorded.theta)
    yield Series("relative_fitness", "main", None, recorded.step, recorded.time, values)


def isolated_fitness(problem: StarProblem, recorded: Recorded) -> Iterator[Series]:
    """ψ of θ_i*, the optimum of each owner's records alone: constant, so given at the first and the last record."""
    ends = [0, -1] if recorded.step.size > 1 else [0]
    step, time = recorded.step[ends], recorded.time[ends]
    for owner, value in enumerate(problem.relative_fitness(problem.isolated_optima)):
        yield Series("isolated_fitness", "main", owner, step, time, np.full(len(ends), value))


METRICS: dict[str, Metric] = {
    "relative_fitness": Metric(relative_fitness, "ψ = f(θ)/f(θ*) − 1 of the learner's model"),
    "isolated_fitness": Metric(isolated_fitness, "ψ of the optimum that each owner finds alone"),
}
