"""The star: a central learner and its owners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.errors import MeaningError, SimulationError
from p2psim.learning.async_star import AsyncStar, RhoFromH, StarMethod, star_method
from p2psim.learning.batches import sampling
from p2psim.learning.metrics import METRICS
from p2psim.learning.star_problem import StarProblem, star_problem
from p2psim.learning.star_reference import replay_plainly
from p2psim.learning.star_replay import GradientRule, StarReplay, gradient_rule
from p2psim.learning.weighting import Weighting, inverse_frequencies
from p2psim.network.clocks import Clock
from p2psim.network.graphs import AnyTopology, Given, Links, draw_links
from p2psim.network.simulation import Network
from p2psim.privacy.ledger import Caveats
from p2psim.privacy.planning import plan
from p2psim.privacy.violations import Violations
from p2psim.randomness import Streams
from p2psim.study.compared import Compared
from p2psim.study.families.agents import members_of, names_of, star_agents
from p2psim.study.families.stage import (
    Assessment,
    Played,
    Player,
    Stage,
    check_availability,
    limit_of,
    order_of,
    stage,
)
from p2psim.study.families.star_facts import assess
from p2psim.study.record import EveryTime
from p2psim.study.streams import streams_of
from p2psim.theory.dropout import answer_frequencies
from p2psim.theory.star import rho_for_h

if TYPE_CHECKING:
    from p2psim.data.prepare import Prepared
    from p2psim.study.outcome import Series
    from p2psim.study.scenario import Scenario
    from p2psim.study.workspace import Case

_ARRAYS = ("X", "y", "offsets", "x_l1", "gram", "moment", "energy", "optimum")


def algorithm_of(scenario: Scenario) -> AsyncStar:
    """The algorithm, which is this family's."""
    algorithm = scenario.learning.algorithm
    assert isinstance(algorithm, AsyncStar)
    return algorithm


def _l2(scenario: Scenario) -> float:
    l2 = scenario.learning.regularizer.l2
    assert not isinstance(l2, str)  # refused by p2psim.study.meaning
    return l2


def identify(scenario: Scenario) -> dict[str, Any]:
    """Return what determines the arrays of a case, beside the data section."""
    learning = scenario.learning
    return {
        "loss": learning.loss.model_dump(),
        "l2": _l2(scenario),
        "theta_max": algorithm_of(scenario).theta_max,
    }


def arrays(scenario: Scenario, prepared: Prepared) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Arrays of `StarProblem` and its minimum, and warnings."""
    learning = scenario.learning
    if learning.loss.needs_classes and not prepared.classes:
        raise MeaningError(
            "learning.loss", f"{learning.loss.kind} needs labels that are +1 or −1; these are not"
        )
    problem = star_problem(
        prepared.X,
        prepared.y,
        prepared.offsets,
        learning.loss,
        _l2(scenario),
        algorithm_of(scenario).theta_max,
    )
    made = {name: np.asarray(getattr(problem, name)) for name in _ARRAYS}
    made["minimum"] = np.array(problem.minimum)
    made |= names_of(prepared)
    active = ("the optimum lies on the boundary of Θ: theta_max is active",) if problem.box_is_active else ()
    return made, active


def links_of(scenario: Scenario, arrays: Mapping[str, np.ndarray], replica: int) -> Links:
    """Who is linked with whom."""
    return _links(scenario.network.topology, arrays["offsets"].size - 1)


def _problem(scenario: Scenario, arrays: Mapping[str, np.ndarray]) -> StarProblem:
    learning = scenario.learning
    return StarProblem(
        loss=learning.loss,
        l2=_l2(scenario),
        theta_max=algorithm_of(scenario).theta_max,
        minimum=float(arrays["minimum"]),
        **{name: np.asarray(arrays[name]) for name in _ARRAYS},
    )


@dataclass(frozen=True)
class StarCell:
    """A star's cell; see `p2psim.study.families.stage.FamilyCell`.

    Attributes
    ----------
    scenario : Scenario
    case : Case
    problem : StarProblem
    stage : Stage
    rho : float
        The step parameter, given or chosen.
    method : StarMethod
    bound : float
        Ξ, the bound on one record's gradient, in the mechanism's norm; 0 where nothing is claimed.
    rule : GradientRule
    """

    scenario: Scenario
    case: Case
    problem: StarProblem
    stage: Stage
    rho: float
    method: StarMethod
    bound: float
    rule: GradientRule

    @property
    def horizon(self) -> int:
        """T."""
        return algorithm_of(self.scenario).horizon

    def player(self, streams: Streams) -> Player:
        """Begin a replica."""
        return _StarPlayer(self, streams)

    def caveats(self, violations: Violations) -> Caveats:
        """Return what limits the guarantee."""
        sensitivity = self.scenario.privacy.sensitivity
        return Caveats(
            violations,
            void=sensitivity is not None and sensitivity.kind == "empirical",
            data_dependent_step=isinstance(algorithm_of(self.scenario).rho, RhoFromH),
        )

    def agents(self) -> dict[str, np.ndarray]:
        """Columns of the table of agents."""
        return star_agents(self.case, self.problem.records, self.stage.plan.budget)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know of a run."""
        return assess(self).warnings

    def assess(self) -> Assessment:
        """Say what can be said before the run."""
        return assess(self)


