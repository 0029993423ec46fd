"""The cell of an algorithm on a graph: its preparation, replay and verification, and its facts before a run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from p2psim.core.events import SEND
from p2psim.core.randomness import Streams
from p2psim.data.prepare import Prepared
from p2psim.learning.graph.metrics import GRAPH_FACTS, GRAPH_METRICS
from p2psim.learning.graph.problem import GraphProblem, GraphRule, GraphTask
from p2psim.network.changes import comes_back
from p2psim.network.graph import Graph, TopologyInputs
from p2psim.network.spectrum import spectral_facts
from p2psim.network.topologies import Topology, draw_links
from p2psim.privacy.ledger import Caveats
from p2psim.privacy.releases import Violations
from p2psim.scenario.model import Scenario
from p2psim.scenario.notices import Compared
from p2psim.simulation.algorithms.agents import (
    graph_centralities,
    graph_facts,
    heard_by,
    held_out,
    kinds_of,
    names_of,
    with_intercept,
)
from p2psim.simulation.algorithms.cell import PreparedCell, Privacy
from p2psim.simulation.algorithms.graph_setting import algorithm_of, end_of, problem_of, refuse_tests, rule_of
from p2psim.simulation.algorithms.graph_start import First, baseline_models, check_baselines, first_models
from p2psim.simulation.algorithms.replay import (
    RecordedReplica,
    limit_of,
    network_of,
    plan_releases,
    refuse_labels,
    replay_setup,
)
from p2psim.simulation.check import Recomputed, compare
from p2psim.simulation.observer import RecordedGraphReplay
from p2psim.simulation.outcome import streams_of
from p2psim.simulation.prepared import PreparedData


@dataclass(frozen=True)
class GraphCell(PreparedCell):
    """A graph's cell.

    Attributes
    ----------
    links : Graph
    first : First
        Where the models start.
    replica : int
        The one whose graph and data these are, where they differ between replicas.
    public_smoothness : bool
        Whether the step sizes follow from public bounds.
    """

    problem: GraphProblem
    rule: GraphRule
    links: Graph
    first: First
    replica: int
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
        refuse_labels(loss, prepared)
        tables = {
            "X": with_intercept(prepared.X, loss.intercept),
            "y": prepared.y,
            "offsets": prepared.offsets,
            **held_out(prepared, loss.intercept),
            "bounds": np.array([prepared.x_l1, prepared.x_max, prepared.y_max], dtype=float),
            "data_dependent": np.array(bool(prepared.data_dependent)),
            **names_of(prepared),
        }
        return tables | GraphCell.neighbour_arrays(prepared), ()

    @staticmethod
    def neighbour_arrays(prepared: Prepared) -> dict[str, np.ndarray]:
        """Arrays of a case that topologies find neighbours by."""
        tables = {} if prepared.targets is None else {"targets": prepared.targets}
        if prepared.profiles is not None:
            rows = prepared.profiles
            tables |= {f"profiles_{name}": getattr(rows, name) for name in ("data", "indices", "indptr")}
            tables["profiles_shape"] = np.array(rows.shape)
        return tables

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
        problem, public = problem_of(scenario, case.arrays, links)
        algorithm = algorithm_of(scenario)
        if not problem.test_y.size:
            refuse_tests(scenario)
        check_baselines(scenario, case)
        network = network_of(scenario, case.arrays, links, problem.dimension)
        rates = network.rates
        assert rates is not None
        bound, rule = rule_of(scenario, case, problem)
        first = first_models(scenario, case, problem, bound, rule, replica)
        time, updates = end_of(algorithm, rates, problem.agents)
        limit = limit_of(scenario, case, problem.agents)
        plan = plan_releases(
            scenario,
            replace(limit, start=first.loss, start_real=first.loss_real, start_noise=first.noise),
            bound,
            problem.records,
            max(1, round(updates * problem.agents)),
            rates / rates.sum(),
            never=not algorithm.touches_data,
            contraction=problem.contraction,
            dimension=problem.dimension,
        )
        setup = replay_setup(scenario, network, plan, algorithm.commits, time, problem.dimension)
        return cls(scenario, case, problem, setup, bound, rule, links, first, replica, public)

    def replay(self, streams: Streams) -> RecordedGraphReplay:
        """See `PreparedCell.replay`."""
        record, problem = self.scenario.record, self.problem
        named = GRAPH_METRICS.keys() & {*record.metrics, *record.per_agent}
        track = any(GRAPH_METRICS[name].needs_objective for name in named)
        replay = algorithm_of(self.scenario).replay(self._task(streams), track)
        return RecordedGraphReplay(
            replay,
            record,
            problem,
            self._kinds,
            self._baselines,
            lambda: graph_facts(self.links, record.metrics),
        )

    def _task(self, streams: Streams) -> GraphTask:
        return GraphTask(
            self.problem, self.rule, self.first.models, self.first.anchor, self.sampling(streams)
        )

    @property
    def _kinds(self) -> tuple[str, ...] | None:
        return kinds_of(self.scenario.record.by, self.case.groups, self.links)

    @property
    def _baselines(self) -> dict[str, np.ndarray]:
        return baseline_models(self.scenario, self.case, self.problem, self.setup.plan.budget, self.replica)

    def verify(self, recorded: RecordedReplica) -> Iterator[Compared]:
        """See `PreparedCell.verify`, and `p2psim.simulation.check.compare`."""
        streams, events, noise, marks, series, models = recorded
        problem, record = self.problem, self.scenario.record
        algorithm = algorithm_of(self.scenario)
        path = algorithm.reference(self._task(streams), events, noise)
        steps = tuple(marks.steps.tolist())
        carries_model = (events["kind"] == SEND) & (events["version"] >= 0)
        counts = np.concatenate([[0], np.cumsum(carries_model)]) * algorithm.vectors
        sent = tuple(counts[marks.places].tolist())
        wanted = set(steps)
        theta = {step: after for step, after in enumerate(path) if step in wanted}
        facts = graph_facts(self.links, record.metrics) if GRAPH_FACTS.keys() & record.metrics else {}
        again = Recomputed(problem, theta, steps, sent, self._kinds, self._baselines, facts)
        yield from compare(again, series, models)

    @property
    def has_data_dependent_step(self) -> bool:
        """See `PreparedCell.has_data_dependent_step`."""
        return not self.public_smoothness

    def caveats(self, violations: Violations) -> Caveats:
        """See `PreparedCell.caveats`."""
        assumed = bool(self.case.arrays["data_dependent"]) or self.scenario.network.topology.reads_data
        caveats = super().caveats(violations.after_start(self.first.exceeded))
        return replace(caveats, public_graph_assumed=assumed)

    @property
    def centralities(self) -> dict[str, np.ndarray]:
        """See `PreparedCell.centralities`."""
        return graph_centralities(self.links)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """See `PreparedCell.warnings`: no fact has any."""
        return tuple(self.privacy_warnings())

    def facts(self, privacy: tuple[Privacy, ...]) -> tuple[dict[str, object], int, list[str]]:
        """See `PreparedCell.facts`."""
        problem, setup = self.problem, self.setup
        assert setup.network.rates is not None
        ticks = (setup.time or 0.0) * setup.network.rates.sum()
        expected = setup.commits if setup.commits is not None else ticks
        facts: dict[str, object] = {
            "agents": problem.agents,
            "records": int(problem.records.sum()),
            "p": problem.dimension,
            "updates": int(expected),
            "μ": problem.mu,
            "C": problem.contraction,
            "Ξ": self.bound,
            **(spectral_facts(self.links) if comes_back(self.links) else {}),
        }
        return facts, int(expected * (3 + heard_by(self.scenario, self.links))), []
