"""What all cells with a central learner have in common, however it asks its owners."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.core.randomness import Streams
from p2psim.data.prepare import Prepared
from p2psim.learning.star.models import LearnerReplay
from p2psim.learning.star.problem import StarProblem, star_problem
from p2psim.learning.star.replay import OwnerRule, gradient_rule
from p2psim.learning.steps import Weighting
from p2psim.network.graph import Graph, TopologyInputs
from p2psim.network.section import Network
from p2psim.network.topologies import draw_links
from p2psim.scenario.model import Scenario
from p2psim.scenario.notices import Compared
from p2psim.simulation.algorithms.agents import held_out, names_of, star_centralities
from p2psim.simulation.algorithms.cell import PreparedCell
from p2psim.simulation.algorithms.learner_replay import RecordedLearnerReplay, compared_with
from p2psim.simulation.algorithms.replay import (
    RecordedReplica,
    claim_of,
    limit_of,
    network_of,
    plan_releases,
    record_bound,
    refuse_labels,
    replay_setup,
)
from p2psim.simulation.prepared import PreparedData

_ARRAYS = ("X", "y", "offsets", "x_l1", "gram", "moment", "energy", "optimum")


def star_algorithm(scenario: Scenario) -> Any:
    """The algorithm, which is one of a central learner."""
    return scenario.learning.algorithm


def l2_of(scenario: Scenario) -> float:
    """Weight of the regulariser."""
    l2 = scenario.learning.regularizer.l2
    assert not isinstance(l2, str)  # refused by p2psim.scenario.rules
    return l2


@dataclass(frozen=True)
class LearnerCell(PreparedCell):
    """A cell with a central learner.

    Attributes
    ----------
    method : StarMethod or RoundMethod
    """

    problem: StarProblem
    rule: OwnerRule
    method: Any

    #: The compiled replay, and its reference: the learner's model after every commit, shape (commits + 1, p).
    compiled: ClassVar[type[LearnerReplay]]
    reference: ClassVar[Callable[..., np.ndarray]]

    @staticmethod
    @abstractmethod
    def weigh(scenario: Scenario, network: Network) -> Weighting:
        """What answers are multiplied by.

        Raises
        ------
        MeaningError
            If frequencies are to be known that cannot be said beforehand.
        """

    @staticmethod
    @abstractmethod
    def method_of(scenario: Scenario, problem: StarProblem, weighting: Weighting) -> Any:
        """Numbers of the algorithm.

        Raises
        ------
        MeaningError
            If they do not follow from the records as asked.
        """

    @staticmethod
    def identify(scenario: Scenario) -> dict[str, Any]:
        """See `PreparedCell.identify`."""
        loss, theta_max = scenario.learning.score_loss, star_algorithm(scenario).theta_max
        return {"loss": loss.model_dump(), "l2": l2_of(scenario), "theta_max": theta_max}

    @staticmethod
    def arrays(scenario: Scenario, prepared: Prepared) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
        """Arrays of `StarProblem` and its minimum, records held out if there are some, and warnings."""
        loss, theta_max = scenario.learning.score_loss, star_algorithm(scenario).theta_max
        refuse_labels(loss, prepared)
        problem = star_problem(prepared.X, prepared.y, prepared.offsets, loss, l2_of(scenario), theta_max)
        arrays = {name: np.asarray(getattr(problem, name)) for name in (*_ARRAYS, "minimum")}
        active = "the optimum lies on the boundary of Θ: theta_max is active"
        if prepared.test_y.size:
            arrays |= held_out(prepared, loss.intercept)
        return arrays | names_of(prepared), (active,) if problem.box_is_active else ()

    @staticmethod
    def links_of(scenario: Scenario, case: PreparedData, replica: int) -> Graph:
        """See `PreparedCell.links_of`."""
        topology, inputs = scenario.network.topology, TopologyInputs(case.arrays["offsets"].size - 1)
        return case.graphs.get((topology,), lambda: draw_links(topology, inputs, learner=True))

    @classmethod
    def cell(cls, scenario: Scenario, case: PreparedData, replica: int) -> Self:
        """See `PreparedCell.cell`."""
        algorithm, arrays = star_algorithm(scenario), case.arrays
        problem = StarProblem(
            loss=scenario.learning.score_loss,
            l2=l2_of(scenario),
            theta_max=algorithm.theta_max,
            minimum=float(arrays["minimum"]),
            test_X=arrays.get("test_X"),
            test_y=arrays.get("test_y"),
            **{name: np.asarray(arrays[name]) for name in _ARRAYS},
        )
        if "test_loss" in scenario.record.metrics and problem.test_X is None:
            message = "test_loss needs records that are held out; give data.test_fraction"
            raise MeaningError("record.metrics", message)
        if "isolated_fitness" in scenario.record.metrics and problem.l2 == 0:
            _ = problem.isolated_optima  # refused before the run where they are not unique
        links = cls.links_of(scenario, case, replica)
        network = network_of(scenario, arrays, links, problem.dimension)
        assert network.rates is not None
        weighting = cls.weigh(scenario, network)
        method = cls.method_of(scenario, problem, weighting)
        bound, rule = _rule_of(scenario, case, problem, method.projects)
        # In rounds every owner answers every one, and one round less is held.
        rounds = network.exchange.in_rounds
        shares = np.ones(problem.owners) if rounds else network.rates / network.rates.sum()
        plan = plan_releases(
            scenario,
            limit_of(scenario, case, problem.owners),
            bound,
            problem.records,
            algorithm.horizon,
            shares,
            dimension=problem.dimension,
            factors=weighting.at_owner,
        )
        setup = replay_setup(scenario, network, plan, algorithm.horizon - rounds, None, problem.dimension)
        return cls(scenario, case, problem, setup, bound, rule, method)

    @property
    def weighting(self) -> Weighting:
        """What answers are multiplied by."""
        weighting: Weighting = self.method.weighting
        return weighting

    @property
    def horizon(self) -> int:
        """T."""
        return star_algorithm(self.scenario).horizon

    @property
    def centralities(self) -> dict[str, np.ndarray]:
        """See `PreparedCell.centralities`."""
        return star_centralities(self.problem.owners)

    def replay(self, streams: Streams) -> RecordedLearnerReplay:
        """See `PreparedCell.replay`."""
        replay = self.compiled(self.problem, self.method, self.rule, self.sampling(streams))
        return RecordedLearnerReplay(replay, self.problem, self.scenario.record)

    def verify(self, recorded: RecordedReplica) -> Iterator[Compared]:
        """See `PreparedCell.verify`; differences of ψ are relative to 1 + ψ."""
        problem, batches = self.problem, self.sampling(recorded.streams)
        problem.check()
        events, noise = recorded.events, recorded.noise
        theta = type(self).reference(problem, self.method, events, noise, self.rule, batches)
        yield from compared_with(problem, theta, recorded.series, recorded.models)


#: A box that no finite run leaves, small enough that its square is a number.
_ANYWHERE = 1e150


def _rule_of(
    scenario: Scenario, case: PreparedData, problem: StarProblem, projects: bool
) -> tuple[float, OwnerRule]:
    """Ξ, in the mechanism's norm, and how an owner computes its gradient, at models in Θ or anywhere.

    Raises
    ------
    MeaningError
        If public bounds are asked for and say nothing.
    """

    def public(order: int) -> float:
        if not projects and np.isinf(problem.loss.slope_bound):
            kind = scenario.learning.algorithm.kind
            message = f"bounds needs models that stay in Θ, which {kind} does not see to; give clip"
            raise MeaningError("privacy.sensitivity", message)
        return _public_bound(case, problem, order)

    bound, rule = claim_of(scenario, problem, public)
    reach = problem if projects else replace(problem, theta_max=_ANYWHERE)
    return bound, gradient_rule(reach, rule.clip, rule.bound, rule.order, rule.grid)


def _public_bound(case: PreparedData, problem: StarProblem, order: int) -> float:
    """Bound on the norm of a record's gradient on Θ, of order 1 or 2, from the public bounds on x and y.

    |∂ℓ/∂z|·B, with ‖x‖ ≤ B in that norm. The slope is at most 2(θ_max·B₁ + y_max) for the squared loss, B₁ the bound on
    ‖x‖₁; other losses have a bound at any score, 1 for hinge and logistic.

    Raises
    ------
    MeaningError
        If no bound on x is public, or none on y where the loss needs it.
    """
    B1, B = (record_bound((case.x_l1, case.x_max), problem, norm) for norm in (1, order))
    if np.isfinite(problem.loss.slope_bound):
        return problem.loss.slope_bound * B
    if case.y_max is None:
        raise MeaningError(
            "privacy.sensitivity", "bounds needs a public bound on y: give data.scale.y, or clip"
        )
    slope = problem.loss.slope_bounds(np.array([B1]), np.array([case.y_max]), problem.theta_max)
    return float(slope[0] * B)
