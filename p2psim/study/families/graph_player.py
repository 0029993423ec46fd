"""One replica of personalised models on a graph, fed with events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from p2psim.learning.admm import GossipAdmm
from p2psim.learning.admm_replay import AdmmReplay
from p2psim.learning.averaging import Averaging
from p2psim.learning.averaging_replay import AveragingReplay
from p2psim.learning.batches import batch_of, sampling
from p2psim.learning.graph_metrics import GRAPH_METRICS
from p2psim.learning.graph_replay import GraphReplay
from p2psim.learning.push_sum import PushSum
from p2psim.learning.push_sum_replay import PushSumReplay
from p2psim.network.spectrum import spectral_facts
from p2psim.privacy.violations import Violations
from p2psim.randomness import Streams
from p2psim.study.families.baseline_models import baseline_models
from p2psim.study.families.graph_setting import admm_rule, algorithm_of
from p2psim.study.families.observer import Observer
from p2psim.study.families.stage import Played

if TYPE_CHECKING:
    from p2psim.study.families.graph import GraphCell


class GraphPlayer:
    """One replica on a graph."""

    def __init__(self, cell: GraphCell, streams: Streams):
        record = cell.scenario.record
        named = GRAPH_METRICS.keys() & {*record.metrics, *record.per_agent}
        track = any(GRAPH_METRICS[name].needs_objective for name in named)
        self._replay = replay = _replay(cell, streams, track)
        problem = cell.problem

        def objective() -> float:
            # Averaging does not know what the others minimise.
            if isinstance(replay, AveragingReplay | PushSumReplay):
                return problem.objective(replay.theta)
            return replay.objective

        models = baseline_models(cell)
        facts = lambda: spectral_facts(cell.links)  # noqa: E731
        self._observer = Observer(record, problem, cell.case.groups, models, facts, objective)

    def feed(self, events: np.ndarray, noise: np.ndarray, places: np.ndarray) -> None:
        """Replay a chunk of events, stopping where something is to be recorded."""
        row = 0
        for piece, releases, step, time in self._observer.pieces(events, places):
            self._replay.feed(piece, noise[row : row + releases])
            row += releases
            if step is not None:
                self._observer.observe(step, time, self._replay)

    def finish(self) -> Played:
        """Record the last models, and the baselines."""
        self._replay.check()
        series, models = self._observer.finish(self._replay)
        seen = self._replay
        return Played(series, models, Violations(seen.violations, seen.violation_steps, seen.violation_sizes))


Replay = GraphReplay | AdmmReplay | AveragingReplay | PushSumReplay


def _replay(cell: GraphCell, streams: Streams, track: bool) -> Replay:
    algorithm = algorithm_of(cell.scenario)
    drawn = sampling(batch_of(algorithm), cell.problem.records, streams.key("batches"))
    if isinstance(algorithm, Averaging):
        return AveragingReplay(cell.start)
    if isinstance(algorithm, PushSum):
        return PushSumReplay(cell.start)
    if isinstance(algorithm, GossipAdmm):
        rule = admm_rule(algorithm, cell.rule, cell.problem)
        return AdmmReplay(cell.problem, rule, cell.start, cell.anchor, track, drawn)
    return GraphReplay(cell.problem, cell.rule, cell.start, cell.anchor, track, drawn)
