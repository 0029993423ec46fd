"""The star: a central learner and its owners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import MeaningError
from p2psim.learning.async_star import AsyncStar, RhoFromH, StarMethod, star_method
from p2psim.learning.batches import Sampling
from p2psim.learning.learner_replay import LearnerReplay
from p2psim.learning.star_problem import StarProblem
from p2psim.learning.star_reference import replay_plainly
from p2psim.learning.star_replay import StarReplay
from p2psim.learning.weighting import Weighting, inverse_frequencies
from p2psim.network.simulation import Network
from p2psim.study.families.frequencies import long_run_frequencies
from p2psim.study.families.learner_cell import LearnerCell, plan_answers
from p2psim.study.families.stage import (
    Assessment,
    check_availability,
    limit_of,
    stage,
)
from p2psim.study.families.star_facts import assess
from p2psim.study.families.star_setting import (
    arrays,
    identify,
    links_of,
    network_of,
    problem_of,
    rule_of,
)
from p2psim.theory.star import rho_for_h

if TYPE_CHECKING:
    from p2psim.study.scenario import Scenario
    from p2psim.study.workspace import Case

__all__ = ["arrays", "cell", "identify", "links_of"]


def algorithm_of(scenario: Scenario) -> AsyncStar:
    """The algorithm, which is this family's."""
    algorithm = scenario.learning.algorithm
    assert isinstance(algorithm, AsyncStar)
    return algorithm


@dataclass(frozen=True)
class StarCell(LearnerCell):
    """A star's cell.

    Attributes
    ----------
    rho : float
        The step parameter, given or chosen.
    method : StarMethod
    """

    rho: float
    method: StarMethod

    @property
    def weighting(self) -> Weighting:
        """See `LearnerCell.weighting`."""
        return self.method.weighting or Weighting.equal(self.problem.owners)

    @property
    def has_data_dependent_step(self) -> bool:
        """See `LearnerCell.has_data_dependent_step`."""
        return isinstance(algorithm_of(self.scenario).rho, RhoFromH)

    def replay(self, every_step: int, every_time: float, drawn: Sampling | None) -> LearnerReplay:
        """See `LearnerCell.replay`."""
        return StarReplay(self.problem, self.method, self.rule, every_step, every_time, drawn)

    def replay_plainly(self, events: np.ndarray, noise: np.ndarray, drawn: Sampling | None) -> np.ndarray:
        """See `LearnerCell.replay_plainly`."""
        rule = self.rule
        return replay_plainly(
            self.problem, self.method, events, noise, rule.clip, drawn, rule.order, rule.grid
        )

    def assess(self) -> Assessment:
        """See `LearnerCell.assess`."""
        return assess(self)


def cell(scenario: Scenario, case: Case, replica: int) -> StarCell:
    """Turn a scenario (without a sweep) and its case into numbers.

    Raises
    ------
    MeaningError
        If something that depends on the data means nothing: an agent without a budget, ρ from the h of a hinge loss,
        a sensitivity from bounds that nobody gives.
    """
    problem, algorithm = problem_of(scenario, case.arrays), algorithm_of(scenario)
    network = network_of(scenario, case.arrays, replica)
    check_availability(network)
    rates = network.rates
    assert rates is not None
    weighting = _weighting(scenario, network)
    rho = _rho(scenario, problem)
    bound, rule = rule_of(scenario, case, problem)
    limit = limit_of(scenario, case, problem.owners)
    shares = rates / rates.sum()
    plans = plan_answers(scenario, limit, bound, problem.records, problem.dimension, shares, weighting)
    return StarCell(
        scenario,
        case,
        problem,
        stage(scenario, network, plans, algorithm.horizon, None, problem.dimension),
        bound,
        rule,
        rho,
        star_method(algorithm, rho, problem.l2, problem.owners, weighting),
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
