"""What a scenario says of personalised models on a graph, in numbers: data, graph, problem, rule and end."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.learning.graph.algorithms import GraphAlgorithm
from p2psim.learning.graph.metrics import GRAPH_METRICS
from p2psim.learning.graph.problem import GraphProblem, GraphRule, confidences
from p2psim.network.graph import Graph
from p2psim.scenario.model import Scenario
from p2psim.simulation.algorithms.replay import claim_of, record_bound, x_bound
from p2psim.simulation.prepared import PreparedData

_TABLES = ("X", "y", "offsets", "test_X", "test_y", "test_offsets")


def algorithm_of(scenario: Scenario) -> Any:
    """The `GraphAlgorithm`.

    Raises
    ------
    MeaningError
        If it is from outside p2psim and has a base class that is not for others' algorithms.
    """
    algorithm = scenario.learning.algorithm
    if not isinstance(algorithm, GraphAlgorithm):
        bases = "p2psim.GossipAlgorithm, GraphTraining or StarTraining"
        message = f"{algorithm.kind} cannot be simulated: its base class must be {bases}"
        raise MeaningError("learning.algorithm", message)
    return algorithm


def end_of(algorithm: Any, rates: np.ndarray, agents: int) -> tuple[float | None, float]:
    """Time at which a run ends, and how often an agent wakes until then, on average."""
    if algorithm.updates_per_agent is not None:
        return float(algorithm.updates_per_agent / rates.mean()), float(algorithm.updates_per_agent)
    if algorithm.time is not None:
        return float(algorithm.time), float(algorithm.time * rates.mean())
    return None, algorithm.commits / agents


def problem_of(
    scenario: Scenario, arrays: Mapping[str, np.ndarray], links: Graph
) -> tuple[GraphProblem, bool]:
    """The problem, and whether its step sizes follow from public bounds."""
    learning = scenario.learning
    loss = learning.score_loss
    tables = {name: np.asarray(arrays[name]) for name in _TABLES}
    X, offsets = tables["X"], tables["offsets"]
    records = np.diff(offsets)
    l2 = learning.regularizer.l2
    ridge = 1.0 / np.maximum(records, 1) if l2 == "inverse-size" else np.full(records.size, float(l2))
    features = X.shape[1] - loss.intercept
    bound = x_bound(arrays["bounds"], features, 1)
    if getattr(algorithm_of(scenario), "smoothness", "public") == "data":
        bound = None
    if bound is not None:
        # ‖x‖₂ ≤ ‖x‖₁, and ‖x‖₂ ≤ √p·max|x_j|; an intercept adds one to its square.
        square = np.fmin(bound**2, features * arrays["bounds"][1] ** 2)
        curvature = np.full(records.size, loss.curvature * (square + loss.intercept))
    else:
        curvature = loss.curvature * _peaks(X, offsets)
    problem = GraphProblem(
        loss=loss,
        mu=algorithm_of(scenario).mu,
        ridge=ridge,
        confidence=confidences(records),
        smoothness=curvature + 2 * ridge,
        indptr=links.indptr,
        indices=links.indices,
        weights=links.weights,
        **tables,
    )
    return problem, bound is not None


def _peaks(X: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Largest eigenvalue of XᵀX/m of each agent, shape (n,)."""
    peaks = np.zeros(offsets.size - 1)
    for i in range(peaks.size):
        Xi = X[offsets[i] : offsets[i + 1]]
        if len(Xi):
            peaks[i] = np.linalg.norm(Xi, ord=2) ** 2 / len(Xi)
    return peaks


def rule_of(scenario: Scenario, case: PreparedData, problem: GraphProblem) -> tuple[float, GraphRule]:
    """Ξ, and how an agent computes its gradient and what it does without."""
    privacy, slope = scenario.privacy, problem.loss.slope_bound
    given = privacy.sensitivity if privacy.mechanism.is_private else None
    if given is not None and given.over_models and np.isinf(slope):
        message = (
            f"{given.kind} needs a bound on θ, which personalised models have not: clip, or declare a bound"
        )
        raise MeaningError("privacy.sensitivity", message)
    bounds = case.arrays["bounds"]
    bound, rule = claim_of(scenario, problem, lambda order: slope * record_bound(bounds, problem, order))
    claimed = rule.bound * (1 + 1e-12)
    # Where no record's norm exceeds its bound, no gradient ever will.
    can_exceed = np.isinf(slope) or problem.largest_gradients(rule.order).max(initial=0.0) > claimed
    anchored = privacy.when_spent == "anchored" or not scenario.learning.algorithm.touches_data
    return bound, GraphRule(rule.clip, rule.order, claimed if can_exceed else np.inf, rule.grid, anchored)


def refuse_tests(scenario: Scenario) -> None:
    """Raise a MeaningError if a metric needs records held out; called where there are none."""
    for key in ("metrics", "per_agent"):
        for i, name in enumerate(getattr(scenario.record, key)):
            if name in GRAPH_METRICS and GRAPH_METRICS[name].needs_tests:
                message = f"{name} needs records held out: test_points of the source, or data.test_fraction"
                raise MeaningError(f"record.{key}.{i}", message)
