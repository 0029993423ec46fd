"""The cell of an algorithm on a graph: its preparation, replay and verification, and its facts before a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from p2psim.core.events import EVENT, SEND
from p2psim.core.options import per_agent
from p2psim.core.randomness import Streams
from p2psim.learning.batches import Sampling, batch_of, sampling
from p2psim.learning.graph.metrics import GRAPH_FACTS, GRAPH_METRICS
from p2psim.learning.graph.problem import GraphProblem, GraphRule
from p2psim.network.graph import Graph
from p2psim.network.section import Clock, Network
from p2psim.network.spectrum import spectral_facts
from p2psim.privacy.ledger import Caveats
from p2psim.privacy.planning import plan
from p2psim.privacy.releases import Violations
from p2psim.scenario.notices import Compared
from p2psim.simulation.algorithms.agents import agents_table, graph_centralities, members_of
from p2psim.simulation.algorithms.graph_setting import (
    algorithm_of,
    arrays,
    end_of,
    identify,
    links_of,
    problem_of,
    refuse_tests,
    rule_of,
)
from p2psim.simulation.algorithms.graph_start import baseline_models, check_baselines, first_models
from p2psim.simulation.algorithms.replay import (
    Assessment,
    Replay,
    ReplaySetup,
    check_availability,
    delta_warning,
    goes_on,
    limit_of,
    privacy_of,
    replay_setup,
)
from p2psim.simulation.check import Recomputed, compare
from p2psim.simulation.observer import RecordedGraphReplay
from p2psim.simulation.recorder import Marks

if TYPE_CHECKING:
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.outcome import Series
    from p2psim.simulation.prepared import PreparedData

__all__ = ["GraphCell", "arrays", "assess", "cell", "identify", "links_of"]


@dataclass(frozen=True)
class GraphCell:
    """A graph's cell; see `p2psim.simulation.algorithms.replay.PreparedCell`.

    Attributes
    ----------
    scenario : Scenario
    case : PreparedData
    replica : int
        The one whose graph and data these are, where they differ between replicas.
    problem : GraphProblem
    links : Graph
    setup : ReplaySetup
    rule : GraphRule
    start, anchor : ndarray, shape (n, p)
    bound : float
        Ξ, the bound on the norm of one record's gradient; 0 where nothing is claimed.
    exceeded : ndarray, shape (n,)
        Longest gradient of a record at the local minimiser over the bound that the start claims; 0 where within.
    public_smoothness : bool
        Whether the step sizes follow from public bounds.
    """

    scenario: Scenario
    case: PreparedData
    replica: int
    problem: GraphProblem
    links: Graph
    setup: ReplaySetup
    rule: GraphRule
    start: np.ndarray
    anchor: np.ndarray
    bound: float
    exceeded: np.ndarray
    public_smoothness: bool

    def replay(self, streams: Streams) -> Replay:
        """Begin a replica."""
        record, problem = self.scenario.record, self.problem
        named = GRAPH_METRICS.keys() & {*record.metrics, *record.per_agent}
        track = any(GRAPH_METRICS[name].needs_objective for name in named)
        replay = algorithm_of(self.scenario).replay(
            problem, self.rule, self.start, self.anchor, track, self._sampling(streams)
        )
        return RecordedGraphReplay(
            replay, record, problem, self.case.groups, self._baselines, lambda: spectral_facts(self.links)
        )

    def _sampling(self, streams: Streams) -> Sampling | None:
        batch = batch_of(self.scenario.learning.algorithm)
        return sampling(batch, self.problem.records, streams.key("batches"))

    @property
    def _baselines(self) -> dict[str, np.ndarray]:
        return baseline_models(self.scenario, self.case, self.problem, self.setup.plan.budget, self.replica)

    def verify(
        self,
        streams: Streams,
        events: np.ndarray,
        noise: np.ndarray,
        marks: Marks,
        series: tuple[Series, ...],
        models: np.ndarray | None,
    ) -> Iterator[Compared]:
        """Compare a recorded replica with the reference; see `p2psim.simulation.check.compare`."""
        problem, record = self.problem, self.scenario.record
        algorithm = algorithm_of(self.scenario)
        path = algorithm.reference(
            problem, self.rule, self.start, events, noise, self.anchor, self._sampling(streams)
        )
        steps = tuple(marks.steps.tolist())
        carries_model = (events["kind"] == SEND) & (events["version"] >= 0)
        counts = np.concatenate([[0], np.cumsum(carries_model)]) * algorithm.vectors
        sent = tuple(counts[marks.places].tolist())
        recorded = set(steps)
        theta = {step: models for step, models in enumerate(path) if step in recorded}
        facts = spectral_facts(self.links) if GRAPH_FACTS.keys() & record.metrics else {}
        again = Recomputed(problem, theta, steps, sent, self.case.groups, self._baselines, facts)
        yield from compare(again, series, models)

    def caveats(self, violations: Violations) -> Caveats:
        """Return what limits the guarantee."""
        sensitivity, topology = self.scenario.privacy.sensitivity, self.scenario.network.topology
        return Caveats(
            violations.after_start(self.exceeded),
            void=sensitivity is not None and not sensitivity.holds,
            data_dependent_step=not self.public_smoothness,
            public_graph_assumed=bool(self.case.arrays["data_dependent"])
            or topology.kind in ("knn", "similarity"),
        )

    def agents(self) -> dict[str, np.ndarray]:
        """Columns of the table of agents."""
        centralities = graph_centralities(self.links)
        return agents_table(self.case, self.problem.records, centralities, self.setup.plan.budget)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know of a run."""
        return tuple(delta_warning(self.scenario.privacy.delta, self.problem.records))

    def assess(self) -> Assessment:
        """Say what can be said before the run."""
        return assess(self)


