"""What all cells with a central learner have in common, however it asks its owners."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.core.randomness import Streams
from p2psim.data.prepare import Prepared
from p2psim.learning.graph.metrics import GRAPH_METRICS
from p2psim.learning.metrics import METRICS, Series
from p2psim.learning.sgd.problem import SharedProblem
from p2psim.learning.star.problem import OwnerRule, Recorded, StarProblem, gradient_rule, star_problem
from p2psim.learning.star.replay import LearnerReplay
from p2psim.learning.steps import Weighting
from p2psim.network.graph import Graph, TopologyInputs
from p2psim.network.section import Network
from p2psim.network.topologies import draw_links
from p2psim.scenario.model import Scenario
from p2psim.scenario.notices import Compared
from p2psim.simulation.algorithms import PreparedCell, agents, replay
from p2psim.simulation.algorithms.learner_replay import LearnerMetrics, RecordedLearnerReplay
from p2psim.simulation.algorithms.replay import RecordedReplica
from p2psim.simulation.check import Recomputed
from p2psim.simulation.prepared import PreparedData


def compared_with(
    problem: StarProblem, theta: np.ndarray, series: Sequence[Series], models: np.ndarray | None
) -> Iterator[Compared]:
    """What was recorded of a replica beside its models as recomputed, shape (steps + 1, p); ψ relative to 1 + ψ.

    Other metrics than those of fitness are measured again, at the steps of their own records.
    """
    compared = [entry for entry in series if entry.metric == "relative_fitness" and entry.model == "main"]
    for entry in compared:
        psi = problem.checked(problem.fitness(theta[entry.step]) / problem.minimum - 1, theta[entry.step])
        problem.checked(entry.value, theta[entry.step])
        yield Compared(entry.value, psi, 1 + np.abs(psi))
    fitness = ("relative_fitness", "isolated_fitness")
    for name in {entry.metric: None for entry in series if entry.metric not in fitness}:
        yield from _measured_again(problem, theta, [entry for entry in series if entry.metric == name])
    if models is not None and compared:
        yield Compared.of(models, theta[compared[0].step])


def _measured_again(problem: StarProblem, theta: np.ndarray, series: Sequence[Series]) -> Iterator[Compared]:
    """Series of one metric beside those of the recomputed models."""
    step = np.concatenate([entry.step for entry in series])
    # Two records can follow the same commit.
    times = np.concatenate([entry.time for entry in series])
    moments = dict.fromkeys(zip(step.tolist(), times.tolist(), strict=True))
    steps, times = np.array(list(moments), dtype=float).T
    recorded = Recorded(steps.astype(np.int64), times, theta[steps.astype(np.int64)])
    again = {
        (entry.model, entry.agent): entry.value
        for entry in METRICS[series[0].metric].measure(problem, recorded)
    }
    for entry in series:
        yield Compared.of(entry.value, again.get((entry.model, entry.agent), np.empty(0)))


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
        replay.refuse_labels(loss, prepared)
        problem = star_problem(prepared.X, prepared.y, prepared.offsets, loss, l2_of(scenario), theta_max)
        arrays = {name: np.asarray(getattr(problem, name)) for name in (*_ARRAYS, "minimum")}
        active = "the optimum lies on the boundary of Θ: theta_max is active"
        if prepared.test_y.size:
            arrays |= agents.held_out(prepared, loss.intercept)
        return arrays | agents.names_of(prepared), (active,) if problem.box_is_active else ()

    @staticmethod
    def links_of(scenario: Scenario, case: PreparedData, replica: int) -> Graph:
        """See `PreparedCell.links_of`."""
        topology, inputs = scenario.network.topology, TopologyInputs(case.arrays["offsets"].size - 1)
        return case.graphs.get((topology,), lambda: draw_links(topology, inputs, learner=True))

    @classmethod
    def cell(cls, scenario: Scenario, case: PreparedData, replica: int) -> Self:
        """See `PreparedCell.cell`."""
        algorithm, arrays = star_algorithm(scenario), case.arrays
        # Its loss, l2 and theta_max belong to what tells cases apart.
        problem = case.shared.get("problem") or StarProblem(
            loss=scenario.learning.score_loss,
            l2=l2_of(scenario),
            theta_max=algorithm.theta_max,
            minimum=float(arrays["minimum"]),
            test_X=arrays.get("test_X"),
            test_y=arrays.get("test_y"),
            **{name: np.asarray(arrays[name]) for name in _ARRAYS},
        )
        case.shared["problem"] = problem
        record = scenario.record
        if problem.test_X is None:
            agents.refuse_tests(scenario)
            if "test_loss" in record.metrics:
                message = "test_loss needs records that are held out; give data.test_fraction"
                raise MeaningError("record.metrics", message)
        if "isolated_fitness" in {*record.metrics, *record.per_agent} and problem.l2 == 0:
            _ = problem.isolated_optima  # refused before the run where they are not unique
        links = cls.links_of(scenario, case, replica)
        network = replay.network_of(scenario, case, links, problem.dimension)
        method = case.once(
            "method",
            (cls, scenario.learning, network),
            lambda: cls.method_of(scenario, problem, cls.weigh(scenario, network)),
        )
        bound, rule = _rule_of(scenario, case, problem, method.projects)
        # In rounds every owner answers every one, and one round less is held.
        rounds = network.exchange.in_rounds
        shares = np.ones(problem.owners) if rounds else network.known_rates / network.known_rates.sum()
        T, p, limit = algorithm.horizon, problem.dimension, replay.limit_of(scenario, case, problem.owners)
        more = {"dimension": p, "factors": method.weighting.at_owner}
        plan = replay.plan_releases(scenario, limit, bound, problem.records, T, shares, **more)
        setup = replay.replay_setup(scenario, case, network, plan, T - rounds, None, p)
        return cls(scenario, case, problem, setup, bound, rule, method)

    @property
    def weighting(self) -> Weighting:
        """What answers are multiplied by."""
        return self.method.weighting

    @property
    def horizon(self) -> int:
        """T."""
        return star_algorithm(self.scenario).horizon

    @property
    def centralities(self) -> dict[str, np.ndarray]:
        """See `PreparedCell.centralities`."""
        return agents.star_centralities(self.problem.owners, self.scenario.record.has_centralities)

    def replay(self, streams: Streams) -> RecordedLearnerReplay:
        """See `PreparedCell.replay`."""
        replay = self._replay.again(self.sampling(streams) if self._draws else None)
        record = self.scenario.record
        return RecordedLearnerReplay(replay, self.problem, self._owners, record, self._groups, self.metrics)

    @cached_property
    def _draws(self) -> bool:
        """Whether a release is made of a batch."""
        return self.sampling(Streams()) is not None

    def start(self) -> Any:
        """The replay of a replica without batches, at its beginning."""
        return self._replay.again(None)

    @cached_property
    def metrics(self) -> LearnerMetrics:
        """Metrics that are recorded."""
        record = self.scenario.record
        named = dict.fromkeys([*record.metrics, *record.per_agent])
        return LearnerMetrics(
            [METRICS[name] for name in named if name in METRICS],
            [GRAPH_METRICS[name] for name in named if name in GRAPH_METRICS],
        )

    @cached_property
    def _replay(self) -> LearnerReplay:
        """One of any replica, at its beginning."""
        depends = type(self), self.method, self.rule, self.scenario.learning
        return self.case.once(
            "replay",
            depends,
            lambda: self.compiled(self.problem, self.method, self.rule, self.sampling(Streams())),
        )

    @cached_property
    def _groups(self) -> tuple[str, ...] | None:
        return agents.kinds_of(self.scenario, self.case.groups, self.setup.network.links)

    @cached_property
    def _owners(self) -> SharedProblem:
        """The problem, with each owner's records held out."""
        problem, model = self.problem, self.scenario.learning.trained_model
        nothing = {"test_X": problem.X[:0], "test_y": problem.y[:0], "test_offsets": 0 * problem.offsets}
        tables = {name: np.asarray(self.case.arrays.get(name, none)) for name, none in nothing.items()}
        tables |= {"X": problem.X, "y": problem.y, "offsets": problem.offsets}
        return SharedProblem(model, classes=0, l2=problem.l2, weights=problem.shares, **tables)

    def verify(self, recorded: RecordedReplica) -> Iterator[Compared]:
        """See `PreparedCell.verify`; differences of ψ are relative to 1 + ψ."""
        problem, batches = self.problem, self.sampling(recorded.streams)
        problem.check()
        events, noise = recorded.events, recorded.noise
        theta = type(self).reference(problem, self.method, events, noise, self.rule, batches)
        of_star = [entry for entry in recorded.series if entry.metric in METRICS]
        of_owners = [entry for entry in recorded.series if entry.metric not in METRICS]
        yield from compared_with(problem, theta, of_star, recorded.models)
        steps = {int(step) for entry in of_owners for step in entry.step}
        models, optimum = {step: theta[step][None] for step in steps}, {"optimum": problem.optimum[None]}
        again = Recomputed(self._owners, models, (), self._groups, optimum, {}, lambda: problem.minimum)
        yield from map(again.compared, of_owners)


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

    bound, rule = replay.claim_of(scenario, case, problem, public)
    numbers = rule.clip, rule.bound, rule.order, rule.grid

    def made() -> OwnerRule:
        return gradient_rule(problem if projects else replace(problem, theta_max=_ANYWHERE), *numbers)

    return bound, case.once("rule", (problem, projects, *numbers), made)


def _public_bound(case: PreparedData, problem: StarProblem, order: int) -> float:
    """Bound on the norm of a record's gradient on Θ, of order 1 or 2, from the public bounds on x and y.

    |∂ℓ/∂z|·B, with ‖x‖ ≤ B in that norm. The slope is at most 2(θ_max·B₁ + y_max) for the squared loss, B₁ the bound on
    ‖x‖₁; other losses have a bound at any score, 1 for hinge and logistic.

    Raises
    ------
    MeaningError
        If no bound on x is public, or none on y where the loss needs it.
    """
    B1, B = (replay.record_bound((case.x_l1, case.x_max), problem, norm) for norm in (1, order))
    if np.isfinite(problem.loss.slope_bound):
        return problem.loss.slope_bound * B
    if case.y_max is None:
        message = "bounds needs a public bound on y: give data.scale.y, or clip"
        raise MeaningError("privacy.sensitivity", message)
    slope = problem.loss.slope_bounds(np.array([B1]), np.array([case.y_max]), problem.theta_max)
    return float(slope[0] * B)
