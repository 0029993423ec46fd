"""Cells of agents with models: how they are recorded and verified; and the cell of an algorithm on a graph."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from p2psim.core.events import SEND
from p2psim.core.randomness import Streams
from p2psim.data.prepare import Prepared
from p2psim.learning.graph.metrics import GRAPH_FACTS, GRAPH_METRICS
from p2psim.learning.graph.models import ModelReplay
from p2psim.learning.graph.problem import GraphProblem, GraphRule, GraphTask
from p2psim.learning.sgd.replay import ModelsReplay
from p2psim.network.changes import comes_back
from p2psim.network.graph import Graph, TopologyInputs
from p2psim.network.spectrum import spectral_facts
from p2psim.network.topologies import Topology, draw_links
from p2psim.privacy.ledger import Caveats
from p2psim.privacy.releases import Violations
from p2psim.scenario.model import Scenario
from p2psim.scenario.notices import Compared
from p2psim.simulation.algorithms import Facts, PreparedCell, PrivacyOfAgents, agents, graph_setting, replay
from p2psim.simulation.algorithms.graph_setting import First
from p2psim.simulation.algorithms.replay import RecordedReplica
from p2psim.simulation.check import Recomputed, compare
from p2psim.simulation.observer import RecordedGraphReplay
from p2psim.simulation.outcome import streams_of
from p2psim.simulation.prepared import PreparedData
from p2psim.simulation.recorder import Marks


def agent_arrays(prepared: Prepared, intercept: bool) -> dict[str, np.ndarray]:
    """Records, held-out records, names, and what neighbours are found by, as arrays of a case."""
    tables = {"X": agents.with_intercept(prepared.X, intercept), "y": prepared.y, "offsets": prepared.offsets}
    tables |= agents.held_out(prepared, intercept)
    tables |= {"data_dependent": np.array(bool(prepared.data_dependent)), **agents.names_of(prepared)}
    if prepared.targets is not None:
        tables["targets"] = prepared.targets
    if prepared.profiles is not None:
        rows = prepared.profiles
        tables |= {f"profiles_{name}": getattr(rows, name) for name in ("data", "indices", "indptr")}
        tables["profiles_shape"] = np.array(rows.shape)
    return tables


@dataclass(frozen=True)
class ModelsCell(PreparedCell):
    """A cell whose models are recorded after commits: those of all agents, or a learner's.

    Attributes
    ----------
    links : Graph
    replica : int
        The one whose graph and data these are, where they differ between replicas.
    """

    links: Graph
    replica: int

    @abstractmethod
    def model_replay(self, streams: Streams) -> ModelReplay | ModelsReplay:
        """Begin a replay of the models."""

    @property
    def vectors(self) -> int:
        """Vectors of length p in a message that carries a model, as ``vectors_sent`` counts them."""
        return 1

    @property
    def lowest(self) -> Callable[[], float] | None:
        """Gives the minimum of the objective; Q_L* where it is None."""
        return None

    @property
    def baselines(self) -> dict[str, np.ndarray]:
        """Models of baselines, by name, shape (n, p) each."""
        return {}

    @property
    def kinds(self) -> tuple[str, ...] | None:
        """What kind of agent each is, for means over those of a kind."""
        return agents.kinds_of(self.scenario, self.case.groups, self.links)

    @property
    def centralities(self) -> dict[str, np.ndarray]:
        """See `PreparedCell.centralities`."""
        links, n = self.links, self.problem.agents
        of_paths = self.scenario.record.has_centralities
        if links.star:
            return agents.star_centralities(n, of_paths)
        return agents.graph_centralities(links, of_paths)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """See `PreparedCell.warnings`: no fact has any."""
        return tuple(self.privacy_warnings())

    def replay(self, streams: Streams) -> RecordedGraphReplay:
        """See `PreparedCell.replay`."""
        record = self.scenario.record
        facts = partial(agents.graph_facts, self.links, record.metrics)
        models = self.model_replay(streams), record, self.problem
        return RecordedGraphReplay(*models, self.kinds, self.baselines, facts, self.lowest)

    def verify(self, recorded: RecordedReplica) -> Iterator[Compared]:
        """See `PreparedCell.verify`, and `p2psim.simulation.check.compare`."""
        streams, events, noise, marks, series, models = recorded
        record = self.scenario.record
        carries_model = (events["kind"] == SEND) & (events["version"] >= 0)
        counts = np.concatenate([[0], np.cumsum(carries_model)]) * self.vectors
        sent, theta = tuple(counts[marks.places].tolist()), self.recorded(streams, events, noise, marks)
        facts = agents.graph_facts(self.links, record.metrics) if GRAPH_FACTS.keys() & record.metrics else {}
        again = Recomputed(self.problem, theta, sent, self.kinds, self.baselines, facts, self.lowest)
        yield from compare(again, series, models)

    @abstractmethod
    def recorded(
        self, streams: Streams, events: np.ndarray, noise: np.ndarray, marks: Marks
    ) -> list[np.ndarray]:
        """The reference's models wherever something was recorded."""

    def facts_of(self, expected: float, parameters: dict[str, object]) -> Facts:
        """See `PreparedCell.facts`; the commits that are expected, and numbers of the algorithm."""
        problem, links = self.problem, self.links
        facts: dict[str, object] = {
            "owners" if links.star else "agents": problem.agents,
            "records": int(problem.records.sum()),
            "p": problem.dimension,
            "updates": int(expected),
            **parameters,
            "Ξ": self.bound,
            **(spectral_facts(links) if comes_back(links) and not links.star else {}),
        }
        if links.star:
            each: float = agents.events_of_commit(self.scenario.network.exchange, problem.agents)
        else:
            each = 3 + agents.heard_by(self.scenario, links)
        return facts, int(expected * each), []