def cell(scenario: Scenario, case: PreparedData, replica: int) -> GraphCell:
    """Turn a scenario (without a sweep) and its case into numbers.

    Raises
    ------
    MeaningError
        If something that depends on the data means nothing.
    """
    links = links_of(scenario, case.arrays, replica)
    problem, public = problem_of(scenario, case.arrays, links)
    algorithm, privacy = algorithm_of(scenario), scenario.privacy
    if not problem.test_y.size:
        refuse_tests(scenario)
    check_baselines(scenario, case)
    n, batch = problem.agents, batch_of(algorithm)
    clock = scenario.network.clock or Clock()
    rates = per_agent(clock.rate, case.labels, case.groups, key="network.clock.rate")
    bound, rule = rule_of(scenario, case, problem)
    first = first_models(scenario, algorithm.start, problem, bound, rule, replica)
    time, updates = end_of(algorithm, rates, n)
    plans = plan(
        privacy.mechanism,
        privacy.allocation,
        replace(limit_of(scenario, case, n), start=first.loss, start_real=first.loss_real),
        bound,
        batch.divisors(problem.records),
        max(1, round(updates * n)),
        rates / rates.sum(),
        privacy.scale_records,
        never=not algorithm.touches_data,
        contraction=problem.contraction,
        rates=batch.rates(problem.records),
        dimension=problem.dimension,
    )
    network = Network(
        links,
        scenario.network.exchange,
        scenario.network.channel,
        scenario.network.availability,
        rates,
        goes_on=goes_on(scenario),
        updates=algorithm.updates,
        members=members_of(case.arrays),
        vectors=algorithm.vectors,
    )
    check_availability(network)
    return GraphCell(
        scenario,
        case,
        replica,
        problem,
        links,
        replay_setup(scenario, network, plans, algorithm.commits, time, problem.dimension),
        rule,
        first.models,
        first.anchor,
        bound,
        first.exceeded,
        public,
    )


def assess(cell: GraphCell) -> Assessment:
    """Draw up the facts of one cell."""
    problem, setup = cell.problem, cell.setup
    expected = setup.commits if setup.commits is not None else (setup.time or 0.0) * setup.network.rates.sum()  # type: ignore[union-attr]
    hears = problem.indices.size / problem.agents if cell.scenario.network.exchange.sends_to_all else 1
    events = int(expected * (3 + hears))
    facts: dict[str, object] = {
        "agents": problem.agents,
        "records": int(problem.records.sum()),
        "p": problem.dimension,
        "updates": int(expected),
        "μ": problem.mu,
        "C": problem.contraction,
        "Ξ": cell.bound,
        **spectral_facts(cell.links),
    }
    return Assessment(
        facts=facts,
        records=tuple(problem.records.tolist()),
        events=events,
        bytes_of_events=events * EVENT.itemsize,
        bytes_of_data=problem.X.nbytes + problem.y.nbytes + problem.test_X.nbytes,
        privacy=privacy_of(setup.plan),
        warnings=cell.warnings,
    )
