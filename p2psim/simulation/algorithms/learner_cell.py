"""What all cells with a central learner have in common, however it asks its owners."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p2psim.core.events import EVENT
from p2psim.core.randomness import Streams
from p2psim.learning.batches import Sampling, sampling
from p2psim.learning.star.problem import LearnerReplay, StarProblem
from p2psim.learning.star.replay import GradientRule
from p2psim.learning.steps import Weighting
from p2psim.privacy.ledger import Caveats
from p2psim.privacy.plan import Limit, Plan
from p2psim.privacy.planning import plan
from p2psim.privacy.releases import Violations
from p2psim.scenario.notices import Compared
from p2psim.simulation.algorithms.agents import star_agents
from p2psim.simulation.algorithms.learner_replay import RecordedLearnerReplay, compared_with
from p2psim.simulation.algorithms.replay import (
    Assessment,
    Privacy,
    Replay,
    ReplaySetup,
    delta_warning,
    overlap_warning,
)
from p2psim.simulation.algorithms.star_setting import star_algorithm

if TYPE_CHECKING:
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.outcome import Series
    from p2psim.simulation.prepared import PreparedData
    from p2psim.simulation.recorder import Marks


@dataclass(frozen=True)
class LearnerCell(ABC):
    """A cell with a central learner; see `p2psim.simulation.algorithms.replay.PreparedCell`.

    Attributes
    ----------
    scenario : Scenario
    case : PreparedData
    problem : StarProblem
    setup : ReplaySetup
    bound : float
        Ξ, the bound on one record's gradient, in the mechanism's norm; 0 where nothing is claimed.
    rule : GradientRule
    """

    scenario: Scenario
    case: PreparedData
    problem: StarProblem
    setup: ReplaySetup
    bound: float
    rule: GradientRule

    @property
    @abstractmethod
    def weighting(self) -> Weighting:
        """What answers are multiplied by."""

    @property
    def has_data_dependent_step(self) -> bool:
        """Whether the learner's steps depend on the records."""
        return False

    @abstractmethod
    def learner_replay(self, drawn: Sampling | None) -> LearnerReplay:
        """Begin to replay events; ``drawn`` says how batches are drawn."""

    @abstractmethod
    def reference_replay(self, events: np.ndarray, noise: np.ndarray, drawn: Sampling | None) -> np.ndarray:
        """The learner's model after every commit by the plain reference, shape (commits + 1, p)."""

    @abstractmethod
    def assess(self) -> Assessment:
        """Say what can be said before the run."""

    @property
    def horizon(self) -> int:
        """T."""
        return star_algorithm(self.scenario).horizon

    def replay(self, streams: Streams) -> Replay:
        """Begin a replica."""
        return RecordedLearnerReplay(
            self.problem, self.scenario.record, self.learner_replay(self._drawn(streams))
        )

    def verify(
        self,
        streams: Streams,
        events: np.ndarray,
        noise: np.ndarray,
        marks: Marks,
        series: tuple[Series, ...],
        models: np.ndarray | None,
    ) -> Iterator[Compared]:
        """Compare a recorded replica with the reference; differences of ψ are relative to 1 + ψ."""
        self.problem.check()
        theta = self.reference_replay(events, noise, self._drawn(streams))
        yield from compared_with(self.problem, theta, series, models)

    def caveats(self, violations: Violations) -> Caveats:
        """Return what limits the guarantee."""
        sensitivity = self.scenario.privacy.sensitivity
        void = sensitivity is not None and not sensitivity.holds
        return Caveats(violations, void, self.has_data_dependent_step)

    def agents(self) -> dict[str, np.ndarray]:
        """Columns of the table of agents."""
        return star_agents(self.case, self.problem.records, self.setup.plan.budget)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know of a run."""
        return self.assess().warnings

    def _drawn(self, streams: Streams) -> Sampling | None:
        return sampling(star_algorithm(self.scenario).batch, self.problem.records, streams.key("batches"))


def plan_answers(
    scenario: Scenario,
    limit: Limit,
    bound: float,
    records: np.ndarray,
    dimension: int,
    shares: np.ndarray,
    weighting: Weighting,
) -> Plan:
    """Plan the answers of owners of a central learner.

    Parameters
    ----------
    scenario : Scenario
    limit : Limit
        What all answers may cost.
    bound : float
        Ξ.
    records : ndarray of int, shape (N,)
    dimension : int
        p.
    shares : ndarray, shape (N,)
        Probability that a commit uses each owner's answer.
    weighting : Weighting
    """
    privacy, algorithm = scenario.privacy, star_algorithm(scenario)
    return plan(
        privacy.mechanism,
        privacy.allocation,
        limit,
        bound,
        algorithm.batch.divisors(records),
        algorithm.horizon,
        shares,
        privacy.scale_records,
        rates=algorithm.batch.rates(records),
        dimension=dimension,
        factors=weighting.at_owner,
    )


def assessment(
    cell: LearnerCell,
    facts: dict[str, object],
    events: int,
    privacy: tuple[Privacy, ...],
    warnings: Sequence[str],
) -> Assessment:
    """What can be said of a cell before it runs.

    Parameters
    ----------
    cell : LearnerCell
    facts : dict
        Numbers by the names that a person reads.
    events : int
        Estimate for one replica.
    privacy : tuple of Privacy
        Of each owner.
    warnings : sequence of str
        Of the algorithm; those that all share come after them.
    """
    problem = cell.problem
    shared = overlap_warning(cell.setup.plan, cell.case.labels) + delta_warning(
        cell.scenario.privacy.delta, problem.records
    )
    return Assessment(
        facts=facts,
        records=tuple(problem.records.tolist()),
        events=events,
        bytes_of_events=events * EVENT.itemsize,
        bytes_of_data=problem.X.nbytes + problem.y.nbytes + problem.x_l1.nbytes,
        privacy=privacy,
        warnings=(*warnings, *shared),
    )