@dataclass(frozen=True)
class GraphCell(ModelsCell):
    """A graph's cell.

    Attributes
    ----------
    first : First
        Where the models start.
    public_smoothness : bool
        Whether the step sizes follow from public bounds.
    """

    problem: GraphProblem
    rule: GraphRule
    first: First
    public_smoothness: bool

    @staticmethod
    def identify(scenario: Scenario) -> dict[str, Any]:
        """See `PreparedCell.identify`."""
        loss = scenario.learning.score_loss
        return {"intercept": loss.intercept, "classes": loss.needs_classes}

    @staticmethod
    def arrays(scenario: Scenario, prepared: Prepared) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
        """Records, held-out records, public bounds, and what neighbours are found by."""
        loss = scenario.learning.score_loss
        replay.refuse_labels(loss, prepared)
        bounds = np.array([prepared.x_l1, prepared.x_max, prepared.y_max], dtype=float)
        return agent_arrays(prepared, loss.intercept) | {"bounds": bounds}, ()

    @staticmethod
    def links_of(scenario: Scenario, case: PreparedData, replica: int) -> Graph:
        """See `PreparedCell.links_of`."""
        topology, streams = scenario.network.topology, streams_of(scenario, replica)
        variant = streams.variants.get("topology", "")
        drawn_by = topology, streams.seed, replica if topology.is_random else None, variant
        return case.graphs.get(drawn_by, lambda: GraphCell._draw(*drawn_by, case.arrays))

    @staticmethod
    def _draw(
        topology: Topology, seed: int, replica: int | None, variant: str, arrays: Mapping[str, np.ndarray]
    ) -> Graph:
        profiles = None
        if "profiles_data" in arrays:
            from scipy.sparse import csr_array

            parts = arrays["profiles_data"], arrays["profiles_indices"], arrays["profiles_indptr"]
            profiles = csr_array(parts, shape=tuple(arrays["profiles_shape"]))
        labels = arrays["labels"].tolist() if "labels" in arrays else None
        inputs = TopologyInputs(arrays["offsets"].size - 1, profiles, arrays.get("targets"), labels)
        return draw_links(topology, inputs, seed=seed, replica=replica, variant=variant)

    @classmethod
    def cell(cls, scenario: Scenario, case: PreparedData, replica: int) -> Self:
        """See `PreparedCell.cell`."""
        links = cls.links_of(scenario, case, replica)
        problem, public = graph_setting.problem_of(scenario, case.arrays, links)
        algorithm = graph_setting.algorithm_of(scenario)
        if not problem.test_y.size:
            agents.refuse_tests(scenario)
        if not case.class_count:
            graph_setting.refuse_accuracies(scenario)
        graph_setting.check_baselines(scenario, case)
        network = replay.network_of(scenario, case, links, problem.dimension)
        rates = network.known_rates
        bound, rule = graph_setting.rule_of(scenario, case, problem)
        first = graph_setting.first_models(scenario, case, problem, bound, rule, replica)
        time, updates = graph_setting.end_of(algorithm, rates, problem.agents)
        limit = replay.limit_of(scenario, case, problem.agents)
        limit = replace(limit, start=first.loss, start_real=first.loss_real, start_noise=first.noise)
        horizon, p = max(1, round(updates * problem.agents)), problem.dimension
        more = {"never": not algorithm.touches_data, "contraction": problem.contraction, "dimension": p}
        shares = rates / rates.sum()
        plan = replay.plan_releases(scenario, limit, bound, problem.records, horizon, shares, **more)
        setup = replay.replay_setup(scenario, case, network, plan, algorithm.commits, time, p)
        return cls(scenario, case, problem, setup, bound, rule, links, replica, first, public)

    def _task(self, streams: Streams) -> GraphTask:
        first = self.first
        return GraphTask(self.problem, self.rule, first.models, first.anchor, self.sampling(streams))

    def model_replay(self, streams: Streams) -> ModelReplay:
        """See `ModelsCell.model_replay`."""
        record = self.scenario.record
        named = GRAPH_METRICS.keys() & {*record.metrics, *record.per_agent}
        track = any(GRAPH_METRICS[name].needs_objective for name in named)
        return graph_setting.algorithm_of(self.scenario).replay(self._task(streams), track)

    def recorded(
        self, streams: Streams, events: np.ndarray, noise: np.ndarray, marks: Marks
    ) -> list[np.ndarray]:
        """See `ModelsCell.recorded`; models also change when agents come back, and links' ends when they send."""
        places, algorithm = marks.places.tolist(), graph_setting.algorithm_of(self.scenario)
        return list(algorithm.reference(self._task(streams), events, noise, places))

    @property
    def vectors(self) -> int:
        """See `ModelsCell.vectors`."""
        return self.setup.network.vectors

    @property
    def baselines(self) -> dict[str, np.ndarray]:
        """See `ModelsCell.baselines`."""
        budget = self.setup.plan.budget
        return graph_setting.baseline_models(self.scenario, self.case, self.problem, budget, self.replica)

    @property
    def has_data_dependent_step(self) -> bool:
        """See `PreparedCell.has_data_dependent_step`."""
        return not self.public_smoothness

    def caveats(self, violations: Violations) -> Caveats:
        """See `PreparedCell.caveats`."""
        assumed = bool(self.case.arrays["data_dependent"]) or self.scenario.network.topology.reads_data
        caveats = super().caveats(violations.after_start(self.first.exceeded))
        return replace(caveats, public_graph_assumed=assumed)

    def facts(self, privacy: PrivacyOfAgents) -> Facts:
        """See `PreparedCell.facts`."""
        problem, setup = self.problem, self.setup
        ticks = (setup.time or 0.0) * setup.network.known_rates.sum()
        expected = setup.commits if setup.commits is not None else ticks
        return self.facts_of(expected, {"μ": problem.mu, "C": problem.contraction})
