"""The star: a central learner and its owners."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import MeaningError
from p2psim.learning.async_star import AsyncStar, RhoFromH, StarMethod, star_method
from p2psim.learning.batches import sampling
from p2psim.learning.star_problem import StarProblem
from p2psim.learning.star_reference import replay_plainly
from p2psim.learning.star_replay import GradientRule, StarReplay
from p2psim.learning.weighting import Weighting, inverse_frequencies
from p2psim.network.simulation import Network
from p2psim.privacy.ledger import Caveats
from p2psim.privacy.planning import plan
from p2psim.privacy.violations import Violations
from p2psim.randomness import Streams
from p2psim.study.compared import Compared
from p2psim.study.families.agents import star_agents
from p2psim.study.families.frequencies import long_run_frequencies
from p2psim.study.families.stage import (
    Assessment,
    Player,
    Stage,
    check_availability,
    limit_of,
    stage,
)
from p2psim.study.families.star_facts import assess
from p2psim.study.families.star_player import StarPlayer, compared_with, marks_of
from p2psim.study.families.star_setting import (
    arrays,
    identify,
    l2_of,
    links_of,
    network_of,
    problem_of,
    rule_of,
)
from p2psim.study.streams import streams_of
from p2psim.theory.star import rho_for_h

if TYPE_CHECKING:
    from p2psim.study.outcome import Series
    from p2psim.study.scenario import Scenario
    from p2psim.study.workspace import Case

__all__ = ["arrays", "cell", "identify", "links_of", "recompute"]


def algorithm_of(scenario: Scenario) -> AsyncStar:
    """The algorithm, which is this family's."""
    algorithm = scenario.learning.algorithm
    assert isinstance(algorithm, AsyncStar)
    return algorithm


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
        record, algorithm = self.scenario.record, algorithm_of(self.scenario)
        steps, time = marks_of(record)
        drawn = sampling(algorithm.batch, self.problem.records, streams.key("batches"))
        replay = StarReplay(self.problem, self.method, self.rule, steps, time, drawn)
        return StarPlayer(self.problem, record, replay)

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


def cell(scenario: Scenario, case: Case, replica: int) -> StarCell:
    """Turn a scenario (without a sweep) and its case into numbers.

    Raises
    ------
    MeaningError
        If something that depends on the data means nothing: an agent without a budget, ρ from the h of a hinge loss,
        a sensitivity from bounds that nobody gives.
    """
    problem, privacy = problem_of(scenario, case.arrays), scenario.privacy
    algorithm, owners = algorithm_of(scenario), problem.owners
    network = network_of(scenario, case.arrays, replica)
    check_availability(network)
    rates = network.rates
    assert rates is not None
    weighting = _weighting(scenario, network)
    rho = _rho(scenario, problem)
    bound, rule = rule_of(scenario, case, problem)
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
        star_method(algorithm, rho, l2_of(scenario), owners, weighting),
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
    problem, algorithm = problem_of(scenario, case.arrays), algorithm_of(scenario)
    rho, weighting = _rho(scenario, problem), _weighting(scenario, network_of(scenario, case.arrays, replica))
    method = star_method(algorithm, rho, problem.l2, problem.owners, weighting)
    _, rule = rule_of(scenario, case, problem)
    drawn = sampling(algorithm.batch, problem.records, streams_of(scenario, replica).key("batches"))
    theta = replay_plainly(problem, method, events, noise, rule.clip, drawn, rule.order, rule.grid)
    yield from compared_with(problem, theta, series, models)


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
    frequencies, known = long_run_frequencies(network)
    if not known:
        kind = scenario.network.availability.kind
        raise MeaningError(
            "learning.algorithm.reweight", f"known frequencies cannot be said under {kind}; take estimated"
        )
    weights = inverse_frequencies(frequencies)
    if algorithm.reweight_at == "owner":
        return Weighting(ones, weights, staleness=algorithm.staleness)
    return Weighting(weights, ones, staleness=algorithm.staleness)


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
