"""The audited systems of algorithms: a star's learner and what it receives, and agents of a graph and what they see.

Many copies of a small network's run lie side by side, so that one replay of a kernel gives many samples.
For algorithms that train one model, each query's noisy gradient is audited, as the executor computes it: what they
make of gradients is processing of what was released, and is left out; all queries are at one model.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from p2psim.audit.canaries import GradientLimits, Record
from p2psim.audit.system import AuditSystem, Copies, Published, releases_of
from p2psim.core.errors import MeaningError
from p2psim.core.events import COMMIT, DELIVER, SEND
from p2psim.core.registry import place_of
from p2psim.learning.batches import sampling
from p2psim.learning.graph.algorithms import penalty
from p2psim.learning.graph.problem import GraphProblem, GraphTask
from p2psim.learning.sgd.execute import CompiledExecutor
from p2psim.learning.sgd.problem import TrainingTask
from p2psim.learning.sgd.program import GRADIENT, INSTRUCTION, INSTRUCTIONS, Program
from p2psim.learning.star.problem import StarProblem, gradient_rule
from p2psim.learning.star.replay import LearnerReplay
from p2psim.learning.steps import LearningAlgorithm
from p2psim.network.graph import TopologyInputs, from_edges
from p2psim.network.section import Network
from p2psim.network.topologies import draw_links
from p2psim.network.topologies.regular import Star
from p2psim.simulation.algorithms.graph import GraphCell
from p2psim.simulation.algorithms.graph_setting import algorithm_of
from p2psim.simulation.algorithms.learner_cell import LearnerCell
from p2psim.simulation.algorithms.replay import goes_on
from p2psim.simulation.algorithms.training import TrainingCell


def _around_a_learner(system: AuditSystem) -> Network:
    """A star whose learner asks the agents of a system."""
    count = len(system.agents)
    links = draw_links(Star(agents=count), TopologyInputs(count), learner=True)
    return Network(links, system.cell.scenario.network.exchange.asking_all())


class TrainingSystem(AuditSystem):
    """Agents of a graph's cell, two that are linked with each other."""

    needs_pair = True
    cell: TrainingCell

    def __init__(self, cell: TrainingCell, agents: Sequence[int]):
        model = cell.problem.model
        if not model.uses_loss:
            raise MeaningError(
                "learning.model",
                f"an audit finds records with the largest gradient for linear models only, got {model.kind}",
            )
        super().__init__(cell, agents)

    @property
    def network(self) -> Network:
        """The small network."""
        scenario = self.cell.scenario
        exchange, algorithm = scenario.network.exchange, scenario.learning.algorithm
        links, updates = from_edges(2, np.array([0]), np.array([1])), algorithm.updates_under(exchange)
        answers = algorithm.answerer_releases
        return Network(links, exchange, goes_on=goes_on(scenario), updates=updates, answerer_releases=answers)

    def play(
        self, held: Sequence[Record], events: np.ndarray, noise: np.ndarray, key: np.ndarray
    ) -> Published:
        """Compute the gradient of every release of every copy, with its noise."""
        copies, agents, releases = len(noise), len(self.agents), releases_of(events)
        starts, count = np.stack([record.start for record in held]), releases.agents.size
        problem: Any = self.problem(held, copies)
        rule, batches = self.cell.rule, sampling(self._batch, problem.records, key)
        task = TrainingTask(problem, rule.clip, rule.order, self.grid, True, batches, starts[0])
        lines = np.zeros(copies * count, INSTRUCTION)
        lines["what"], lines["noise"] = GRADIENT, np.arange(lines.size)
        lines["out"], lines["at"] = agents + np.arange(lines.size), np.tile(releases.agents, copies)
        lines["query"] = np.tile(releases.numbers, copies)
        lines["agent"] = lines["at"] + np.repeat(agents * np.arange(copies), count)
        program = Program.empty(agents + lines.size)._replace(instructions=lines)
        program.counts[INSTRUCTIONS] = lines.size
        executor = CompiledExecutor(task, program.slots)
        executor.pool[:agents] = starts
        executor.run(program, np.ascontiguousarray(noise.reshape(-1, noise.shape[-1])))
        models = np.broadcast_to(starts[releases.agents], noise.shape)
        gradients = executor.pool[agents:].reshape(noise.shape) - 2 * problem.l2 * models
        return Published(gradients, models)


class OwnersTrainingSystem(TrainingSystem):
    """Owners of a star's cell, one or two."""

    needs_pair = False

    @property
    def network(self) -> Network:
        """The small network."""
        return _around_a_learner(self)


