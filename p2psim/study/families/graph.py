"""Personalised models on a graph: coordinate descent and model propagation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.errors import MeaningError
from p2psim.learning.admm import GossipAdmm, penalty
from p2psim.learning.admm_reference import replay_admm_plainly
from p2psim.learning.admm_replay import AdmmReplay, AdmmRule
from p2psim.learning.averaging import Averaging
from p2psim.learning.averaging_reference import average_plainly
from p2psim.learning.averaging_replay import AveragingReplay
from p2psim.learning.batches import batch_of, sampling
from p2psim.learning.coordinate_descent import CoordinateDescent
from p2psim.learning.graph_metrics import GRAPH_FACTS
from p2psim.learning.graph_problem import GraphProblem, confidences
from p2psim.learning.graph_reference import replay_plainly
from p2psim.learning.graph_replay import GraphReplay, GraphRule
from p2psim.learning.model_propagation import ModelPropagation
from p2psim.network.clocks import Clock
from p2psim.network.graphs import Given, Links, draw_links
from p2psim.network.simulation import Network
from p2psim.network.spectrum import spectral_facts
from p2psim.options import per_agent
from p2psim.privacy.ledger import Caveats
from p2psim.privacy.plan import plan
from p2psim.privacy.violations import Violations
from p2psim.randomness import Streams
from p2psim.study.compared import Compared
from p2psim.study.families.agents import agents_table, graph_centralities, members_of
from p2psim.study.families.baseline_models import baseline_models, check_baselines
from p2psim.study.families.graph_check import Recomputed, compare, records_of
from p2psim.study.families.graph_facts import assess
from p2psim.study.families.graph_start import first_models
from p2psim.study.families.observer import Observer
from p2psim.study.families.stage import (
    Assessment,
    Played,
    Player,
    Stage,
    check_availability,
    delta_warning,
    goes_on,
    limit_of,
    order_of,
    stage,
)
from p2psim.study.streams import streams_of

if TYPE_CHECKING:
    from p2psim.data.prepare import Prepared
    from p2psim.study.outcome import Series
    from p2psim.study.scenario import Scenario
    from p2psim.study.workspace import Case


OnGraph = CoordinateDescent | ModelPropagation | GossipAdmm | Averaging


def algorithm_of(scenario: Scenario) -> OnGraph:
    """The algorithm, which is one of this family's."""
    algorithm = scenario.learning.algorithm
    assert isinstance(algorithm, OnGraph)
    return algorithm


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
    made = {
        "X": _with_intercept(prepared.X, loss.intercept),
        "y": prepared.y,
        "offsets": prepared.offsets,
        "test_X": _with_intercept(prepared.test_X, loss.intercept),
        "test_y": prepared.test_y,
        "test_offsets": prepared.test_offsets,
        "bounds": np.array(bounds),
        "data_dependent": np.array(bool(prepared.data_dependent)),
    }
    if prepared.targets is not None:
        made["targets"] = prepared.targets
    if prepared.profiles is not None:
        made["profiles_data"], made["profiles_indices"] = prepared.profiles.data, prepared.profiles.indices
        made["profiles_indptr"], made["profiles_shape"] = (
            prepared.profiles.indptr,
            np.array(prepared.profiles.shape),
        )
    return made, ()


def _with_intercept(X: np.ndarray, intercept: bool) -> np.ndarray:
    return np.ascontiguousarray(np.column_stack([X, np.ones(len(X))]) if intercept else X)


def links_of(scenario: Scenario, arrays: Mapping[str, np.ndarray], replica: int) -> Links:
    """Who is linked with whom in a replica."""
    profiles = None
    if "profiles_data" in arrays:
        from scipy.sparse import csr_array

        parts = arrays["profiles_data"], arrays["profiles_indices"], arrays["profiles_indptr"]
        profiles = csr_array(parts, shape=tuple(arrays["profiles_shape"]))
    given = Given(arrays["offsets"].size - 1, profiles, arrays.get("targets"))
    streams = streams_of(scenario, replica)
    variant = streams.variants.get("topology", "")
    return draw_links(scenario.network.topology, given, seed=streams.seed, replica=replica, variant=variant)


