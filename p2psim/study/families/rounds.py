"""Synchronous rounds: a central learner that asks all owners at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import AgentError, MeaningError
from p2psim.learning.batches import Sampling
from p2psim.learning.learner_replay import LearnerReplay
from p2psim.learning.rounds_reference import replay_rounds_plainly
from p2psim.learning.rounds_replay import RoundsReplay
from p2psim.learning.synchronous import (
    RoundMethod,
    SynchronousAveraging,
    SynchronousDescent,
    round_method,
)
from p2psim.learning.weighting import Weighting
from p2psim.network.simulation import Network
from p2psim.study.families.answering import answering
from p2psim.study.families.learner_cell import LearnerCell, plan_answers
from p2psim.study.families.rounds_facts import assess
from p2psim.study.families.stage import Assessment, check_availability, limit_of, stage
from p2psim.study.families.star_setting import (
    arrays,
    identify,
    links_of,
    network_of,
    problem_of,
    rule_of,
    star_algorithm,
)

if TYPE_CHECKING:
    from p2psim.study.scenario import Scenario
    from p2psim.study.workspace import Case

__all__ = ["arrays", "cell", "identify", "links_of"]


def algorithm_of(scenario: Scenario) -> SynchronousDescent | SynchronousAveraging:
    """The algorithm, which is one of this family's."""
    algorithm = star_algorithm(scenario)
    assert isinstance(algorithm, SynchronousDescent | SynchronousAveraging)
    return algorithm


@dataclass(frozen=True)
class RoundsCell(LearnerCell):
    """A cell of synchronous rounds.

    Attributes
    ----------
    method : RoundMethod
    """

    method: RoundMethod

    @property
    def weighting(self) -> Weighting:
        """See `LearnerCell.weighting`."""
        return self.method.weighting

    def replay(self, every_step: int, every_time: float, drawn: Sampling | None) -> LearnerReplay:
        """See `LearnerCell.replay`."""
        return RoundsReplay(self.problem, self.method, self.rule, every_step, every_time, drawn)

    def replay_plainly(self, events: np.ndarray, noise: np.ndarray, drawn: Sampling | None) -> np.ndarray:
        """See `LearnerCell.replay_plainly`."""
        rule = self.rule
        return replay_rounds_plainly(
            self.problem, self.method, events, noise, rule.clip, drawn, rule.order, rule.grid
        )

    def assess(self) -> Assessment:
        """See `LearnerCell.assess`."""
        return assess(self)


def cell(scenario: Scenario, case: Case, replica: int) -> RoundsCell:
    """Turn a scenario (without a sweep) and its case into numbers.

    Raises
    ------
    MeaningError
        If something that depends on the data means nothing: an agent without a budget, or a sensitivity from bounds
        that nobody gives.
    """
    problem = problem_of(scenario, case.arrays)
    network = network_of(scenario, case.arrays, replica)
    check_availability(network)
    weighting = _weighting(scenario, network)
    method = round_method(algorithm_of(scenario), weighting)
    bound, rule = rule_of(scenario, case, problem, method.projects)
    limit = limit_of(scenario, case, problem.owners)
    # Every owner answers every round.
    shares = np.ones(problem.owners)
    plans = plan_answers(scenario, limit, bound, problem.records, problem.dimension, shares, weighting)
    return RoundsCell(
        scenario,
        case,
        problem,
        stage(scenario, network, plans, method.steps.size, None, problem.dimension),
        bound,
        rule,
        method,
    )


def _weighting(scenario: Scenario, network: Network) -> Weighting:
    """What answers are multiplied by at the learner.

    Raises
    ------
    MeaningError
        If frequencies are to be known that cannot be said beforehand.
    """
    ones = np.ones(network.links.agents)
    reweight = algorithm_of(scenario).reweight
    if reweight != "known":
        return Weighting(ones, ones, reweight == "estimated")
    found = answering(network)
    if not found.known or found.lacking:
        kind = scenario.network.availability.kind
        what = (
            "; ".join(found.lacking)
            if found.known
            else f"nobody knows how often owners are there under {kind}"
        )
        raise MeaningError(
            "learning.algorithm.reweight",
            f"known frequencies cannot be said ({what}); take estimated or answered",
        )
    chances = found.heard * found.used
    if not chances.all():
        owner = int(np.argmin(chances))
        raise AgentError(
            "learning.algorithm.reweight",
            "owner {agent} never answers in time, so that nothing makes up for it",
            owner,
        )
    return Weighting(1.0 / chances, ones)
