"""The cell of an algorithm that trains one model, on a graph or with a central learner."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.core.events import NEIGHBOURS
from p2psim.core.randomness import Streams
from p2psim.data.classes import class_numbers
from p2psim.data.prepare import Prepared
from p2psim.learning.batches import GradientRule
from p2psim.learning.sgd.problem import SharedProblem, TrainingTask, minimiser
from p2psim.learning.sgd.protocol import OnGraph, TrainingAlgorithm
from p2psim.learning.sgd.replay import ModelsReplay
from p2psim.network.changes import ActiveLinks
from p2psim.network.graph import Graph
from p2psim.network.mixing import MomentWeights
from p2psim.network.section import Network
from p2psim.scenario.model import Scenario
from p2psim.simulation.algorithms import Facts, PrivacyOfAgents, replay
from p2psim.simulation.algorithms.agents import refuse_tests
from p2psim.simulation.algorithms.graph import GraphCell, ModelsCell, agent_arrays
from p2psim.simulation.algorithms.graph_setting import end_of
from p2psim.simulation.algorithms.learner_cell import LearnerCell
from p2psim.simulation.outcome import streams_of
from p2psim.simulation.prepared import PreparedData
from p2psim.simulation.recorder import Marks

_TABLES = ("X", "y", "offsets", "test_X", "test_y", "test_offsets")


@dataclass(frozen=True)
class TrainingCell(ModelsCell):
    """A cell of an algorithm that trains one model."""

    problem: SharedProblem
    rule: GradientRule

    @staticmethod
    def identify(scenario: Scenario) -> dict[str, Any]:
        """See `PreparedCell.identify`."""
        learning, model = scenario.learning, scenario.learning.trained_model
        known: dict[str, Any] = {"intercept": _intercept(scenario), "labels": model.labels}
        if _needs_minimum(scenario):
            loss = None if learning.loss is None else learning.loss.model_dump()
            known["minimum"] = model.model_dump(), loss, _l2(scenario), _algorithm(scenario).weighting
        return known

    @staticmethod
    def arrays(scenario: Scenario, prepared: Prepared) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
        """Records, records held out, what neighbours are found by, and the minimum where it is asked for."""
        labels, count = scenario.learning.trained_model.labels, prepared.class_count
        _refuse_labels(scenario, prepared)
        arrays = agent_arrays(prepared, _intercept(scenario))
        if labels == "classes":
            arrays |= {name: class_numbers(arrays[name], count) for name in ("y", "test_y")}
            # Numbers from 0 on do not show that they were ±1.
            arrays["classes"] = np.array(prepared.class_names)
        if _needs_minimum(scenario):
            problem = _problem(scenario, arrays, count)
            arrays["minimum"] = np.array(problem.value(minimiser(problem)))
        return arrays, ()

    @staticmethod
    def links_of(scenario: Scenario, case: PreparedData, replica: int) -> Graph:
        """See `PreparedCell.links_of`."""
        kind = LearnerCell if scenario.learning.algorithm.star_exchanges else GraphCell
        return kind.links_of(scenario, case, replica)

    @classmethod
    def cell(cls, scenario: Scenario, case: PreparedData, replica: int) -> Self:
        """See `PreparedCell.cell`."""
        algorithm, arrays = _algorithm(scenario), case.arrays
        links = cls.links_of(scenario, case, replica)
        problem = _problem(scenario, arrays, case.class_count)
        if not problem.test_y.size:
            refuse_tests(scenario)
        network = replay.network_of(scenario, case, links, problem.dimension)
        bound, rule = replay.claim_of(scenario, case, problem, _no_public_bound)
        time, commits, updates = _end(algorithm, network)
        # In rounds of a learner every owner answers each commit; elsewhere a commit is one agent's.
        in_rounds = links.star and network.exchange.in_rounds
        shares = np.ones(problem.agents) if in_rounds else network.known_rates / network.known_rates.sum()
        each = 1 if in_rounds else problem.agents
        queries = _queries(scenario, problem.records)
        horizon = max(1, round(updates * each)) * queries
        limit, p = replay.limit_of(scenario, case, problem.agents), problem.dimension
        plan = replay.plan_releases(scenario, limit, bound, problem.records, horizon, shares, dimension=p)
        setup = replay.replay_setup(scenario, case, network, plan, commits, time, p, queries=queries)
        return cls(scenario, case, problem, setup, bound, rule, links, replica)

    @property
    def lowest(self) -> Callable[[], float]:
        """See `ModelsCell.lowest`."""
        return lambda: float(self.case.arrays["minimum"])

    def _task(self, streams: Streams) -> TrainingTask:
        problem, rule = self.problem, self.rule
        start = problem.model.start(
            problem.features, problem.classes, streams_of(self.scenario, self.replica).generator("start")
        )
        private = self.setup.plan.mechanism.is_private
        batches, end = self.sampling(streams), self.setup.time
        return TrainingTask(problem, rule.clip, rule.order, rule.grid, private, batches, start, end)

    def model_replay(self, streams: Streams) -> ModelsReplay:
        """See `ModelsCell.model_replay`."""
        network = self.setup.network
        receivers = receivers_of(network, self.setup.time)
        return _algorithm(self.scenario).replay(self._task(streams), self.links, network.exchange, receivers)

    def recorded(
        self, streams: Streams, events: np.ndarray, noise: np.ndarray, marks: Marks
    ) -> list[np.ndarray]:
        """See `ModelsCell.recorded`; agents that mix models also do so where work begins, and step where they send."""
        algorithm = _algorithm(self.scenario)
        given = self._task(streams), self.links, self.setup.network.exchange, events, noise
        if isinstance(algorithm, OnGraph):
            return list(algorithm.reference(*given, marks.places.tolist()))
        steps = marks.steps.tolist()
        wanted, walked = set(steps), enumerate(algorithm.reference(*given))
        theta = {step: after for step, after in walked if step in wanted}
        return [theta[step] for step in steps]

    def facts(self, privacy: PrivacyOfAgents) -> Facts:
        """See `PreparedCell.facts`."""
        algorithm = _algorithm(self.scenario)
        if isinstance(algorithm, OnGraph):
            MomentWeights(self.links, algorithm.mixing, self.setup.time)  # refuses a graph that does not mix
        _, commits, updates = _end(algorithm, self.setup.network)
        each = 1 if self.links.star else self.problem.agents
        return self.facts_of(commits if commits is not None else updates * each, {})


def receivers_of(network: Network, end: float | None = None) -> Callable[[np.ndarray], np.ndarray]:
    """Gives to how many each of some events is sent, shape (events,); of all events in order, and of sends alone.

    Parameters
    ----------
    network : Network
    end : float, optional
        When the run ends, if at a time.
    """
    links = network.links
    if links.changes is not None:
        return ActiveLinks(links, end).receivers
    all_of = (
        np.full(links.agents, network.exchange.asked(links.agents)) if links.star else np.diff(links.indptr)
    )
    return lambda events: np.where(events["peer"] == NEIGHBOURS, all_of[events["agent"]], 1)


def _algorithm(scenario: Scenario) -> TrainingAlgorithm:
    algorithm: Any = scenario.learning.algorithm
    return algorithm


def _queries(scenario: Scenario, records: np.ndarray) -> int:
    """Gradients in a release, which the ledger counts; 1 where they differ, as they may without privacy."""
    steps = _algorithm(scenario).steps_of(records)
    least, most = int(steps.min()), int(steps.max())
    if least != most and scenario.privacy.mechanism.is_private:
        message = (
            f"owners of more records would take more steps, {least} to {most}; with noise all take as many, since the "
            "ledger charges each step: give local_steps"
        )
        raise MeaningError("learning.algorithm.local_epochs", message)
    return most if least == most else 1


def _intercept(scenario: Scenario) -> bool:
    loss = scenario.learning.loss
    return loss is not None and loss.intercept


def _l2(scenario: Scenario) -> float:
    """Weight of ‖θ‖² in f."""
    l2 = scenario.learning.regularizer.l2
    assert not isinstance(l2, str)  # refused by p2psim.scenario.rules
    return float(l2 + getattr(_algorithm(scenario), "weight_decay", 0.0) / 2)


def _needs_minimum(scenario: Scenario) -> bool:
    """Whether a metric asks for f*."""
    return "objective_gap" in scenario.record.metrics


def _problem(scenario: Scenario, arrays: Mapping[str, np.ndarray], classes: int) -> SharedProblem:
    algorithm, learning = _algorithm(scenario), scenario.learning
    tables = {name: np.asarray(arrays[name]) for name in _TABLES}
    records = np.diff(tables["offsets"]).astype(float)
    weights = records if algorithm.weighting == "records" else np.ones(records.size)
    return SharedProblem(
        learning.trained_model, classes=classes, l2=_l2(scenario), weights=weights / weights.sum(), **tables
    )


def _refuse_labels(scenario: Scenario, prepared: Prepared) -> None:
    """Raise a MeaningError if a model needs labels of another kind."""
    model, count = scenario.learning.trained_model, prepared.class_count
    if model.labels == "classes" and not count:
        raise MeaningError("learning.model", f"{model.kind} needs labels that are classes: give data.classes")
    if model.labels == "signs" and count != 2:
        message = f"needs labels of two classes, ±1; these are {f'{count} classes' if count else 'numbers'}"
        raise MeaningError("learning.loss", message)


def _no_public_bound(order: int) -> float:
    message = "bounds is not known of algorithms that train a model: clip, or declare a bound"
    raise MeaningError("privacy.sensitivity", message)


def _end(algorithm: Any, network: Network) -> tuple[float | None, int | None, float]:
    """Time and commits at which a run ends, and updates of an agent until then, or queries to an owner, on average."""
    agents, exchange = network.links.agents, network.exchange
    rates = network.known_rates
    if network.links.star:
        if algorithm.commits is not None:
            each = algorithm.commits if exchange.in_rounds else algorithm.commits / agents
            return None, algorithm.commits, float(each)
        assert algorithm.time is not None
        interval = getattr(exchange, "interval", None)
        return algorithm.time, None, algorithm.time / interval if interval else algorithm.time * rates.mean()
    if exchange.in_rounds:
        if algorithm.time is not None:
            return algorithm.time, None, algorithm.time / (exchange.round_length or 1.0)
        per_agent = getattr(algorithm, "updates_per_agent", None)
        commits = algorithm.commits if per_agent is None else max(1, round(per_agent * agents))
        assert commits is not None
        return None, commits, commits / agents
    time, updates = end_of(algorithm, rates, agents)
    return time, algorithm.commits, updates