class StarSystem(AuditSystem):
    """Owners of a star's cell, one or two.

    The learner is the adversary, and asks at one model for ever: its step is zero. What it makes of answers is
    processing of what was released.
    """

    needs_pair = False

    def __init__(self, cell: LearnerCell, agents: Sequence[int]):
        super().__init__(cell, agents)
        # What an owner multiplies its gradients by to make up for how often it answers is in the plan's sensitivity.
        self.divisors = self.divisors / cell.weighting.at_owner[list(agents)]

    @property
    def limits(self) -> GradientLimits:
        """What limits gradients."""
        problem = self.cell.problem
        limits = replace(super().limits, theta_max=problem.theta_max)
        if limits.x_bound is None or not problem.loss.is_squared_error:
            return limits
        # Ξ = 2(θ_max·B + y_max)·B, solved for B.
        y_bound, box = float(self.cell.case.y_max or 0.0), problem.theta_max
        x_bound = float((np.sqrt(y_bound**2 + 2 * box * limits.bound) - y_bound) / (2 * box))
        return replace(limits, x_bound=x_bound, y_bound=y_bound)

    @property
    def network(self) -> Network:
        """The small network."""
        return _around_a_learner(self)

    def play(
        self, held: Sequence[Record], events: np.ndarray, noise: np.ndarray, key: np.ndarray
    ) -> Published:
        """Replay events for many copies."""
        copies = Copies(events, len(self.agents), len(noise))
        start = held[0].start
        replay = self._replay(self.problem(held, len(noise)), start, key, events)
        answers = np.empty_like(noise)
        for block, chunk, releases, drawn in copies.play(noise):
            replay.feed(chunk, drawn)
            for at, release in releases.items():
                answers[:, release] = replay.answers(copies.seqs(at, block))
        return Published(answers, np.broadcast_to(start, answers.shape))

    def _replay(
        self, problem: StarProblem, start: np.ndarray, key: np.ndarray, events: np.ndarray
    ) -> LearnerReplay:
        """The cell's kernel with steps of zero."""
        cell, copies = self.cell, problem.records.size // len(self.agents)
        whole, owners = cell.weighting, np.tile(self.agents, copies)
        weighting = replace(whole, at_learner=whole.at_learner[owners], at_owner=whole.at_owner[owners])
        rule = gradient_rule(problem, cell.rule.clip, order=cell.rule.order, grid=self.grid)
        batches = sampling(self._batch, problem.records, key)
        still = cell.method.still(int(np.count_nonzero(events["kind"] == COMMIT)) * copies, weighting)
        return cell.compiled(problem, still, rule, batches, start)

    def problem(self, held: Sequence[Record], copies: int) -> StarProblem:
        """The cell's problem with the records of many copies, and sums over them."""
        problem, count = super().problem(held, copies), self.records
        x, target = np.stack([record.x for record in held]), np.array([record.y for record in held])
        gram = np.tile(np.einsum("ia,ib->iab", x, x) / count[:, None, None], (copies, 1, 1))
        moment = np.tile(x * target[:, None] / count[:, None], (copies, 1))
        x_l1, energy = np.abs(problem.X).sum(axis=1), np.tile(target**2 / count, copies)
        return replace(problem, x_l1=x_l1, gram=gram, moment=moment, energy=energy)


#: Solves the update of an agent that an event publishes, from its models before and after, for μ·c_i(∇L_i + η).
Solve = Callable[[Any, int, np.ndarray, np.ndarray], np.ndarray | None]


