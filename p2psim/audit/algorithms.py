"""The audited systems of algorithms: a star's learner and what it receives, and agents of a graph and what they see.

Many copies of a small network's run lie side by side, so that one replay of a kernel gives many samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from p2psim.audit.canaries import GradientLimits, Record
from p2psim.audit.system import AuditSystem, Copies, PublishedReleases, tables
from p2psim.core.events import COMMIT, DELIVER, SEND
from p2psim.learning.batches import Sampling, sampling
from p2psim.learning.graph.admm import AdmmReplay
from p2psim.learning.graph.algorithms import GossipAdmm
from p2psim.learning.graph.problem import GraphProblem, GraphTask
from p2psim.learning.graph.replay import GraphReplay
from p2psim.learning.star.models import LearnerReplay
from p2psim.learning.star.problem import StarProblem
from p2psim.learning.star.replay import StarReplay, gradient_rule
from p2psim.learning.star.rounds import RoundsReplay
from p2psim.learning.steps import LearningAlgorithm
from p2psim.network.graph import TopologyInputs, from_edges
from p2psim.network.section import Network
from p2psim.network.topologies import Star, draw_links
from p2psim.simulation.algorithms.graph import GraphCell
from p2psim.simulation.algorithms.graph_setting import algorithm_of
from p2psim.simulation.algorithms.learner_cell import LearnerCell
from p2psim.simulation.algorithms.replay import goes_on
from p2psim.simulation.algorithms.rounds import RoundsCell


class StarSystem(AuditSystem):
    """Owners of a star's cell, one or two.

    The learner is the adversary, and asks at one model for ever: its step is zero. What it makes of answers is
    processing of what was released.
    """

    needs_pair = False

    def __init__(self, cell: LearnerCell, agents: Sequence[int]):
        super().__init__(cell, agents)
        # What an owner multiplies its gradients by to make up for how often it answers is in the plan's sensitivity.
        whole, owners = cell.weighting, list(agents)
        self._weighting = replace(whole, at_learner=whole.at_learner[owners], at_owner=whole.at_owner[owners])
        self.divisors = self.divisors / self._weighting.at_owner

    @property
    def limits(self) -> GradientLimits:
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
        return GradientLimits(
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

    def play(
        self, held: Sequence[Record], events: np.ndarray, noise: np.ndarray, key: np.ndarray
    ) -> PublishedReleases:
        """Replay events for many copies."""
        copies = Copies(events, len(self.agents), len(noise))
        start = held[0].start
        replay = self._replay(self._problem(held, len(noise)), start, key, events)
        answers = np.empty_like(noise)
        for block, chunk, releases, drawn in copies.play(noise):
            replay.feed(chunk, drawn)
            for at, release in releases.items():
                answers[:, release] = replay.answers(copies.seqs(at, block))
        return PublishedReleases(answers, np.broadcast_to(start, answers.shape))

    def _replay(
        self, problem: StarProblem, start: np.ndarray, key: np.ndarray, events: np.ndarray
    ) -> LearnerReplay:
        """The cell's kernel with steps of zero."""
        cell, copies = self._cell, problem.records.size // len(self.agents)
        weighting = replace(
            self._weighting,
            at_learner=np.tile(self._weighting.at_learner, copies),
            at_owner=np.tile(self._weighting.at_owner, copies),
        )
        rule = gradient_rule(problem, cell.rule.clip, order=cell.rule.order, grid=self.grid)
        batches = sampling(self._batch, problem.records, key)
        if isinstance(cell, RoundsCell):
            none = np.zeros(int(np.count_nonzero(events["kind"] == COMMIT)) * copies)
            rounds = replace(
                cell.method, steps=none, keep=none, take=none, averages=False, weighting=weighting,
                by_answered=False,
            )  # fmt: skip
            return RoundsReplay(problem, rounds, rule, sampling=batches, start=start)
        method = replace(cell.method, step=0.0, weighting=weighting)
        return StarReplay(problem, method, rule, sampling=batches, start=start)

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


#: Solves the update of an agent that an event publishes, from its models before and after, for μ·c_i(∇L_i + η).
Solve = Callable[[Any, int, np.ndarray, np.ndarray], np.ndarray | None]


