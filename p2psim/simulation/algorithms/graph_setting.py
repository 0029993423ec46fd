"""What a scenario says of personalised models on a graph, in numbers: problem, rule, end, and first models."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from p2psim.core.errors import MeaningError, SimulationError
from p2psim.core.printing import exact
from p2psim.learning.graph.algorithms import GraphAlgorithm
from p2psim.learning.graph.metrics import GRAPH_METRICS
from p2psim.learning.graph.optimum import graph_expansion, minimise_tilted
from p2psim.learning.graph.problem import GraphProblem, GraphRule, confidences
from p2psim.learning.losses import Loss
from p2psim.learning.reference import on_grid
from p2psim.learning.steps import PrivateWarmStart, Start
from p2psim.network.graph import Graph
from p2psim.privacy.accounting.noises import LAPLACE, PURE, Noise
from p2psim.privacy.mechanisms import minimiser_sensitivity, noise_scales
from p2psim.privacy.perturbation import INEXACT, objective_noise, output_rate, radial_noise
from p2psim.privacy.planning import allowance
from p2psim.scenario.model import Scenario
from p2psim.scenario.record import named_metrics
from p2psim.simulation.algorithms.replay import claim_of, record_bound, x_bound
from p2psim.simulation.outcome import streams_of
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
    tables |= {"ridge": ridge, "confidence": confidences(records), "smoothness": curvature + 2 * ridge}
    tables |= {"indptr": links.indptr, "indices": links.indices, "weights": links.weights}
    return GraphProblem(loss=loss, mu=algorithm_of(scenario).mu, **tables), bound is not None


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
    bound, rule = claim_of(
        scenario, case, problem, lambda order: slope * record_bound(bounds, problem, order)
    )
    claimed = rule.bound * (1 + 1e-12)
    # Where no record's norm exceeds its bound, no gradient ever will.
    can_exceed = np.isinf(slope) or problem.largest_gradients(rule.order).max(initial=0.0) > claimed
    anchored = privacy.when_spent == "anchored" or not scenario.learning.algorithm.touches_data
    return bound, GraphRule(rule.clip, rule.order, claimed if can_exceed else np.inf, rule.grid, anchored)


def refuse_accuracies(scenario: Scenario) -> None:
    """Raise a MeaningError if a metric compares classes; called where labels are numbers."""
    for key, name in named_metrics(scenario.record):
        if name in GRAPH_METRICS and GRAPH_METRICS[name].labels == "classes":
            message = f"{name} is of labels that are classes; these are numbers: record test_rmse"
            raise MeaningError(key, message)


@dataclass(frozen=True)
class First:
    """Where the models start.

    Attributes
    ----------
    models : ndarray, shape (n, p)
    anchor : ndarray, shape (n, p)
        What updates without a release pull towards at first.
    loss, loss_real : ndarray, shape (n,), or None
        Loss of the release that this is, for the records as scaled and for the real ones.
    exceeded : ndarray, shape (n,)
        Longest gradient of a record over the bound that this release claims; 0 where within.
    noise : Noise or None
        What accountants know of the release, where that is not the noise of the mechanism.
    """

    models: np.ndarray
    anchor: np.ndarray
    exceeded: np.ndarray
    loss: np.ndarray | None = None
    loss_real: np.ndarray | None = None
    noise: Noise | None = None


def first_models(
    scenario: Scenario, case: PreparedData, problem: GraphProblem, bound: float, rule: GraphRule, replica: int
) -> First:
    """First models; ``rule.bound`` on a record's gradient is checked where they are a private release."""
    start: Start = algorithm_of(scenario).start
    n, models = problem.agents, start.models(problem)
    fits, free = np.zeros(n), np.full(n, np.inf)
    if not (scenario.privacy.mechanism.is_private and start.touches_data):
        return First(start.propagated(problem, models), models, fits)
    if not isinstance(start, PrivateWarmStart):
        return First(models, models, fits, free, free)
    mechanism, key = scenario.privacy.mechanism, streams_of(scenario, replica).key("start")
    if start.perturbation != "mechanism":
        check_perturbation(scenario, start, problem, case.arrays["bounds"])
        noisy, loss = perturbed_models(start, problem, models, key), np.full(n, start.epsilon)
        known = LAPLACE if start.perturbation == "output" else PURE
        return First(start.propagated(problem, noisy), noisy, fits, loss, loss, known)
    scales, loss, real = start_scales(scenario, problem, bound, start.epsilon, start.ridge(problem))
    unit = mechanism.draw(key, np.arange(n), np.zeros(n, np.int64), problem.dimension)
    noisy = on_grid(models + mechanism.of_scale(unit, scales), mechanism.lattice)
    return First(start.propagated(problem, noisy), noisy, _excess(problem, models, rule), loss, real)