class GraphSystem(AuditSystem):
    """Two agents of a graph's cell, linked with each other.

    Each keeps its confidence, step and ridge, which are public, as they are in the cell.
    """

    needs_pair = True
    cell: GraphCell

    @property
    def network(self) -> Network:
        """The small network."""
        scenario = self.cell.scenario
        links = from_edges(2, np.array([0]), np.array([1]))
        vectors = algorithm_of(scenario).vectors
        return Network(links, scenario.network.exchange, goes_on=goes_on(scenario), vectors=vectors)

    def play(
        self, held: Sequence[Record], events: np.ndarray, noise: np.ndarray, key: np.ndarray
    ) -> Published:
        """Replay events for many copies, and solve each published update for its noisy gradient.

        An update holds μ·c_i(∇L_i(θ_i) + η), which gives the mean gradient of records plus η, as ∇L_i(θ) also holds
        2λ_i·θ.
        """
        copies, agents, claimed = len(noise), list(self.agents), self.cell.problem
        start = np.stack([record.start for record in held])
        solve = self._solver(start, copies, events)
        problem, rule = self.problem(held, copies), replace(self.cell.rule, grid=self.grid)
        batches, starts = sampling(self._batch, problem.records, key), np.tile(start, (copies, 1))
        task = GraphTask(problem, rule, starts, sampling=batches)
        replay = algorithm_of(self.cell.scenario).replay(task, track=False)
        pull, ridge = claimed.mu * claimed.confidence[agents], claimed.ridge[agents]
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
        return Published(gradients, models)

    def _solver(self, start: np.ndarray, copies: int, events: np.ndarray) -> Solve:
        """What solves the update that an event publishes for μ·c_i(∇L_i + η).

        θ_i ← (1 − α_i)θ_i + α_i(Σ_j (W_ij/D_ii)θ_j − μ·c_i(∇L_i(θ_i) + η)).
        """
        alpha = self.cell.problem.alpha[list(self.agents)]
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

        return solve

    def problem(self, held: Sequence[Record], copies: int) -> GraphProblem:
        """The cell's problem with the records of many copies, on as many links; none held out."""
        problem, n, owners = super().problem(held, copies), 2 * copies, np.tile(self.agents, copies)
        own = {name: getattr(problem, name)[owners] for name in ("ridge", "confidence", "smoothness")}
        pairs, ends = np.arange(n, dtype=np.int32) ^ 1, np.arange(n + 1, dtype=np.int64)
        linked = replace(problem, indptr=ends, indices=pairs, weights=np.ones(n), **own)
        return replace(linked, **nothing_held_out(n, self.dimension))


def nothing_held_out(agents: int, dimension: int) -> dict[str, Any]:
    """Arrays of a problem whose agents keep no records for tests."""
    test_X, test_offsets = np.zeros((0, dimension)), np.zeros(agents + 1, np.int64)
    return {"test_X": test_X, "test_y": np.zeros(0), "test_offsets": test_offsets}


#: Weight of the link between the two agents of an audited system.
_WEIGHT = 1.0


class AdmmSystem(GraphSystem):
    """Two agents of a cell of gossip ADMM, linked with each other.

    The link has the weight 1. Each keeps its confidence, step and ridge as in the cell.
    """

    def _solver(self, start: np.ndarray, copies: int, events: np.ndarray) -> Solve:
        """See `GraphSystem._solver`.

        θ_i ← θ_i − (μc_i(∇L_i(θ_i) + η) + (ρ + h)θ_i − target)/(ρ + h + μc_i·L_i^loc).
        """
        claimed, agents, half = self.cell.problem, list(self.agents), _WEIGHT / 2
        rho = penalty(algorithm_of(self.cell.scenario).rho, np.array([_WEIGHT]))
        h = half * rho / (half + rho)
        pull = claimed.mu * _WEIGHT * claimed.confidence[agents]
        step = 1.0 / (rho + h + pull * claimed.smoothness[agents])
        # z − u of an end's model and of its copy of the other's, and u: shape (copies, 2 ends, 2, p). They follow from
        # what both ends send (`p2psim.learning.graph.algorithms`), and so anybody who sees the messages knows them.
        towards = np.tile(np.stack([start, start[::-1]], axis=1), (copies, 1, 1, 1))
        multipliers = np.zeros_like(towards)
        kinds = dict(zip(events["seq"].tolist(), events["kind"].tolist(), strict=True))
        sent: dict[int, np.ndarray] = {}  # s of the model and of the copy that each end sent last

        def solve(event: Any, i: int, before: np.ndarray, after: np.ndarray) -> np.ndarray | None:
            pulled = None
            if event["kind"] == SEND:
                target = rho * towards[:, i, 0] + h * towards[:, i, 1]
                pulled = (before - after) / step[i] - (rho + h) * before + target
                copy = (half * after + rho * towards[:, i, 1]) / (half + rho)
                sent[i] = np.stack([after, copy], axis=1) + multipliers[:, i]
            answers = event["kind"] == SEND and kinds.get(int(event["cause"])) == DELIVER
            if answers or event["kind"] == COMMIT:
                # A model meets the other's copy, and a copy the other's model.
                heard = sent[1 - i][:, ::-1]
                towards[:, i], multipliers[:, i] = heard, (sent[i] - heard) / 2
            return pulled

        return solve


#: Systems by what algorithms call theirs.
_SYSTEMS: Mapping[str, type[AuditSystem]] = {
    "star": StarSystem,
    "graph": GraphSystem,
    "admm": AdmmSystem,
    "training": TrainingSystem,
    "owners-training": OwnersTrainingSystem,
}


def system_of(algorithm: LearningAlgorithm) -> type[AuditSystem] | None:
    """The audited system of an algorithm; None where its releases are not audited."""
    return _SYSTEMS.get(algorithm.audited_as) if place_of(algorithm) is None else None