class GraphSystem(AuditSystem):
    """Two agents of a graph's cell, linked with each other.

    Each keeps its confidence, step and ridge, which are public, as they are in the cell.
    """

    needs_pair = True
    _cell: GraphCell

    @property
    def limits(self) -> GradientLimits:
        """What limits gradients."""
        cell, sensitivity = self._cell, self._cell.scenario.privacy.sensitivity
        x_bound = cell.bound if sensitivity is not None and sensitivity.kind == "bounds" else None
        return GradientLimits(cell.problem.loss, cell.rule.clip, cell.bound, cell.rule.order, x_bound=x_bound)

    @property
    def network(self) -> Network:
        """The small network."""
        scenario = self._cell.scenario
        links = from_edges(2, np.array([0]), np.array([1]))
        vectors = algorithm_of(scenario).vectors
        return Network(links, scenario.network.exchange, goes_on=goes_on(scenario), vectors=vectors)

    def play(
        self, held: Sequence[Record], events: np.ndarray, noise: np.ndarray, key: np.ndarray
    ) -> PublishedReleases:
        """Replay events for many copies, and solve each published update for its noisy gradient.

        An update holds μ·c_i(∇L_i(θ_i) + η), which gives the mean gradient of records plus η, as ∇L_i(θ) also holds
        2λ_i·θ.
        """
        copies, (i, j) = len(noise), self.agents
        start = np.stack([record.start for record in held])
        problem = self._problem(held, copies)
        batches = sampling(self._batch, problem.records, key)
        replay, solve = self._replay(problem, start, batches, events)
        claimed = self._cell.problem
        pull, ridge = claimed.mu * claimed.confidence[[i, j]], claimed.ridge[[i, j]]
        gradients, models = np.empty_like(noise), np.empty_like(noise)
        for block, chunk, releases, drawn in Copies(events, 2, copies).play(noise):
            before = replay.theta.reshape(copies, 2, -1).copy()
            replay.feed(chunk, drawn)
            after = replay.theta.reshape(copies, 2, -1)
            for at in range(block.start, block.stop):
                end = int(events["agent"][at])
                pulled = solve(events[at], end, before[:, end], after[:, end])
                if pulled is not None and at in releases:
                    gradients[:, releases[at]] = pulled / pull[end] - 2 * ridge[end] * before[:, end]
                    models[:, releases[at]] = before[:, end]
        return PublishedReleases(gradients, models)

    def _replay(
        self, problem: GraphProblem, start: np.ndarray, batches: Sampling | None, events: np.ndarray
    ) -> tuple[GraphReplay | AdmmReplay, Solve]:
        """The cell's kernel, and what solves the update that an event publishes for μ·c_i(∇L_i + η).

        θ_i ← (1 − α_i)θ_i + α_i(Σ_j (W_ij/D_ii)θ_j − μ·c_i(∇L_i(θ_i) + η)).
        """
        rule, cell, copies = replace(self._cell.rule, grid=self.grid), self._cell, problem.agents // 2
        replay = GraphReplay(
            GraphTask(problem, rule, np.tile(start, (copies, 1)), sampling=batches), track=False
        )
        alpha = cell.problem.alpha[list(self.agents)]
        known = np.tile(start[::-1], (copies, 1, 1))  # of the other, what each knows
        newest: list[int] = [0, 0]
        sent: dict[int, tuple[int, np.ndarray]] = {}

        def solve(event: Any, i: int, before: np.ndarray, after: np.ndarray) -> np.ndarray | None:
            if event["kind"] == SEND:
                sent[int(event["seq"])] = int(event["version"]), after.copy()
            elif event["kind"] == DELIVER and int(event["cause"]) in sent:
                version, model = sent[int(event["cause"])]
                if version > newest[i]:
                    newest[i], known[:, i] = version, model
            elif event["kind"] == COMMIT:
                return np.asarray(known[:, i] - (after - (1 - alpha[i]) * before) / alpha[i])
            return None

        return replay, solve

    def _problem(self, held: Sequence[Record], copies: int) -> GraphProblem:
        X, y, offsets = tables(held, self.records, copies)
        n, problem, agents = 2 * copies, self._cell.problem, list(self.agents)
        return replace(
            problem,
            X=X,
            y=y,
            offsets=offsets,
            ridge=np.tile(problem.ridge[agents], copies),
            confidence=np.tile(problem.confidence[agents], copies),
            smoothness=np.tile(problem.smoothness[agents], copies),
            indptr=np.arange(n + 1, dtype=np.int64),
            indices=(np.arange(n, dtype=np.int32) ^ 1),
            weights=np.ones(n),
            test_X=np.zeros((0, X.shape[1])),
            test_y=np.zeros(0),
            test_offsets=np.zeros(n + 1, np.int64),
        )


