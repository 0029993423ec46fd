"""The star under audit: what the learner receives of an owner's answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from p2psim.audit.canaries import Reach
from p2psim.audit.graph import Copies
from p2psim.audit.system import Record, Seen, records_here, releases_of, tables
from p2psim.core.events import COMMIT
from p2psim.learning.batches import Sampling, sampling
from p2psim.learning.star.problem import LearnerReplay, StarProblem
from p2psim.learning.star.replay import GradientRule, StarReplay, gradient_rule
from p2psim.learning.star.rounds import RoundsReplay
from p2psim.learning.steps import Weighting
from p2psim.network.section import Star, TopologyInputs, draw_links
from p2psim.network.simulation import Network
from p2psim.simulation.algorithms.learner_cell import LearnerCell
from p2psim.simulation.algorithms.rounds import RoundsCell
from p2psim.simulation.algorithms.star import StarCell
from p2psim.simulation.algorithms.star_setting import star_algorithm


class StarArena:
    """Owners of a star's cell; see `p2psim.audit.system.AuditSystem`.

    The learner is the adversary, and asks at one model for ever: its step is zero. What it makes of answers is
    processing of what was released.

    Parameters
    ----------
    cell : LearnerCell
    agents : sequence of int
        Owners of the cell, one or two.
    """

    def __init__(self, cell: LearnerCell, agents: Sequence[int]):
        self._cell, self.agents = cell, tuple(agents)
        held = cell.problem.records[list(agents)]
        self._batch = star_algorithm(cell.scenario).batch
        self.records = records_here(held, self._batch)
        # What an owner multiplies its gradients by to make up for how often it answers is in the plan's sensitivity.
        whole, own = cell.weighting, list(agents)
        self._weighting = replace(whole, at_learner=whole.at_learner[own], at_owner=whole.at_owner[own])
        self.divisors = self._batch.divisors(self.records) / self._weighting.at_owner
        self.enlargement = float(held[0] / self.records[0])
        self.rate = float(self._batch.rates(held)[0])
        self.grid = None if cell.rule.grid is None else cell.rule.grid * self.enlargement

    @property
    def dimension(self) -> int:
        """Length p of a release."""
        return self._cell.problem.dimension

    @property
    def reach(self) -> Reach:
        """What limits gradients."""
        cell, sensitivity = self._cell, self._cell.scenario.privacy.sensitivity
        assert sensitivity is not None
        x_bound = y_bound = None
        if sensitivity.kind == "bounds":
            x_bound = cell.bound
            if cell.problem.loss.is_squared_error:
                # Ξ = 2(θ_max·B + y_max)·B, solved for B.
                y_bound, box = float(cell.case.y_max or 0.0), cell.problem.theta_max
                x_bound = float((np.sqrt(y_bound**2 + 2 * box * cell.bound) - y_bound) / (2 * box))
        return Reach(
            cell.problem.loss,
            cell.rule.clip,
            cell.bound,
            cell.rule.order,
            cell.problem.theta_max,
            x_bound,
            y_bound,
        )

    @property
    def network(self) -> Network:
        """The small network."""
        links = draw_links(Star(agents=len(self.agents)), TopologyInputs(len(self.agents)), learner=True)
        return Network(links, self._cell.scenario.network.exchange)

    def play(self, held: Sequence[Record], events: np.ndarray, noise: np.ndarray, key: np.ndarray) -> Seen:
        """Replay events for many copies."""
        copies, rows, p = noise.shape
        problem = self._problem(held, copies)
        rule = gradient_rule(problem, self._cell.rule.clip, order=self._cell.rule.order, grid=self.grid)
        weighting = replace(
            self._weighting,
            at_learner=np.tile(self._weighting.at_learner, copies),
            at_owner=np.tile(self._weighting.at_owner, copies),
        )
        batches, start = sampling(self._batch, problem.records, key), held[0].start
        commits = int(np.count_nonzero(events["kind"] == COMMIT)) * copies
        replay = _standing_still(self._cell, problem, rule, weighting, batches, start, commits)
        _, places = releases_of(events)
        seen = np.empty_like(noise)
        made = 0
        played = Copies(events, len(self.agents), copies)
        for block, chunk in played.play():
            here = places[(places >= block.start) & (places < block.stop)]
            drawn = noise[:, made : made + here.size].reshape(copies * here.size, p)
            replay.feed(chunk, drawn)
            for at in here:
                seen[:, made] = replay.answers(played.seqs(at, block))
                made += 1
        assert made == rows
        return Seen(seen, np.broadcast_to(start, seen.shape))

    def _problem(self, held: Sequence[Record], copies: int) -> StarProblem:
        X, y, offsets = tables(held, self.records, copies)
        owners, p = offsets.size - 1, X.shape[1]
        gram, moment, energy = np.empty((owners, p, p)), np.empty((owners, p)), np.empty(owners)
        for i, (record, count) in enumerate(zip(held, self.records, strict=True)):
            each = slice(i, None, len(held))
            gram[each] = np.outer(record.x, record.x) / count
            moment[each], energy[each] = record.x * record.y / count, record.y**2 / count
        return replace(
            self._cell.problem,
            X=X,
            y=y,
            offsets=offsets,
            x_l1=np.abs(X).sum(axis=1),
            gram=gram,
            moment=moment,
            energy=energy,
        )


def _standing_still(
    cell: LearnerCell,
    problem: StarProblem,
    rule: GradientRule,
    weighting: Weighting,
    batches: Sampling | None,
    start: np.ndarray,
    commits: int,
) -> LearnerReplay:
    """The cell's kernel with steps of zero."""
    if isinstance(cell, StarCell):
        method = replace(cell.method, step=0.0, weighting=weighting)
        return StarReplay(problem, method, rule, sampling=batches, start=start)
    assert isinstance(cell, RoundsCell)
    none = np.zeros(commits)
    still = replace(
        cell.method, steps=none, keep=none, take=none, averages=False, weighting=weighting, by_answered=False
    )
    return RoundsReplay(problem, still, rule, sampling=batches, start=start)
