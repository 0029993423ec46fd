"""Synchronous rounds: a central learner that asks all owners at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import MeaningError
from p2psim.learning.batches import sampling
from p2psim.learning.rounds_reference import replay_rounds_plainly
from p2psim.learning.rounds_replay import RoundsReplay
from p2psim.learning.star_problem import StarProblem
from p2psim.learning.star_replay import GradientRule
from p2psim.learning.synchronous import (
    RoundMethod,
    SynchronousAveraging,
    SynchronousDescent,
    round_method,
)
from p2psim.learning.weighting import Weighting
from p2psim.network.simulation import Network
from p2psim.privacy.ledger import Caveats
from p2psim.privacy.planning import plan
from p2psim.privacy.violations import Violations
from p2psim.randomness import Streams
from p2psim.study.compared import Compared
from p2psim.study.families.agents import star_agents
from p2psim.study.families.answering import answering
from p2psim.study.families.rounds_facts import assess
from p2psim.study.families.stage import Assessment, Player, Stage, check_availability, limit_of, stage
from p2psim.study.families.star_player import StarPlayer, compared_with, marks_of
from p2psim.study.families.star_setting import (
    arrays,
    identify,
    links_of,
    network_of,
    problem_of,
    rule_of,
    star_algorithm,
)
from p2psim.study.streams import streams_of

if TYPE_CHECKING:
    from p2psim.study.outcome import Series
    from p2psim.study.scenario import Scenario
    from p2psim.study.workspace import Case

__all__ = ["arrays", "cell", "identify", "links_of", "recompute"]


def algorithm_of(scenario: Scenario) -> SynchronousDescent | SynchronousAveraging:
    """The algorithm, which is one of this family's."""
    algorithm = star_algorithm(scenario)
    assert isinstance(algorithm, SynchronousDescent | SynchronousAveraging)
    return algorithm


@dataclass(frozen=True)
class RoundsCell:
    """A cell of synchronous rounds; see `p2psim.study.families.stage.FamilyCell`.

    Attributes
    ----------
    scenario : Scenario
    case : Case
    problem : StarProblem
    stage : Stage
    method : RoundMethod
    bound : float
        Ξ, the bound on one record's gradient, in the mechanism's norm; 0 where nothing is claimed.
    rule : GradientRule
    """

    scenario: Scenario
    case: Case
    problem: StarProblem
    stage: Stage
    method: RoundMethod
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
        replay = RoundsReplay(self.problem, self.method, self.rule, steps, time, drawn)
        return StarPlayer(self.problem, record, replay)

    def caveats(self, violations: Violations) -> Caveats:
        """Return what limits the guarantee."""
        sensitivity = self.scenario.privacy.sensitivity
        return Caveats(violations, void=sensitivity is not None and sensitivity.kind == "empirical")

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


def cell(scenario: Scenario, case: Case, replica: int) -> RoundsCell:
    """Turn a scenario (without a sweep) and its case into numbers.

    Raises
    ------
    MeaningError
        If something that depends on the data means nothing: an agent without a budget, or a sensitivity from bounds
        that nobody gives.
    """
    problem, privacy = problem_of(scenario, case.arrays), scenario.privacy
    algorithm = algorithm_of(scenario)
    network = network_of(scenario, case.arrays, replica)
    check_availability(network)
    method = round_method(algorithm, _weighting(scenario, network))
    bound, rule = rule_of(scenario, case, problem, method.projects)
    plans = plan(
        privacy.mechanism,
        privacy.allocation,
        limit_of(scenario, case, problem.owners),
        bound,
        algorithm.batch.divisors(problem.records),
        algorithm.horizon,
        np.ones(problem.owners),
        privacy.scale_records,
        rates=algorithm.batch.rates(problem.records),
        dimension=problem.dimension,
        factors=method.weighting.at_owner,
    )
    rounds = method.steps.size
    return RoundsCell(
        scenario,
        case,
        problem,
        stage(scenario, network, plans, rounds, None, problem.dimension),
        method,
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
    method = round_method(algorithm, _weighting(scenario, network_of(scenario, case.arrays, replica)))
    _, rule = rule_of(scenario, case, problem, method.projects)
    drawn = sampling(algorithm.batch, problem.records, streams_of(scenario, replica).key("batches"))
    theta = replay_rounds_plainly(problem, method, events, noise, rule.clip, drawn, rule.order, rule.grid)
    yield from compared_with(problem, theta, series, models)


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
        raise MeaningError(
            "learning.algorithm.reweight",
            f"owner {owner} never answers in time, so that nothing makes up for it",
        )
    return Weighting(1.0 / chances, ones)
