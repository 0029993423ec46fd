"""The cell of synchronous rounds, in which a central learner queries all owners at once.

The module also draws up what is known before a run: size, step, privacy, and warnings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p2psim.core.errors import AgentError, MeaningError
from p2psim.learning.batches import Sampling
from p2psim.learning.star.algorithms import (
    RoundMethod,
    SynchronousAveraging,
    SynchronousDescent,
    round_method,
)
from p2psim.learning.star.problem import LearnerReplay
from p2psim.learning.star.reference import reference_replay_rounds
from p2psim.learning.star.rounds import RoundsReplay
from p2psim.learning.steps import Weighting
from p2psim.network.section import Network
from p2psim.simulation.algorithms.agents import answering
from p2psim.simulation.algorithms.learner_cell import LearnerCell, assessment, plan_answers
from p2psim.simulation.algorithms.replay import (
    Assessment,
    check_availability,
    limit_of,
    privacy_of,
    replay_setup,
)
from p2psim.simulation.algorithms.star_setting import (
    arrays,
    identify,
    links_of,
    network_of,
    problem_of,
    rule_of,
    star_algorithm,
)

if TYPE_CHECKING:
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.prepared import PreparedData

__all__ = ["arrays", "cell", "identify", "links_of"]


def algorithm_of(scenario: Scenario) -> SynchronousDescent | SynchronousAveraging:
    """The algorithm, which is one of this adapter's."""
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

    def learner_replay(self, drawn: Sampling | None) -> LearnerReplay:
        """See `LearnerCell.learner_replay`."""
        return RoundsReplay(self.problem, self.method, self.rule, drawn)

    def reference_replay(self, events: np.ndarray, noise: np.ndarray, drawn: Sampling | None) -> np.ndarray:
        """See `LearnerCell.reference_replay`."""
        rule = self.rule
        return reference_replay_rounds(
            self.problem, self.method, events, noise, rule.clip, drawn, rule.order, rule.grid
        )

    def assess(self) -> Assessment:
        """See `LearnerCell.assess`."""
        return assess(self)


def cell(scenario: Scenario, case: PreparedData, replica: int) -> RoundsCell:
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
        replay_setup(scenario, network, plans, method.steps.size, None, problem.dimension),
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


def assess(cell: RoundsCell) -> Assessment:
    """Draw up the facts of one cell."""
    problem, plan, steps = cell.problem, cell.setup.plan, cell.method.steps
    facts: dict[str, object] = {
        "owners": problem.owners,
        "records": int(problem.records.sum()),
        "p": problem.dimension,
        "first step": float(steps[0]),
        "sum of steps": float(steps.sum()),
        "first step · λ": None,
        "sum of steps · L": None,
        "f(θ*)": problem.minimum,
        "Ξ": cell.bound,
    }
    warnings = []
    if np.isfinite(problem.loss.curvature):
        mean = np.tensordot(problem.shares, problem.loss.curvature * problem.gram, axes=1)
        eigenvalues = np.linalg.eigvalsh(mean)
        # g adds 2·l2 to every curvature; only the squared loss bounds it from below by more than that.
        steepest = float(eigenvalues[-1]) + 2 * problem.l2
        flattest = 2 * problem.l2 + (
            float(max(eigenvalues[0], 0.0)) if problem.loss.is_squared_error else 0.0
        )
        facts |= {
            "first step · λ": float(steps[0]) * steepest,
            "sum of steps · L": float(steps.sum()) * flattest,
        }
        warnings += _step_warnings(cell, steps * steepest)
    events = steps.size * (2 + 3 * problem.owners)
    return assessment(cell, facts, events, privacy_of(plan), warnings)


def _step_warnings(cell: RoundsCell, relative: np.ndarray) -> list[str]:
    """What is wrong with steps, given times λ, shape (T − 1,)."""
    parameter = "c1" if cell.method.averages else "rho"
    first, last, total = float(relative[0]), float(relative[-1]), float(relative.sum())
    found = []
    if last > 2 and cell.method.projects:
        found.append(
            f"the model is thrown about in Θ: even the last step times λ is {last:.3g}, and above 2 a step leads away "
            f"from the optimum; lower learning.algorithm.{parameter}"
        )
    if first > 2 and not cell.method.projects:
        found.append(
            f"the first steps go too far: step·λ = {first:.3g}, and above 2 the model moves away from the optimum; "
            f"lower learning.algorithm.{parameter}"
        )
    if total < 1:
        found.append(
            f"the model hardly moves: all steps together, times λ, are {total:.3g}; "
            f"raise learning.algorithm.{parameter}"
        )
    return found
