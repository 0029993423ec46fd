"""What can be recorded of models on a graph: one function a metric, and its line in the list below."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from p2psim.core.errors import SimulationError
from p2psim.core.figures import Metric, Registered
from p2psim.core.registry import register_all
from p2psim.learning.star.problem import LOWEST

if TYPE_CHECKING:
    from p2psim.learning.graph.problem import GraphProblem


@dataclass(frozen=True)
class Snapshot:
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


class GraphMetric(Metric):
    """Base of metrics of agents' models; see `p2psim.core.figures.Metric` for what they say of themselves.

    Of metrics of each agent the mean is recorded as well. Where a central learner trains one model, it is measured.

    Attributes
    ----------
    needs_objective : bool
        Whether it asks for Q_L or Q_L*, which are kept up to date only if a metric does.
    needs_tests : bool
        Whether it needs records held out for tests.
    labels : {"", "classes", "numbers"}
        The labels that it judges, if only some.
    of_models : bool
        Whether it is a function of models, which baselines have too; otherwise of what was sent.
    objectives : frozenset of str
        `LearningAlgorithm.objective` of the algorithms that it can be recorded of.
    """

    needs_objective: ClassVar[bool] = False
    needs_tests: ClassVar[bool] = False
    labels: ClassVar[str] = ""
    of_models: ClassVar[bool] = True
    objectives: ClassVar[frozenset[str]] = frozenset(["personalised"])

    @staticmethod
    @abstractmethod
    def measure(snapshot: Snapshot) -> float | np.ndarray:
        """Measure all models at one moment.

        Parameters
        ----------
        snapshot : Snapshot

        Returns
        -------
        float or ndarray, shape (n,)
            Finite; one number an agent where the metric is of each, NaN of an agent for which there is none.
        """


class GraphFact(Metric):
    """Base of facts of the graph, which are recorded once, with the first models."""


def _objective_gap(snapshot: Snapshot) -> float:
    minimum = snapshot.minimum()
    gap = snapshot.objective() - minimum
    if gap < -LOWEST * abs(minimum):
        # Q_L is kept up to date by differences, whose rounding adds up.
        gap = snapshot.problem.objective(snapshot.theta) - minimum
        if gap < -LOWEST * abs(minimum):
            raise SimulationError(
                f"Q_L − Q_L* is {gap:.3g}: models are better than those taken for the minimum"
            )
    return gap


def _mean_objective_gap(snapshot: Snapshot) -> float:
    return _objective_gap(snapshot) / float(snapshot.problem.degrees.sum())


def _consensus_distance(snapshot: Snapshot) -> float:
    return float(((snapshot.theta - snapshot.theta.mean(axis=0)) ** 2).sum(axis=1).mean())


def _worst_decile(values: np.ndarray, lowest: bool) -> float:
    known = np.sort(values[~np.isnan(values)])
    count = max(1, known.size // 10)
    return float((known[:count] if lowest else known[-count:]).mean())


#: Algorithms of agents on a graph with models of their own, those that train one model, and stars.
_BOTH = frozenset(["personalised", "shared"])
_SHARED = frozenset(["shared"])
_ONE = frozenset(["shared", "fitness"])
_of_both = partial(GraphMetric.of, objectives=_BOTH)
_of_tests = partial(_of_both, needs_tests=True)
_of_classes = partial(_of_tests, labels="classes", rises=True)
_of_numbers = partial(_of_tests, labels="numbers")

register_all(
    [
        GraphMetric.of(
            "objective",
            lambda snapshot: snapshot.objective(),
            "Q_L; where one model is trained, f at the mean of the agents' models, or at the learner's",
            label="objective",
            needs_objective=True,
            objectives=_BOTH | _ONE,
        ),
        _of_both(
            "objective_gap",
            _objective_gap,
            "Q_L − Q_L*; where one model is trained, f − f* at the mean of the agents' models",
            label="objective gap (units of the objective)",
            needs_objective=True,
        ),
        GraphMetric.of(
            "mean_objective_gap",
            _mean_objective_gap,
            "(Q_L − Q_L*)/Σ_i D_ii: the gap per agent at a mean degree of 1, comparable between graphs",
            label="objective gap per agent (weights normalised)",
            needs_objective=True,
        ),
        GraphMetric.of(
            "mean_objective",
            lambda snapshot: snapshot.problem.mean_objective(snapshot.theta),
            "mean over the agents of f at their models",
            label="mean objective of the agents",
            objectives=_SHARED,
        ),
        _of_classes(
            "test_accuracy",
            lambda snapshot: snapshot.problem.test_accuracy(snapshot.theta),
            "share of right classes on held-out records, of an agent's own or, where one model is trained, of all; one "
            "without a sign counts as half right",
            label="test accuracy (fraction)",
            each=True,
            objectives=_BOTH | _ONE,
        ),
        _of_tests(
            "local_loss",
            lambda snapshot: snapshot.problem.local_loss(snapshot.theta),
            "mean loss of the agent's own held-out records, by its model or the learner's",
            label="mean loss on own records held out (dimensionless)",
            each=True,
            objectives=_ONE,
        ),
        _of_classes(
            "local_accuracy",
            lambda snapshot: snapshot.problem.local_accuracy(snapshot.theta),
            "share of right classes on the agent's own held-out records, of its model or the learner's",
            label="test accuracy on own records (fraction)",
            each=True,
            objectives=_ONE,
        ),
        _of_classes(
            "mean_model_local_accuracy",
            lambda snapshot: snapshot.problem.local_accuracy(snapshot.theta.mean(axis=0)[None]),
            "share of right classes on the agent's own held-out records, of the mean of the agents' models or the "
            "learner's",
            label="test accuracy of the mean model on own records (fraction)",
            each=True,
            objectives=_SHARED,
        ),
        _of_classes(
            "mean_model_accuracy",
            lambda snapshot: float(snapshot.problem.test_accuracy(snapshot.theta.mean(axis=0)[None])[0]),
            "share of right classes on held-out records, of the mean of the agents' models",
            label="test accuracy of the mean model (fraction)",
            objectives=_SHARED,
        ),
        _of_numbers(
            "mean_model_rmse",
            lambda snapshot: float(snapshot.problem.test_rmse(snapshot.theta.mean(axis=0)[None])[0]),
            "root mean squared error on held-out records, of the mean of the agents' models",
            label="test RMSE of the mean model (units of the label as prepared)",
            objectives=_SHARED,
        ),
        _of_numbers(
            "test_rmse",
            lambda snapshot: snapshot.problem.test_rmse(snapshot.theta),
            "root mean squared error on held-out records",
            label="test RMSE (units of the label as prepared)",
            each=True,
            objectives=_BOTH | _ONE,
        ),
        _of_classes(
            "worst_decile_accuracy",
            lambda snapshot: _worst_decile(snapshot.problem.test_accuracy(snapshot.theta), True),
            "mean accuracy of the tenth of agents with the lowest",
            label="test accuracy of the worst tenth of agents (fraction)",
        ),
        _of_numbers(
            "worst_decile_rmse",
            lambda snapshot: _worst_decile(snapshot.problem.test_rmse(snapshot.theta), False),
            "mean error of the tenth of agents with the highest",
        ),
        _of_both(
            "consensus_distance",
            _consensus_distance,
            "mean of ‖θ_i − θ̄‖²",
            label="consensus distance (squared units of θ)",
        ),
        _of_both(
            "vectors_sent",
            lambda snapshot: float(snapshot.vectors_sent),
            "p-vectors sent so far; a broadcast counts once",
            label="p-vectors sent (number)",
            rises=True,
            of_models=False,
        ),
        GraphFact.of(
            "lambda2",
            None,
            "second smallest eigenvalue of the Laplacian D − W",
            label="λ₂ of the Laplacian (units of weights)",
        ),
        GraphFact.of("spectral_gap", None, "gap of the normalised walk on the graph"),
        GraphFact.of("degree_mean", None, "mean number of neighbours"),
        GraphFact.of("degree_std", None, "standard deviation of the number of neighbours"),
        *(
            GraphFact.of(
                name,
                None,
                f"effective number of neighbours n_W(γ) at γ = {gamma}, W by Metropolis weights; for up to 1,000 "
                "agents",
                label=f"effective number of neighbours at γ = {gamma}",
            )
            for name, gamma in (("effective_neighbours_90", 0.9), ("effective_neighbours_99", 0.99))
        ),
        GraphFact.of("diameter", None, "longest of the shortest paths, for up to 2,000 agents"),
    ]
)

#: Metrics of models on a graph, and facts of the graph, that are registered.
GRAPH_METRICS, GRAPH_FACTS = Registered(GraphMetric), Registered(GraphFact)  # type: ignore[type-abstract]
