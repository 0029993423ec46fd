"""What can be recorded of models on a graph: one function a metric, and its line in `GRAPH_METRICS`.

A metric is a function of the problem, all models and what the replay counts; it gives one number, or one an agent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import SimulationError
from p2psim.learning.star_problem import LOWEST

if TYPE_CHECKING:
    from p2psim.learning.graph_problem import GraphProblem


@dataclass(frozen=True)
class Seen:
    """All models at one moment, and what is known of them.

    Attributes
    ----------
    problem : GraphProblem
    theta : ndarray, shape (n, p)
    objective : callable
        Gives Q_L at these models.
    minimum : callable
        Gives Q_L*, computed when first asked for.
    vectors_sent : int
    """

    problem: GraphProblem
    theta: np.ndarray
    objective: Callable[[], float]
    minimum: Callable[[], float]
    vectors_sent: int


@dataclass(frozen=True)
class GraphMetric:
    """A metric, whether it is one number an agent, and its meaning."""

    measure: Callable[[Seen], float | np.ndarray]
    each: bool
    meaning: str


def _objective_gap(seen: Seen) -> float:
    minimum = seen.minimum()
    gap = seen.objective() - minimum
    if gap < -LOWEST * abs(minimum):
        # Q_L is kept up to date by differences, whose rounding adds up.
        gap = seen.problem.objective(seen.theta) - minimum
        if gap < -LOWEST * abs(minimum):
            raise SimulationError(
                f"Q_L − Q_L* is {gap:.3g}: models are better than those taken for the minimum"
            )
    return gap


def _mean_objective_gap(seen: Seen) -> float:
    return _objective_gap(seen) / float(seen.problem.degrees.sum())


def _consensus_distance(seen: Seen) -> float:
    return float(((seen.theta - seen.theta.mean(axis=0)) ** 2).sum(axis=1).mean())


def _worst_decile(values: np.ndarray, lowest: bool) -> float:
    known = np.sort(values[~np.isnan(values)])
    count = max(1, known.size // 10)
    return float((known[:count] if lowest else known[-count:]).mean())


GRAPH_METRICS: dict[str, GraphMetric] = {
    "objective": GraphMetric(lambda seen: seen.objective(), False, "Q_L"),
    "objective_gap": GraphMetric(_objective_gap, False, "Q_L − Q_L*"),
    "mean_objective_gap": GraphMetric(
        _mean_objective_gap,
        False,
        "(Q_L − Q_L*)/Σ_i D_ii: the gap per agent at a mean degree of 1, comparable between graphs",
    ),
    "test_accuracy": GraphMetric(
        lambda seen: seen.problem.test_accuracy(seen.theta),
        True,
        "share of right classes on held-out records; one that is not told counts as half right",
    ),
    "test_rmse": GraphMetric(
        lambda seen: seen.problem.test_rmse(seen.theta), True, "root mean squared error on held-out records"
    ),
    "worst_decile_accuracy": GraphMetric(
        lambda seen: _worst_decile(seen.problem.test_accuracy(seen.theta), True),
        False,
        "mean accuracy of the tenth of agents with the lowest",
    ),
    "worst_decile_rmse": GraphMetric(
        lambda seen: _worst_decile(seen.problem.test_rmse(seen.theta), False),
        False,
        "mean error of the tenth of agents with the highest",
    ),
    "consensus_distance": GraphMetric(_consensus_distance, False, "mean of ‖θ_i − θ̄‖²"),
    "vectors_sent": GraphMetric(
        lambda seen: float(seen.vectors_sent), False, "p-vectors sent so far; a broadcast counts once"
    ),
}

#: Metrics for which Q_L has to be known at each record.
NEED_OBJECTIVE = frozenset({"objective", "objective_gap", "mean_objective_gap"})

#: Metrics that need records held out for tests.
NEED_TESTS = frozenset({"test_accuracy", "test_rmse", "worst_decile_accuracy", "worst_decile_rmse"})

#: Facts of the graph, which are recorded once, with the first models.
GRAPH_FACTS: dict[str, str] = {
    "lambda2": "second smallest eigenvalue of the Laplacian D − W",
    "spectral_gap": "gap of the normalised walk on the graph",
    "degree_mean": "mean number of neighbours",
    "degree_std": "standard deviation of the number of neighbours",
    "diameter": "longest of the shortest paths, for up to 2,000 agents",
}