#: Weight of the link between the two agents of an audited system.
_WEIGHT = 1.0


class LinkState:
    """What the two ends of a link hold beside their models, in all copies: see `p2psim.learning.graph.algorithms`.

    It follows from what both ends send, and so anybody who sees the messages knows it.

    Parameters
    ----------
    start : ndarray, shape (2, p)
        First models.
    copies : int
    rho : float
    """

    def __init__(self, start: np.ndarray, copies: int, rho: float):
        known = np.stack([start, start[::-1]], axis=1)
        #: z − u of the own model and of the copy of the other's, shape (copies, 2 ends, 2, p).
        self._pulled = np.tile(known, (copies, 1, 1, 1))
        self._multipliers = np.zeros_like(self._pulled)
        self._rho, self._half = rho, _WEIGHT / 2
        self._h = self._half * rho / (self._half + rho)

    @property
    def stiffness(self) -> float:
        """ρ + h of the one link."""
        return self._rho + self._h

    def target(self, i: int) -> np.ndarray:
        """ρ(z_i − u_i) + h(z_ij − u_ij), shape (copies, p)."""
        return np.asarray(self._rho * self._pulled[:, i, 0] + self._h * self._pulled[:, i, 1])

    def message(self, i: int, model: np.ndarray) -> np.ndarray:
        """What end i sends after its model was set: s of the model and of its copy, shape (copies, 2, p)."""
        copy = (self._half * model + self._rho * self._pulled[:, i, 1]) / (self._half + self._rho)
        return np.stack([model, copy], axis=1) + self._multipliers[:, i]

    def meet(self, i: int, sent: np.ndarray, heard: np.ndarray) -> None:
        """Set end i from what it sent and heard: its model meets the other's copy, its copy the other's model."""
        self._pulled[:, i] = heard[:, ::-1]
        self._multipliers[:, i] = (sent - heard[:, ::-1]) / 2


class AdmmSystem(GraphSystem):
    """Two agents of a cell of gossip ADMM, linked with each other.

    The link has the weight 1. Each keeps its confidence, step and ridge as in the cell.
    """

    def _replay(
        self, problem: GraphProblem, start: np.ndarray, batches: Sampling | None, events: np.ndarray
    ) -> tuple[GraphReplay | AdmmReplay, Solve]:
        """See `GraphSystem._replay`.

        θ_i ← θ_i − (μc_i(∇L_i(θ_i) + η) + (ρ + h)θ_i − target)/(ρ + h + μc_i·L_i^loc).
        """
        algorithm, cell, copies = self._cell.scenario.learning.algorithm, self._cell, problem.agents // 2
        assert isinstance(algorithm, GossipAdmm)
        rule = algorithm.admm_rule(problem, replace(cell.rule, grid=self.grid))
        replay = AdmmReplay(
            GraphTask(problem, rule, np.tile(start, (copies, 1)), sampling=batches), track=False
        )
        claimed, agents = cell.problem, list(self.agents)
        link = LinkState(start, copies, rule.rho)
        pull = claimed.mu * _WEIGHT * claimed.confidence[agents]
        step = 1.0 / (link.stiffness + pull * claimed.smoothness[agents])
        kinds = dict(zip(events["seq"].tolist(), events["kind"].tolist(), strict=True))
        sent: dict[int, np.ndarray] = {}  # what each sent last

        def solve(event: Any, i: int, before: np.ndarray, after: np.ndarray) -> np.ndarray | None:
            pulled = None
            if event["kind"] == SEND:
                pulled = (before - after) / step[i] - link.stiffness * before + link.target(i)
                sent[i] = link.message(i, after)
            answers = event["kind"] == SEND and kinds.get(int(event["cause"])) == DELIVER
            if answers or event["kind"] == COMMIT:
                link.meet(i, sent[i], sent[1 - i])
            return pulled

        return replay, solve


def system_of(algorithm: LearningAlgorithm) -> type[AuditSystem] | None:
    """The audited system of an algorithm; None where its releases are not audited."""
    if algorithm.star_exchanges:
        return StarSystem
    return {"coordinate-descent": GraphSystem, "gossip-admm": AdmmSystem}.get(algorithm.kind)