@dataclass(frozen=True)
class GraphCell:
    """A graph's cell; see `p2psim.study.families.stage.FamilyCell`.

    Attributes
    ----------
    scenario : Scenario
    case : Case
    replica : int
        The one whose graph and data these are, where they differ between replicas.
    problem : GraphProblem
    links : Links
    stage : Stage
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
    case: Case
    replica: int
    problem: GraphProblem
    links: Links
    stage: Stage
    rule: GraphRule
    start: np.ndarray
    anchor: np.ndarray
    bound: float
    exceeded: np.ndarray
    public_smoothness: bool

    def player(self, streams: Streams) -> Player:
        """Begin a replica."""
        return _GraphPlayer(self, streams)

    def caveats(self, violations: Violations) -> Caveats:
        """Return what limits the guarantee."""
        sensitivity, topology = self.scenario.privacy.sensitivity, self.scenario.network.topology
        return Caveats(
            violations.after_start(self.exceeded),
            void=sensitivity is not None and sensitivity.kind in ("empirical", "as-printed"),
            data_dependent_step=not self.public_smoothness,
            public_graph_assumed=bool(self.case.arrays["data_dependent"])
            or topology.kind in ("knn", "similarity"),
        )

    def agents(self) -> dict[str, np.ndarray]:
        """Columns of the table of agents."""
        centralities = graph_centralities(self.links)
        return agents_table(self.case, self.problem.records, centralities, self.stage.plan.budget)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know of a run."""
        return tuple(delta_warning(self.scenario.privacy.delta, self.problem.records))

    def assess(self) -> Assessment:
        """Say what can be said before the run."""
        return assess(self)


class _GraphPlayer:
    """One replica on a graph."""

    def __init__(self, cell: GraphCell, streams: Streams):
        record = cell.scenario.record
        track = bool({*record.metrics, *record.per_agent} & {"objective", "objective_gap"})
        self._replay = replay = _replay(cell, streams, track)
        problem = cell.problem

        def objective() -> float:
            # Averaging does not know what the others minimise.
            return (
                problem.objective(replay.theta) if isinstance(replay, AveragingReplay) else replay.objective
            )

        models = baseline_models(cell)
        facts = lambda: spectral_facts(cell.links)  # noqa: E731
        self._observer = Observer(record, problem, cell.case.groups, models, facts, objective)

    def feed(self, events: np.ndarray, noise: np.ndarray, places: np.ndarray) -> None:
        """Replay a chunk of events, stopping where something is to be recorded."""
        row = 0
        for piece, releases, step, time in self._observer.pieces(events, places):
            self._replay.feed(piece, noise[row : row + releases])
            row += releases
            if step is not None:
                self._observer.observe(step, time, self._replay)

    def finish(self) -> Played:
        """Record the last models, and the baselines."""
        self._replay.check()
        series, models = self._observer.finish(self._replay)
        seen = self._replay
        return Played(series, models, Violations(seen.violations, seen.violation_steps, seen.violation_sizes))


def _replay(cell: GraphCell, streams: Streams, track: bool) -> GraphReplay | AdmmReplay | AveragingReplay:
    algorithm = algorithm_of(cell.scenario)
    drawn = sampling(batch_of(algorithm), cell.problem.records, streams.key("batches"))
    if isinstance(algorithm, Averaging):
        return AveragingReplay(cell.start)
    if isinstance(algorithm, GossipAdmm):
        rule = _admm_rule(algorithm, cell.rule, cell.problem)
        return AdmmReplay(cell.problem, rule, cell.start, cell.anchor, track, drawn)
    return GraphReplay(cell.problem, cell.rule, cell.start, cell.anchor, track, drawn)


def _admm_rule(algorithm: GossipAdmm, rule: GraphRule, problem: GraphProblem) -> AdmmRule:
    rho = penalty(algorithm.rho, problem.weights)
    return AdmmRule(rho, algorithm.inner, rule.clip, rule.order, rule.bound, rule.anchored, rule.grid)