def check_perturbation(
    scenario: Scenario, start: PrivateWarmStart, problem: GraphProblem, bounds: np.ndarray
) -> None:
    """Raise a MeaningError if output or objective perturbation (`p2psim.privacy.perturbation`) proves nothing here.

    Parameters
    ----------
    scenario : Scenario
    start : PrivateWarmStart
    problem : GraphProblem
    bounds : ndarray
        Public ones, as `x_bound` takes them.
    """
    loss, privacy, kind = problem.loss, scenario.privacy, start.perturbation
    x = x_bound(bounds, problem.dimension - loss.intercept, 2)
    length = np.inf if x is None else float(np.sqrt(x * x + loss.intercept))
    intercept = ", the intercept counted" if loss.intercept else ""
    for holds, needs in (
        (np.isfinite(loss.curvature), f"a differentiable loss, which {loss.kind} is not"),
        (loss.slope_bound <= 1, f"slopes of at most 1; those of {loss.kind} reach {loss.slope_bound:g}"),
        (
            kind == "output" or loss.twice_differentiable,
            f"a loss that is twice differentiable, which {loss.kind} does not say it is",
        ),
        (
            length <= 1 + 1e-12,
            f"public bounds that keep ‖x‖₂ within 1{intercept}; they keep it within {length:g}",
        ),
        (
            privacy.mechanism.power == 1,
            f"a mechanism whose ε add up, such as laplace; got {privacy.mechanism.kind}",
        ),
        (privacy.scale_records == 1, f"privacy.scale_records 1, got {exact(privacy.scale_records)}"),
    ):
        if not holds:
            raise MeaningError("learning.algorithm.start.perturbation", f"{kind} needs {needs}")


def perturbed_models(
    start: PrivateWarmStart, problem: GraphProblem, exact: np.ndarray, key: np.ndarray
) -> np.ndarray:
    """Models by output or objective perturbation, shape (n, p).

    Raises
    ------
    SimulationError
        If the minimiser of an agent is less exact than output perturbation covers.
    """
    records, ridge = np.maximum(problem.records, 1), start.ridge(problem)
    unit = radial_noise(key, np.arange(problem.agents), problem.dimension)
    if start.perturbation == "objective":
        rate, extra = objective_noise(records, 2 * ridge, problem.loss.curvature, start.epsilon)
        return minimise_tilted(problem, ridge + extra / 2, unit / (rate * records)[:, None])
    left, _ = graph_expansion(replace(problem, ridge=ridge), exact)
    if not (np.sqrt((left**2).sum(axis=1)) <= INEXACT).all():
        raise SimulationError(f"local minimisers are not exact to a gradient of {INEXACT:g}")
    return exact + unit / output_rate(records, 2 * ridge, start.epsilon)[:, None]


def _excess(problem: GraphProblem, theta: np.ndarray, rule: GraphRule) -> np.ndarray:
    """Norm of each agent's longest gradient at its model over the claim, 0 where within, shape (n,)."""
    slopes = problem.loss.slopes(problem.scores(theta), problem.y)
    longest = np.zeros(problem.agents)
    owners = np.repeat(np.arange(problem.agents), problem.records)
    np.maximum.at(longest, owners, np.abs(slopes) * problem.norms(rule.order))
    return np.where(longest > rule.bound, longest / rule.bound, 0.0)


def start_scales(
    scenario: Scenario, problem: GraphProblem, bound: float, epsilon: float, ridge: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scale of the noise of each agent's first model, and its loss, claimed and real, shape (n,) each.

    Raises
    ------
    MeaningError
        If no bound on gradients holds without clipping.
    """
    privacy, p = scenario.privacy, problem.dimension
    mechanism, sensitivity = privacy.mechanism, privacy.sensitivity
    if sensitivity is None or not sensitivity.is_checked:
        raise MeaningError(
            "learning.algorithm.start",
            "a private warm start needs a bound on gradients that holds without clipping: bounds or declared",
        )
    norm = mechanism.norm
    moves = minimiser_sensitivity(bound, np.maximum(problem.records, 1), ridge, p, norm, norm)
    # As for all releases, noise is as if each record stood for many; the ledger puts that right.
    claimed = mechanism.sensitivity_of(moves / privacy.scale_records, p)
    worth = allowance(mechanism, np.array([epsilon]), privacy.delta or 0.0, privacy.enforcing)
    loss = np.full(problem.agents, float(worth[0]) ** (1 / mechanism.power))
    return noise_scales(claimed, loss), loss, loss * mechanism.sensitivity_of(moves, p) / claimed


def check_baselines(scenario: Scenario, case: PreparedData) -> None:
    """Raise a MeaningError if ``local-dp`` has no budget or no public bound to go by."""
    for i, baseline in enumerate(scenario.learning.baselines):
        if not baseline.is_random:
            continue
        key = f"learning.baselines.{i}"
        if not scenario.privacy.mechanism.is_private:
            raise MeaningError(key, "local-dp needs a privacy mechanism and a budget")
        if not np.isfinite(_public_bounds(scenario.learning.score_loss, case)).all():
            raise MeaningError(key, "local-dp needs public bounds: give data.scale")


def baseline_models(
    scenario: Scenario, case: PreparedData, problem: GraphProblem, budget: np.ndarray, replica: int
) -> dict[str, np.ndarray]:
    """Models by the baseline's name, shape (n, p) each."""
    random = streams_of(scenario, replica).generator("baselines")
    bounds = _public_bounds(problem.loss, case)
    return {
        baseline.kind: baseline.models(problem, budget, bounds, random)
        for baseline in scenario.learning.baselines
    }


def _public_bounds(loss: Loss, case: PreparedData) -> tuple[float, float]:
    """Bounds on ‖x‖₁, the intercept not counted, and on |y|; NaN where there is none."""
    bounds, features = case.arrays["bounds"], case.arrays["X"].shape[1] - loss.intercept
    return (float(np.fmin(bounds[0], features * bounds[1])), 1.0 if loss.needs_classes else float(bounds[2]))