class _StarPlayer:
    """One replica of a star."""

    def __init__(self, cell: StarCell, streams: Streams):
        every = cell.scenario.record.every
        steps, time = (0, every.time) if isinstance(every, EveryTime) else (every, np.inf)
        self._cell = cell
        drawn = sampling(algorithm_of(cell.scenario).batch, cell.problem.records, streams.key("batches"))
        self._replay = StarReplay(
            cell.problem, cell.method, cell.rule, every_step=steps, every_time=time, sampling=drawn
        )

    def feed(self, events: np.ndarray, noise: np.ndarray, places: np.ndarray) -> None:
        """Replay a chunk of events."""
        self._replay.feed(events, noise)

    def finish(self) -> Played:
        """Measure the recorded models."""
        recorded = self._replay.result()
        names, problem = self._cell.scenario.record.metrics, self._cell.problem
        own = [name for name in names if name in METRICS]
        series = tuple(one for name in own for one in METRICS[name].measure(problem, recorded))
        for one in series:
            if not np.isfinite(one.value).all():
                at = one.step[~np.isfinite(one.value)][0]
                raise SimulationError(f"{one.metric} is not finite from step {at} on")
        seen = self._replay
        violations = Violations(seen.violations, seen.violation_steps, seen.violation_sizes)
        return Played(series, recorded.theta, violations)


def cell(scenario: Scenario, case: Case, replica: int) -> StarCell:
    """Turn a scenario (without a sweep) and its case into numbers.

    Raises
    ------
    MeaningError
        If something that depends on the data means nothing: an agent without a budget, ρ from the h of a hinge loss,
        a sensitivity from bounds that nobody gives.
    """
    problem, privacy = _problem(scenario, case.arrays), scenario.privacy
    algorithm, owners = algorithm_of(scenario), problem.owners
    network = _network(scenario, case.arrays, replica)
    check_availability(network)
    rates = network.rates
    assert rates is not None
    weighting = _weighting(scenario, network)
    rho = _rho(scenario, problem)
    bound, rule = _rule(scenario, case, problem)
    plans = plan(
        privacy.mechanism,
        privacy.allocation,
        limit_of(scenario, case, owners),
        bound,
        algorithm.batch.divisors(problem.records),
        algorithm.horizon,
        rates / rates.sum(),
        privacy.scale_records,
        rates=algorithm.batch.rates(problem.records),
        dimension=problem.dimension,
        factors=weighting.at_owner,
    )
    return StarCell(
        scenario,
        case,
        problem,
        stage(scenario, network, plans, algorithm.horizon, None, problem.dimension),
        rho,
        star_method(algorithm, rho, _l2(scenario), owners, weighting),
        bound,
        rule,
    )


def recompute(
    scenario: Scenario,
    case: Case,
    replica: int,
    events: np.ndarray,
    noise: np.ndarray,
    series: tuple[Series, ...],
    models: np.ndarray | None,
) -> Iterator[Compared]:
    """Recompute a recorded replica plainly; differences of ψ are relative to 1 + ψ."""
    problem, algorithm = _problem(scenario, case.arrays), algorithm_of(scenario)
    rho, weighting = _rho(scenario, problem), _weighting(scenario, _network(scenario, case.arrays, replica))
    method = star_method(algorithm, rho, problem.l2, problem.owners, weighting)
    _, rule = _rule(scenario, case, problem)
    drawn = sampling(algorithm.batch, problem.records, streams_of(scenario, replica).key("batches"))
    theta = replay_plainly(problem, method, events, noise, rule.clip, drawn, rule.order, rule.grid)
    compared = [one for one in series if one.metric == "relative_fitness" and one.model == "main"]
    for one in compared:
        psi = problem.fitness(theta[one.step]) / problem.minimum - 1
        yield Compared(one.value, psi, 1 + np.abs(psi))
    if models is not None and compared:
        again = theta[compared[0].step]
        scale = max(np.abs(again).max(), np.abs(models).max(), np.finfo(float).tiny)
        yield Compared(models, again, scale)


def _network(scenario: Scenario, arrays: Mapping[str, np.ndarray], replica: int) -> Network:
    members, clock = members_of(arrays), scenario.network.clock or Clock()
    return Network(
        links_of(scenario, arrays, replica),
        scenario.network.exchange,
        scenario.network.channel,
        scenario.network.availability,
        members.values(clock.rate, "network.clock.rate"),
        members=members,
    )


