"""What a scenario says of personalised models on a graph, in numbers: data, graph, problem, rule and end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.learning.graph.algorithms import GraphAlgorithm
from p2psim.learning.graph.metrics import GRAPH_METRICS
from p2psim.learning.graph.problem import GraphProblem, GraphRule, confidences
from p2psim.network.graph import Graph, TopologyInputs
from p2psim.network.topologies import draw_links
from p2psim.simulation.algorithms.agents import names_of
from p2psim.simulation.algorithms.replay import order_of, record_bound, x_bound
from p2psim.simulation.outcome import streams_of

if TYPE_CHECKING:
    from p2psim.data.prepare import Prepared
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.prepared import PreparedData

_TABLES = ("X", "y", "offsets", "test_X", "test_y", "test_offsets")


def identify(scenario: Scenario) -> dict[str, Any]:
    """Return what determines the arrays of a case, beside the data section."""
    loss = scenario.learning.loss
    return {"intercept": loss.intercept, "classes": loss.needs_classes}


def arrays(scenario: Scenario, prepared: Prepared) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Records, held-out records, public bounds, and what neighbours are found by."""
    loss = scenario.learning.loss
    if loss.needs_classes and not prepared.classes:
        raise MeaningError("learning.loss", f"{loss.kind} needs labels that are +1 or −1; these are not")
    bounds = [np.nan if bound is None else bound for bound in (prepared.x_l1, prepared.x_max, prepared.y_max)]
    tables = {
        "X": _with_intercept(prepared.X, loss.intercept),
        "y": prepared.y,
        "offsets": prepared.offsets,
        "test_X": _with_intercept(prepared.test_X, loss.intercept),
        "test_y": prepared.test_y,
        "test_offsets": prepared.test_offsets,
        "bounds": np.array(bounds),
        "data_dependent": np.array(bool(prepared.data_dependent)),
        **names_of(prepared),
    }
    if prepared.targets is not None:
        tables["targets"] = prepared.targets
    if prepared.profiles is not None:
        rows = prepared.profiles
        tables |= {f"profiles_{name}": getattr(rows, name) for name in ("data", "indices", "indptr")}
        tables["profiles_shape"] = np.array(rows.shape)
    return tables, ()


def _with_intercept(X: np.ndarray, intercept: bool) -> np.ndarray:
    return np.ascontiguousarray(np.column_stack([X, np.ones(len(X))]) if intercept else X)


def links_of(scenario: Scenario, arrays: Mapping[str, np.ndarray], replica: int) -> Graph:
    """Who is linked with whom in a replica."""
    profiles = None
    if "profiles_data" in arrays:
        from scipy.sparse import csr_array

        parts = arrays["profiles_data"], arrays["profiles_indices"], arrays["profiles_indptr"]
        profiles = csr_array(parts, shape=tuple(arrays["profiles_shape"]))
    labels = arrays["labels"].tolist() if "labels" in arrays else None
    given = TopologyInputs(arrays["offsets"].size - 1, profiles, arrays.get("targets"), labels)
    streams = streams_of(scenario, replica)
    variant = streams.variants.get("topology", "")
    return draw_links(scenario.network.topology, given, seed=streams.seed, replica=replica, variant=variant)


def algorithm_of(scenario: Scenario) -> Any:
    """The `GraphAlgorithm`.

    Raises
    ------
    MeaningError
        If it is from outside p2psim and has another base class than `GossipAlgorithm`.
    """
    algorithm = scenario.learning.algorithm
    if not isinstance(algorithm, GraphAlgorithm):
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
    tables = {name: np.asarray(arrays[name]) for name in _TABLES}
    X, offsets = tables["X"], tables["offsets"]
    records = np.diff(offsets)
    l2 = learning.regularizer.l2
    ridge = 1.0 / np.maximum(records, 1) if l2 == "inverse-size" else np.full(records.size, float(l2))
    features = X.shape[1] - learning.loss.intercept
    bound = x_bound(arrays["bounds"], features, 1)
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
    bound = slope * record_bound(case.arrays["bounds"], problem, order)
    # Where no record's norm exceeds its bound, no gradient ever will.
    can_exceed = slope * problem.norms(order).max(initial=0.0) > bound * (1 + 1e-12)
    return bound, replace(plain, bound=bound * (1 + 1e-12) if can_exceed else np.inf)


def refuse_tests(scenario: Scenario) -> None:
    """Raise a MeaningError if a metric needs records held out; called where there are none."""
    for key in ("metrics", "per_agent"):
        for i, name in enumerate(getattr(scenario.record, key)):
            if name in GRAPH_METRICS and GRAPH_METRICS[name].needs_tests:
                raise MeaningError(
                    f"record.{key}.{i}",
                    f"{name} needs records held out: test_points of the source, or data.test_fraction",
                )