def cell(scenario: Scenario, case: Case, replica: int) -> GraphCell:
    """Turn a scenario (without a sweep) and its case into numbers.

    Raises
    ------
    MeaningError
        If something that depends on the data means nothing.
    """
    links = links_of(scenario, case.arrays, replica)
    problem, public = _problem(scenario, case.arrays, links)
    algorithm, privacy = algorithm_of(scenario), scenario.privacy
    if not problem.test_y.size:
        _refuse_tests(scenario)
    check_baselines(scenario, case)
    n, batch = problem.agents, batch_of(algorithm)
    clock = scenario.network.clock or Clock()
    rates = per_agent(clock.rate, case.labels, case.groups, key="network.clock.rate")
    bound, rule = _rule(scenario, case, problem)
    first = first_models(scenario, algorithm.start, problem, bound, rule, replica)
    time, updates = _end(algorithm, rates, n)
    plans = plan(
        privacy.mechanism,
        privacy.allocation,
        replace(limit_of(scenario, case, n), start=first.loss, start_real=first.loss_real),
        bound,
        batch.divisors(problem.records),
        max(1, round(updates * n)),
        rates / rates.sum(),
        privacy.scale_records,
        never=not algorithm.touches_data,
        contraction=problem.contraction,
        rates=batch.rates(problem.records),
        dimension=problem.dimension,
    )
    network = Network(
        links,
        scenario.network.exchange,
        scenario.network.channel,
        scenario.network.availability,
        rates,
        goes_on=goes_on(scenario),
        updates=algorithm.updates,
        members=members_of(case, problem.offsets, problem.y),
        vectors=getattr(algorithm, "vectors", 1),
    )
    check_availability(network)
    return GraphCell(
        scenario,
        case,
        replica,
        problem,
        links,
        stage(scenario, network, plans, algorithm.commits, time, problem.dimension),
        rule,
        first.models,
        first.anchor,
        bound,
        first.exceeded,
        public,
    )


def _end(algorithm: Any, rates: np.ndarray, agents: int) -> tuple[float | None, float]:
    """Time at which a run ends, and how often an agent wakes until then, on average."""
    if algorithm.updates_per_agent is not None:
        return float(algorithm.updates_per_agent / rates.mean()), float(algorithm.updates_per_agent)
    if algorithm.time is not None:
        return float(algorithm.time), float(algorithm.time * rates.mean())
    return None, algorithm.commits / agents


def _problem(scenario: Scenario, arrays: Mapping[str, np.ndarray], links: Links) -> tuple[GraphProblem, bool]:
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


def _refuse_tests(scenario: Scenario) -> None:
    from p2psim.learning.graph_metrics import NEED_TESTS

    for key in ("metrics", "per_agent"):
        for i, name in enumerate(getattr(scenario.record, key)):
            if name in NEED_TESTS:
                raise MeaningError(
                    f"record.{key}.{i}",
                    f"{name} needs records held out: test_points of the source, or data.test_fraction",
                )


def _rule(scenario: Scenario, case: Case, problem: GraphProblem) -> tuple[float, GraphRule]:
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
    if not problem.loss.needs_classes:
        raise MeaningError(
            "privacy.sensitivity",
            f"{sensitivity.kind} needs a bound on θ, which personalised models have not: clip, or declare a bound",
        )
    if sensitivity.kind == "empirical":
        return float(problem.norms(order).max()), plain
    bound = x_bound(case.arrays["bounds"], problem.dimension - problem.loss.intercept, order)
    if bound is None:
        raise MeaningError(
            "privacy.sensitivity", "bounds needs a public bound on x: give data.scale.x, or clip"
        )
    bound = (bound**order + problem.loss.intercept) ** (1 / order)
    # The slope of a loss of classes is at most one: where no record's norm exceeds the bound, no gradient ever will.
    can_exceed = problem.norms(order).max(initial=0.0) > bound * (1 + 1e-12)
    return bound, replace(plain, bound=bound * (1 + 1e-12) if can_exceed else np.inf)


def recompute(
    scenario: Scenario,
    case: Case,
    replica: int,
    events: np.ndarray,
    noise: np.ndarray,
    series: tuple[Series, ...],
    models: np.ndarray | None,
) -> Iterator[Compared]:
    """Recompute a recorded replica plainly; see `p2psim.study.families.graph_check.compare`."""
    made, algorithm = cell(scenario, case, replica), algorithm_of(scenario)
    problem, vectors = made.problem, 1
    drawn = sampling(batch_of(algorithm), problem.records, streams_of(scenario, replica).key("batches"))
    if isinstance(algorithm, Averaging):
        path = average_plainly(made.start, events)
    elif isinstance(algorithm, GossipAdmm):
        vectors = 2  # an own model and a copy
        rule = _admm_rule(algorithm, made.rule, problem)
        path = replay_admm_plainly(problem, rule, made.start, events, noise, made.anchor, drawn)
    else:
        path = replay_plainly(problem, made.rule, made.start, events, noise, made.anchor, drawn)
    steps, sent = records_of(scenario.record, problem, events, vectors)
    wanted = set(steps)
    theta = {step: models for step, models in enumerate(path) if step in wanted}
    facts = spectral_facts(made.links) if GRAPH_FACTS.keys() & scenario.record.metrics else {}
    found = Recomputed(problem, theta, steps, sent, case.groups, baseline_models(made), facts)
    yield from compare(found, series, models)
