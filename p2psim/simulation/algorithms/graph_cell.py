"""The data and the graph of a cell on a graph, and one replica of it that is fed with events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.core.randomness import Streams
from p2psim.learning.batches import batch_of, sampling
from p2psim.learning.graph.admm import AdmmReplay
from p2psim.learning.graph.algorithms import Averaging, GossipAdmm, GossipAlgorithm, PushSum
from p2psim.learning.graph.averaging import AveragingReplay, PushSumReplay
from p2psim.learning.graph.gossip import GossipReplay
from p2psim.learning.graph.metrics import GRAPH_METRICS
from p2psim.learning.graph.problem import LearnedModels
from p2psim.learning.graph.replay import GraphReplay
from p2psim.network.graph import Graph, TopologyInputs
from p2psim.network.spectrum import spectral_facts
from p2psim.network.topologies import draw_links
from p2psim.privacy.releases import Violations
from p2psim.simulation.algorithms.agents import names_of
from p2psim.simulation.algorithms.graph_setting import admm_rule, algorithm_of
from p2psim.simulation.algorithms.graph_start import baseline_models
from p2psim.simulation.algorithms.replay import ReplayResult
from p2psim.simulation.observer import Observer
from p2psim.simulation.outcome import streams_of
from p2psim.simulation.recorder import Marks

if TYPE_CHECKING:
    from p2psim.data.prepare import Prepared
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.algorithms.graph_setting import GraphNumbers


def identify(scenario: Scenario) -> dict[str, Any]:
    """Return what determines the arrays of a case, beside the data section."""
    loss = scenario.learning.loss
    return {"intercept": loss.intercept, "classes": loss.needs_classes}


def arrays(scenario: Scenario, prepared: Prepared) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Records, held-out records, public bounds, and what neighbours are found by."""
    loss = scenario.learning.loss
    if loss.needs_classes and not prepared.classes:
        raise MeaningError("learning.loss", f"{loss.kind} needs labels that are +1 or −1; these are not")
    bounds = [np.nan if bound is None else bound for bound in (prepared.x_l1, prepared.x_max, prepared.y_max)]
    made = {
        "X": _with_intercept(prepared.X, loss.intercept),
        "y": prepared.y,
        "offsets": prepared.offsets,
        "test_X": _with_intercept(prepared.test_X, loss.intercept),
        "test_y": prepared.test_y,
        "test_offsets": prepared.test_offsets,
        "bounds": np.array(bounds),
        "data_dependent": np.array(bool(prepared.data_dependent)),
        **names_of(prepared),
    }
    if prepared.targets is not None:
        made["targets"] = prepared.targets
    if prepared.profiles is not None:
        made["profiles_data"], made["profiles_indices"] = prepared.profiles.data, prepared.profiles.indices
        made["profiles_indptr"], made["profiles_shape"] = (
            prepared.profiles.indptr,
            np.array(prepared.profiles.shape),
        )
    return made, ()


def _with_intercept(X: np.ndarray, intercept: bool) -> np.ndarray:
    return np.ascontiguousarray(np.column_stack([X, np.ones(len(X))]) if intercept else X)


def links_of(scenario: Scenario, arrays: Mapping[str, np.ndarray], replica: int) -> Graph:
    """Who is linked with whom in a replica."""
    profiles = None
    if "profiles_data" in arrays:
        from scipy.sparse import csr_array

        parts = arrays["profiles_data"], arrays["profiles_indices"], arrays["profiles_indptr"]
        profiles = csr_array(parts, shape=tuple(arrays["profiles_shape"]))
    labels = arrays["labels"].tolist() if "labels" in arrays else None
    given = TopologyInputs(arrays["offsets"].size - 1, profiles, arrays.get("targets"), labels)
    streams = streams_of(scenario, replica)
    variant = streams.variants.get("topology", "")
    return draw_links(scenario.network.topology, given, seed=streams.seed, replica=replica, variant=variant)


class RecordedGraphReplay:
    """One replica on a graph."""

    def __init__(self, cell: GraphNumbers, streams: Streams):
        record = cell.scenario.record
        named = GRAPH_METRICS.keys() & {*record.metrics, *record.per_agent}
        track = any(GRAPH_METRICS[name].needs_objective for name in named)
        self._replay = replay = _replay(cell, streams, track)
        problem = cell.problem

        def objective() -> float:
            return replay.objective if isinstance(replay, LearnedModels) else problem.objective(replay.theta)

        models = baseline_models(cell)
        facts = lambda: spectral_facts(cell.links)  # noqa: E731
        self._observer = Observer(record, problem, cell.case.groups, models, facts, objective)

    @property
    def violations(self) -> Violations:
        """See `Replay.violations`."""
        seen = self._replay
        return Violations(seen.violations, seen.violation_steps, seen.violation_sizes)

    def feed(self, events: np.ndarray, noise: np.ndarray, places: np.ndarray, marks: Marks) -> None:
        """See `Replay.feed`."""
        rows = np.searchsorted(places, marks.places).tolist()
        start = row = 0
        for stop, last, step, time in zip(
            marks.places.tolist(), rows, marks.steps.tolist(), marks.times.tolist(), strict=True
        ):
            self._replay.feed(events[start:stop], noise[row:last])
            self._observer.observe(step, time, self._replay)
            start, row = stop, last
        self._replay.feed(events[start:], noise[row:])

    def finish(self, marks: Marks) -> ReplayResult:
        """See `Replay.finish`."""
        self._replay.check()
        for step, time in zip(marks.steps.tolist(), marks.times.tolist(), strict=True):
            self._observer.observe(step, time, self._replay)
        series, models = self._observer.finish()
        return ReplayResult(series, models)


ModelReplay = GraphReplay | AdmmReplay | AveragingReplay | PushSumReplay | GossipReplay


def _replay(cell: GraphNumbers, streams: Streams, track: bool) -> ModelReplay:
    algorithm = algorithm_of(cell.scenario)
    drawn = sampling(batch_of(algorithm), cell.problem.records, streams.key("batches"))
    if isinstance(algorithm, Averaging):
        return AveragingReplay(cell.start)
    if isinstance(algorithm, PushSum):
        return PushSumReplay(cell.start)
    if isinstance(algorithm, GossipAlgorithm):
        return GossipReplay(algorithm, cell.problem, cell.rule, cell.start, drawn)
    if isinstance(algorithm, GossipAdmm):
        rule = admm_rule(algorithm, cell.rule, cell.problem)
        return AdmmReplay(cell.problem, rule, cell.start, cell.anchor, track, drawn)
    return GraphReplay(cell.problem, cell.rule, cell.start, cell.anchor, track, drawn)
