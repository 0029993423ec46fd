"""What a scenario says of personalised models on a graph, in numbers: problem, rule of updates, and end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.learning.graph.admm import AdmmRule
from p2psim.learning.graph.algorithms import (
    Averaging,
    CoordinateDescent,
    GossipAdmm,
    GossipAlgorithm,
    ModelPropagation,
    PushSum,
    penalty,
)
from p2psim.learning.graph.metrics import GRAPH_METRICS
from p2psim.learning.graph.problem import GraphProblem, confidences
from p2psim.learning.graph.replay import GraphRule
from p2psim.network.graph import Graph
from p2psim.simulation.algorithms.replay import order_of

if TYPE_CHECKING:
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.algorithms.replay import ReplaySetup
    from p2psim.simulation.prepared import PreparedData

OnGraph = CoordinateDescent | ModelPropagation | GossipAdmm | Averaging | PushSum | GossipAlgorithm


@dataclass(frozen=True)
class GraphNumbers:
    """The numbers of a cell on a graph.

    Attributes
    ----------
    scenario : Scenario
    case : PreparedData
    replica : int
        The one whose graph and data these are, where they differ between replicas.
    problem : GraphProblem
    links : Graph
    setup : ReplaySetup
    rule : GraphRule
    start, anchor : ndarray, shape (n, p)
    bound : float
        Ξ, the bound on the norm of one record's gradient; 0 where nothing is claimed.
    exceeded : ndarray, shape (n,)
        Longest gradient of a record at the local minimiser over the bound that the start claims; 0 where within.
    public_smoothness : bool
        Whether the step sizes follow from public bounds.
    """

    scenario: Scenario
    case: PreparedData
    replica: int
    problem: GraphProblem
    links: Graph
    setup: ReplaySetup
    rule: GraphRule
    start: np.ndarray
    anchor: np.ndarray
    bound: float
    exceeded: np.ndarray
    public_smoothness: bool


def algorithm_of(scenario: Scenario) -> OnGraph:
    """The algorithm, which is one of this adapter's.

    Raises
    ------
    MeaningError
        If it is from outside p2psim and has another base class than `GossipAlgorithm`.
    """
    algorithm = scenario.learning.algorithm
    if not isinstance(algorithm, OnGraph):
        raise MeaningError(
            "learning.algorithm",
            f"{algorithm.kind} cannot be simulated: its base class must be p2psim.GossipAlgorithm",
        )
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
    X, offsets = np.asarray(arrays["X"]), np.asarray(arrays["offsets"])
    records = np.diff(offsets)
    l2 = learning.regularizer.l2
    ridge = 1.0 / np.maximum(records, 1) if l2 == "inverse-size" else np.full(records.size, float(l2))
    features = X.shape[1] - learning.loss.intercept
    bound = x_bound(arrays["bounds"], features)
    if getattr(algorithm_of(scenario), "smoothness", "public") == "data":
        bound = None
    if bound is not None:
        # ‖x‖₂ ≤ ‖x‖₁, and ‖x‖₂ ≤ √p·max|x_j|; an intercept adds one to its square.
        square = np.fmin(bound**2, features * arrays["bounds"][1] ** 2)
        curvature = np.full(records.size, learning.loss.curvature * (square + learning.loss.intercept))
    else:
        curvature = learning.loss.curvature * _peaks(X, offsets)
    problem = GraphProblem(
        loss=learning.loss,
        mu=algorithm_of(scenario).mu,
        X=X,
        y=np.asarray(arrays["y"]),
        offsets=offsets,
        ridge=ridge,
        confidence=confidences(records),
        smoothness=curvature + 2 * ridge,
        indptr=links.indptr,
        indices=links.indices,
        weights=links.weights,
        test_X=np.asarray(arrays["test_X"]),
        test_y=np.asarray(arrays["test_y"]),
        test_offsets=np.asarray(arrays["test_offsets"]),
    )
    return problem, bound is not None


def x_bound(bounds: np.ndarray, features: int, order: int = 1) -> float | None:
    """Public bound on ‖x‖ of order 1 or 2, the intercept not counted; None if there is none.

    ‖x‖₂ is at most ‖x‖₁, and at most √p·max|x_j|.
    """
    known = [value for value in (bounds[0], features ** (1 / order) * bounds[1]) if np.isfinite(value)]
    return float(min(known)) if known else None


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
    sensitivity, mechanism = scenario.privacy.sensitivity, scenario.privacy.mechanism
    anchored = scenario.privacy.when_spent == "anchored" or not algorithm_of(scenario).touches_data
    order = order_of(mechanism.norm)
    plain = GraphRule(order=order, anchored=anchored, grid=mechanism.lattice)
    if sensitivity is None:
        return 0.0, plain
    if sensitivity.kind in ("clip", "as-printed"):
        # Clipping is part of the algorithm, with or without noise. An L1 bound is one on the L2 norm as well.
        claimed = sensitivity.bound if mechanism.is_private else 0.0
        return claimed, replace(plain, clip=sensitivity.bound, order=order_of(sensitivity.norm))
    if not mechanism.is_private:
        return 0.0, plain
    if sensitivity.kind == "declared":
        return sensitivity.bound, replace(plain, bound=sensitivity.bound * (1 + 1e-12))
    slope = problem.loss.slope_bound
    if np.isinf(slope):
        raise MeaningError(
            "privacy.sensitivity",
            f"{sensitivity.kind} needs a bound on θ, which personalised models have not: clip, or declare a bound",
        )
    if sensitivity.kind == "empirical":
        return slope * float(problem.norms(order).max()), plain
    bound = x_bound(case.arrays["bounds"], problem.dimension - problem.loss.intercept, order)
    if bound is None:
        raise MeaningError(
            "privacy.sensitivity", "bounds needs a public bound on x: give data.scale.x, or clip"
        )
    bound = slope * (bound**order + problem.loss.intercept) ** (1 / order)
    # Where no record's norm exceeds its bound, no gradient ever will.
    can_exceed = slope * problem.norms(order).max(initial=0.0) > bound * (1 + 1e-12)
    return bound, replace(plain, bound=bound * (1 + 1e-12) if can_exceed else np.inf)


def admm_rule(algorithm: GossipAdmm, rule: GraphRule, problem: GraphProblem) -> AdmmRule:
    """How gossip ADMM updates, beside what holds for all algorithms."""
    rho = penalty(algorithm.rho, problem.weights)
    return AdmmRule(rho, algorithm.inner, rule.clip, rule.order, rule.bound, rule.anchored, rule.grid)


def refuse_tests(scenario: Scenario) -> None:
    """Raise a MeaningError if a metric needs records held out; called where there are none."""
    for key in ("metrics", "per_agent"):
        for i, name in enumerate(getattr(scenario.record, key)):
            if name in GRAPH_METRICS and GRAPH_METRICS[name].needs_tests:
                raise MeaningError(
                    f"record.{key}.{i}",
                    f"{name} needs records held out: test_points of the source, or data.test_fraction",
                )
