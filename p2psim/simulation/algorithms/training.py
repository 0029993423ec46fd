"""The cell of an algorithm that trains one model, on a graph or with a central learner."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.core.events import NEIGHBOURS, SEND
from p2psim.core.randomness import Streams
from p2psim.data.classes import class_numbers
from p2psim.data.prepare import Prepared
from p2psim.learning.batches import GradientRule
from p2psim.learning.graph.metrics import GRAPH_FACTS
from p2psim.learning.sgd.problem import SharedProblem, TrainingTask, minimiser
from p2psim.learning.sgd.protocol import TrainingAlgorithm
from p2psim.network.changes import ActiveLinks, comes_back
from p2psim.network.graph import Graph
from p2psim.network.section import Network
from p2psim.network.spectrum import spectral_facts
from p2psim.scenario.model import Scenario
from p2psim.scenario.notices import Compared
from p2psim.simulation.algorithms.agents import (
    graph_centralities,
    graph_facts,
    heard_by,
    held_out,
    kinds_of,
    names_of,
    star_centralities,
    with_intercept,
)
from p2psim.simulation.algorithms.cell import PreparedCell, Privacy
from p2psim.simulation.algorithms.graph import GraphCell
from p2psim.simulation.algorithms.graph_setting import end_of, refuse_tests
from p2psim.simulation.algorithms.learner_cell import LearnerCell
from p2psim.simulation.algorithms.replay import (
    RecordedReplica,
    claim_of,
    limit_of,
    network_of,
    plan_releases,
    replay_setup,
)
from p2psim.simulation.check import Recomputed, compare
from p2psim.simulation.observer import RecordedGraphReplay
from p2psim.simulation.outcome import streams_of
from p2psim.simulation.prepared import PreparedData

_TABLES = ("X", "y", "offsets", "test_X", "test_y", "test_offsets")


@dataclass(frozen=True)
class TrainingCell(PreparedCell):
    """A cell of an algorithm that trains one model.

    Attributes
    ----------
    links : Graph
    replica : int
    """

    problem: SharedProblem
    rule: GradientRule
    links: Graph
    replica: int

    @staticmethod
    def identify(scenario: Scenario) -> dict[str, Any]:
        """See `PreparedCell.identify`."""
        learning, model = scenario.learning, scenario.learning.trained_model
        known: dict[str, Any] = {"intercept": _intercept(scenario), "labels": model.labels}
        if _needs_minimum(scenario):
            loss = None if learning.loss is None else learning.loss.model_dump()
            weighting = _algorithm(scenario).weighting
            known["minimum"] = model.model_dump(), loss, _l2(scenario), weighting
        return known

    @staticmethod
    def arrays(scenario: Scenario, prepared: Prepared) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
        """Records, records held out, what neighbours are found by, and the minimum where it is asked for."""
        labels, count = scenario.learning.trained_model.labels, prepared.class_count
        _refuse_labels(scenario, prepared)
        intercept = _intercept(scenario)
        arrays = {
            "X": with_intercept(prepared.X, intercept),
            "y": prepared.y,
            "offsets": prepared.offsets,
            **held_out(prepared, intercept),
            "data_dependent": np.array(bool(prepared.data_dependent)),
            **names_of(prepared),
        }
        if labels == "classes":
            arrays |= {name: class_numbers(arrays[name], count) for name in ("y", "test_y")}
        arrays |= GraphCell.neighbour_arrays(prepared)
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
        network = network_of(scenario, arrays, links, problem.dimension)
        assert network.rates is not None
        bound, rule = claim_of(scenario, problem, _no_public_bound)
        time, commits, updates = _end(algorithm, network)
        plan = plan_releases(
            scenario,
            limit_of(scenario, case, problem.agents),
            bound,
            problem.records,
            max(1, round(updates * problem.agents)) * algorithm.queries,
            np.ones(problem.agents)
            if links.star and network.exchange.in_rounds
            else network.rates / network.rates.sum(),
            dimension=problem.dimension,
        )
        setup = replay_setup(
            scenario, network, plan, commits, time, problem.dimension, queries=algorithm.queries
        )
        return cls(scenario, case, problem, setup, bound, rule, links, replica)

    @property
    def _kinds(self) -> tuple[str, ...] | None:
        return kinds_of(self.scenario.record.by, self.case.groups, self.links)

    def _minimum(self) -> float:
        return float(self.case.arrays["minimum"])

    def _task(self, streams: Streams) -> TrainingTask:
        problem, rule = self.problem, self.rule
        start = problem.model.start(
            problem.features, problem.classes, streams_of(self.scenario, self.replica).generator("start")
        )
        private = self.setup.plan.mechanism.is_private
        batches, end = self.sampling(streams), self.setup.time
        return TrainingTask(problem, rule.clip, rule.order, rule.grid, private, batches, start, end)

    def replay(self, streams: Streams) -> RecordedGraphReplay:
        """See `PreparedCell.replay`."""
        task, network = self._task(streams), self.setup.network
        receivers = receivers_of(network, self.setup.time)
        replay = _algorithm(self.scenario).replay(task, self.links, network.exchange, receivers)
        return RecordedGraphReplay(
            replay,
            self.scenario.record,
            self.problem,
            self._kinds,
            {},
            lambda: graph_facts(self.links, self.scenario.record.metrics),
            self._minimum,
        )

    def verify(self, recorded: RecordedReplica) -> Iterator[Compared]:
        """See `PreparedCell.verify`, and `p2psim.simulation.check.compare`."""
        streams, events, noise, marks, series, models = recorded
        task, record = self._task(streams), self.scenario.record
        path = _algorithm(self.scenario).reference(
            task, self.links, self.setup.network.exchange, events, noise
        )
        steps = tuple(marks.steps.tolist())
        carries_model = (events["kind"] == SEND) & (events["version"] >= 0)
        sent = tuple(np.concatenate([[0], np.cumsum(carries_model)])[marks.places].tolist())
        wanted = set(steps)
        theta = {step: after for step, after in enumerate(path) if step in wanted}
        facts = graph_facts(self.links, record.metrics) if GRAPH_FACTS.keys() & record.metrics else {}
        again = Recomputed(self.problem, theta, steps, sent, self._kinds, {}, facts, self._minimum)
        yield from compare(again, series, models)

    @property
    def centralities(self) -> dict[str, np.ndarray]:
        """See `PreparedCell.centralities`."""
        return star_centralities(self.problem.agents) if self.links.star else graph_centralities(self.links)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """See `PreparedCell.warnings`: no fact has any."""
        return tuple(self.privacy_warnings())

    def facts(self, privacy: tuple[Privacy, ...]) -> tuple[dict[str, object], int, list[str]]:
        """See `PreparedCell.facts`."""
        problem, setup = self.problem, self.setup
        _, commits, updates = _end(_algorithm(self.scenario), setup.network)
        expected = commits if commits is not None else updates * (1 if self.links.star else problem.agents)
        facts: dict[str, object] = {
            "owners" if self.links.star else "agents": problem.agents,
            "records": int(problem.records.sum()),
            "p": problem.dimension,
            "updates": int(expected),
            "Ξ": self.bound,
            **(spectral_facts(self.links) if comes_back(self.links) and not self.links.star else {}),
        }
        return facts, int(expected * (3 + heard_by(self.scenario, self.links))), []


def receivers_of(network: Network, end: float | None = None) -> Callable[[np.ndarray], np.ndarray]:
    """Gives to how many each of some events is sent, shape (events,); of all events in order, and of sends alone.

    Parameters
    ----------
    network : Network
    end : float, optional
        When the run ends, if at a time.
    """
    links, asked = network.links, getattr(network.exchange, "participants", None)
    if links.changes is not None:
        return ActiveLinks(links, end).receivers
    all_of = np.full(links.agents, asked or links.agents) if links.star else np.diff(links.indptr)
    return lambda events: np.where(events["peer"] == NEIGHBOURS, all_of[events["agent"]], 1)


def _algorithm(scenario: Scenario) -> TrainingAlgorithm:
    algorithm: Any = scenario.learning.algorithm
    return algorithm


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
        raise MeaningError(
            "learning.loss",
            f"needs labels of two classes, ±1; these are {f'{count} classes' if count else 'numbers'}",
        )


def _no_public_bound(order: int) -> float:
    raise MeaningError(
        "privacy.sensitivity",
        "bounds is not known of algorithms that train a model: clip, or declare a bound",
    )


def _end(algorithm: Any, network: Network) -> tuple[float | None, int | None, float]:
    """Time and commits at which a run ends, and updates of an agent until then, or queries to an owner, on average."""
    agents, exchange = network.links.agents, network.exchange
    rates = network.rates if network.rates is not None else np.ones(agents)
    if network.links.star:
        if algorithm.commits is not None:
            each = algorithm.commits if exchange.in_rounds else algorithm.commits / agents
            return None, algorithm.commits, float(each)
        assert algorithm.time is not None
        interval = getattr(exchange, "interval", None)
        return algorithm.time, None, algorithm.time / interval if interval else algorithm.time * rates.mean()
    if exchange.in_rounds:
        if algorithm.time is not None:
            return algorithm.time, None, algorithm.time / getattr(exchange, "interval", 1.0)
        per_agent = getattr(algorithm, "updates_per_agent", None)
        commits = algorithm.commits if per_agent is None else max(1, round(per_agent * agents))
        assert commits is not None
        return None, commits, commits / agents
    time, updates = end_of(algorithm, rates, agents)
    return time, algorithm.commits, updates
