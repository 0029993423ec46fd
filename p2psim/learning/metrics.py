"""What can be recorded of the star: one function a metric, and its line in the list below."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p2psim.core.figures import Metric, Registered
from p2psim.core.registry import register_all

if TYPE_CHECKING:
    from p2psim.learning.star.problem import Recorded, StarProblem


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


class StarMetric(Metric):
    """Base of metrics of a central learner's models; see `p2psim.core.figures.Metric`.

    Attributes
    ----------
    row_by_row : bool
        Whether it gives one series, and each value depends on the model of its record alone: the same bytes whatever
        other records there are.
    """

    row_by_row = False

    @staticmethod
    @abstractmethod
    def measure(problem: StarProblem, recorded: Recorded) -> Iterator[Series]:
        """Give series of the metric's name.

        Parameters
        ----------
        problem : StarProblem
            What is minimised; records of owner i are rows ``offsets[i]`` to ``offsets[i + 1]`` of ``X`` and ``y``.
        recorded : Recorded
            Models at each record: ``step`` and ``time``, shape (rows,), and ``theta``, shape (rows, p).

        Yields
        ------
        Series
            Of finite numbers: one for all owners, with agent None, or one for each.
        """


def relative_fitness(problem: StarProblem, recorded: Recorded) -> Iterator[Series]:
    """ψ of the learner's model at each record."""
    values = problem.relative_fitness(recorded.theta)
    yield Series("relative_fitness", "main", None, recorded.step, recorded.time, values)


def test_loss(problem: StarProblem, recorded: Recorded) -> Iterator[Series]:
    """Mean loss of the records held out: of the learner's model at each record, and of θ* at the first and the last."""
    ends = [0, -1] if recorded.step.size > 1 else [0]
    step, time = recorded.step, recorded.time
    yield Series("test_loss", "main", None, step, time, problem.test_loss(recorded.theta))
    best = np.repeat(problem.test_loss(problem.optimum[None]), len(ends))
    yield Series("test_loss", "optimum", None, step[ends], time[ends], best)


def isolated_fitness(problem: StarProblem, recorded: Recorded) -> Iterator[Series]:
    """ψ of θ_i*, the optimum of each owner's records alone: constant, so given at the first and the last record."""
    ends = [0, -1] if recorded.step.size > 1 else [0]
    step, time = recorded.step[ends], recorded.time[ends]
    for owner, value in enumerate(problem.relative_fitness(problem.isolated_optima)):
        yield Series("isolated_fitness", "main", owner, step, time, np.full(len(ends), value))


register_all(
    [
        StarMetric.of(
            "relative_fitness",
            relative_fitness,
            "ψ = f(θ)/f(θ*) − 1 of the learner's model",
            label="relative fitness ψ (dimensionless)",
            row_by_row=True,
        ),
        StarMetric.of(
            "isolated_fitness",
            isolated_fitness,
            "ψ of the optimum that each owner finds alone",
            each=True,
            label="isolated fitness ψ: an owner alone (dimensionless)",
        ),
        StarMetric.of(
            "test_loss",
            test_loss,
            "mean loss of the records held out, of the learner's model and of θ* (optimum)",
            label="mean loss on records held out (dimensionless)",
        ),
    ]
)

#: Metrics of the star that are registered.
METRICS = Registered(StarMetric)  # type: ignore[type-abstract]