def _weighting(scenario: Scenario, network: Network) -> Weighting:
    """What answers are multiplied by.

    Raises
    ------
    MeaningError
        If frequencies are to be known that cannot be said beforehand.
    """
    algorithm, owners = algorithm_of(scenario), network.links.agents
    ones = np.ones(owners)
    if algorithm.reweight != "known":
        return Weighting(ones, ones, algorithm.reweight == "estimated", algorithm.staleness)
    assert network.members is not None
    assert network.rates is not None
    shares = network.availability.shares(network.members, network.links)
    if np.isnan(shares).any():
        kind = scenario.network.availability.kind
        raise MeaningError(
            "learning.algorithm.reweight", f"known frequencies cannot be said under {kind}; take estimated"
        )
    weights = inverse_frequencies(answer_frequencies(network.rates, shares))
    if algorithm.reweight_at == "owner":
        return Weighting(ones, weights, staleness=algorithm.staleness)
    return Weighting(weights, ones, staleness=algorithm.staleness)


@lru_cache(maxsize=8)
def _links(topology: AnyTopology, agents: int) -> Links:
    return draw_links(topology, Given(agents), learner=True)


def _rho(scenario: Scenario, problem: StarProblem) -> float:
    rho = algorithm_of(scenario).rho
    if not isinstance(rho, RhoFromH):
        return rho
    peaks = problem.hessian_peaks()
    if not np.isfinite(peaks).all():
        raise MeaningError(
            "learning.algorithm.rho", f"the {problem.loss.kind} loss has no curvature; give ρ as a number"
        )
    return rho_for_h(rho.h, algorithm_of(scenario).horizon, problem.l2, problem.records, peaks)


def _rule(scenario: Scenario, case: Case, problem: StarProblem) -> tuple[float, GradientRule]:
    """Ξ, in the mechanism's norm, and how an owner computes its gradient."""
    sensitivity, mechanism = scenario.privacy.sensitivity, scenario.privacy.mechanism
    order, grid = order_of(mechanism.norm), mechanism.lattice
    if sensitivity is not None and sensitivity.kind == "clip":
        # Clipping is part of the algorithm, with or without noise. An L1 bound is one on the L2 norm as well.
        rule = gradient_rule(problem, sensitivity.bound, order=order_of(sensitivity.norm), grid=grid)
        return sensitivity.bound if mechanism.is_private else 0.0, rule
    if sensitivity is None or not mechanism.is_private:
        return 0.0, gradient_rule(problem, grid=grid)
    if sensitivity.kind == "empirical":
        return float(problem.largest_gradients(order).max()), gradient_rule(problem, order=order, grid=grid)
    declared = sensitivity.bound if sensitivity.kind == "declared" else None
    bound = public_bound(case, problem, order) if declared is None else declared
    return bound, gradient_rule(problem, bound=bound, order=order, grid=grid)


def public_bound(case: Case, problem: StarProblem, order: int = 1) -> float:
    """Bound on the norm of a record's gradient on Θ, of order 1 or 2, from the public bounds on x and y.

    |∂ℓ/∂z|·B, with ‖x‖ ≤ B in that norm. ‖x‖₁ is at most p·x_max where |x_j| ≤ x_max is known, and ‖x‖₂ at most
    √p·x_max and at most ‖x‖₁; an intercept adds one to ‖x‖₁ and to ‖x‖₂². The slope is at most 2(θ_max·B₁ + y_max) for
    the squared loss, B₁ the bound on ‖x‖₁, and 1 for hinge and logistic.

    Raises
    ------
    MeaningError
        If no bound on x is public, or none on y where the loss needs it.
    """
    B1, B = (x_bound_of(case, problem, one) for one in (1, order))
    if problem.loss.needs_classes:
        return B
    if case.y_max is None:
        raise MeaningError(
            "privacy.sensitivity", "bounds needs a public bound on y: give data.scale.y, or clip"
        )
    slope = problem.loss.slope_bounds(np.array([B1]), np.array([case.y_max]), problem.theta_max)
    return float(slope[0] * B)


def x_bound_of(case: Case, problem: StarProblem, order: int) -> float:
    """Public bound on ‖x‖ of order 1 or 2, the intercept counted.

    Raises
    ------
    MeaningError
        If there is none.
    """
    features = problem.dimension - problem.loss.intercept
    by_coordinate = None if case.x_max is None else features ** (1 / order) * case.x_max
    known = [bound for bound in (case.x_l1, by_coordinate) if bound is not None]
    if not known:
        raise MeaningError(
            "privacy.sensitivity", "bounds needs a public bound on x: give data.scale.x, or clip"
        )
    return float((min(known) ** order + problem.loss.intercept) ** (1 / order))
