"""The cell of synchronous rounds, in which a central learner queries all owners at once.

The module also draws up what is known before a run: size, step, privacy, and warnings.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from p2psim.core.errors import AgentError, MeaningError
from p2psim.core.randomness import stream_key
from p2psim.learning.star.algorithms import RoundMethod
from p2psim.learning.star.problem import StarProblem
from p2psim.learning.star.reference import reference_replay_rounds
from p2psim.learning.star.rounds import RoundsReplay
from p2psim.learning.steps import Weighting
from p2psim.network.section import Network
from p2psim.scenario.model import Scenario
from p2psim.simulation.algorithms import Facts, PrivacyOfAgents
from p2psim.simulation.algorithms.agents import answering, events_of_commit
from p2psim.simulation.algorithms.learner_cell import LearnerCell, star_algorithm
from p2psim.simulation.prepared import PreparedData


@dataclass(frozen=True)
class RoundsCell(LearnerCell):
    """A cell of synchronous rounds."""

    method: RoundMethod

    compiled = RoundsReplay
    reference = reference_replay_rounds

    @staticmethod
    def weigh(scenario: Scenario, network: Network) -> Weighting:
        """See `LearnerCell.weigh`: multiplied at the learner."""
        ones = np.ones(network.links.agents)
        reweight = star_algorithm(scenario).reweight
        if reweight != "known":
            return Weighting(ones, ones, reweight == "estimated")
        response = answering(network)
        if not response.known or response.lacking:
            kind = scenario.network.availability.kind
            unknown = f"it is not known how often owners are online under {kind}"
            what = "; ".join(response.lacking) if response.known else unknown
            message = f"known frequencies cannot be said ({what}); take estimated or answered"
            raise MeaningError("learning.algorithm.reweight", message)
        chances = response.heard * response.used
        if not chances.all():
            owner = int(np.argmin(chances))
            message = "owner {agent} never answers in time, so that nothing makes up for it"
            raise AgentError("learning.algorithm.reweight", message, owner)
        return Weighting(1.0 / chances, ones)

    @staticmethod
    def method_of(scenario: Scenario, problem: StarProblem, weighting: Weighting) -> RoundMethod:
        """See `LearnerCell.method_of`."""
        algorithm = star_algorithm(scenario)
        method: RoundMethod = algorithm.method(weighting)
        if (aggregate := algorithm.aggregate) is not None:
            method = replace(method, clip=aggregate.norm, trim=aggregate.trim)
        return method

    @classmethod
    def cell(cls, scenario: Scenario, case: PreparedData, replica: int) -> Self:
        """See `PreparedCell.cell`."""
        made, liars = super().cell(scenario, case, replica), star_algorithm(scenario).liars
        if liars is None:
            return made
        # The same in all replicas, as cells are.
        key = stream_key(scenario.seed, None, "data", "\x1flies")
        lies = liars.lies(case.labels, case.groups, made.problem.dimension, key)
        return replace(made, method=replace(made.method, lies=lies))

    def facts(self, privacy: PrivacyOfAgents) -> Facts:
        """See `PreparedCell.facts`."""
        problem, steps = self.problem, self.method.steps
        facts: dict[str, object] = {
            "owners": problem.owners,
            "records": int(problem.records.sum()),
            "p": problem.dimension,
            "first step": float(steps[0]),
            "sum of steps": float(steps.sum()),
            **dict.fromkeys(("first step · λ", "sum of steps · L")),
            "f(θ*)": problem.minimum,
            "Ξ": self.bound,
        }
        if (lies := self.method.lies) is not None:
            facts["owners that lie"] = int(lies.liars.sum())
        warnings: list[str] = []
        if np.isfinite(problem.loss.curvature):
            mean = np.tensordot(problem.shares, problem.loss.curvature * problem.gram, axes=1)
            eigenvalues = np.linalg.eigvalsh(mean)
            # g adds 2·l2 to every curvature; only the squared loss bounds it from below by more than that.
            steepest = float(eigenvalues[-1]) + 2 * problem.l2
            least = float(max(eigenvalues[0], 0.0)) if problem.loss.is_squared_error else 0.0
            flattest = 2 * problem.l2 + least
            facts |= {
                "first step · λ": float(steps[0]) * steepest,
                "sum of steps · L": float(steps.sum()) * flattest,
            }
            warnings += self._step_warnings(steps * steepest)
        return facts, steps.size * events_of_commit(self.scenario.network.exchange, problem.owners), warnings

    def _step_warnings(self, relative: np.ndarray) -> Iterator[str]:
        """What is wrong with steps, given times λ, shape (T − 1,)."""
        parameter = "c1" if self.method.averages else "rho"
        first, last, total = float(relative[0]), float(relative[-1]), float(relative.sum())
        if last > 2 and self.method.projects:
            yield (
                f"the model does not settle in Θ: even the last step times λ is {last:.3g}, and above 2 a step leads "
                f"away from the optimum; lower learning.algorithm.{parameter}"
            )
        if first > 2 and not self.method.projects:
            yield (
                f"the first steps go too far: step·λ = {first:.3g}, and above 2 the model moves away from the optimum; "
                f"lower learning.algorithm.{parameter}"
            )
        if total < 1:
            what = f"the model hardly moves: all steps together, times λ, are {total:.3g}"
            yield f"{what}; raise learning.algorithm.{parameter}"
