"""The audited systems of algorithms that train one model: each query's noisy gradient, as the executor computes it.

What an algorithm makes of gradients is processing of what was released, and is left out: all queries are at one model.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from p2psim.audit.canaries import Record
from p2psim.audit.system import AuditSystem, PublishedReleases, releases_of
from p2psim.core.errors import MeaningError
from p2psim.learning.batches import sampling
from p2psim.learning.sgd.execute import CompiledExecutor
from p2psim.learning.sgd.problem import TrainingTask
from p2psim.learning.sgd.program import GRADIENT, INSTRUCTION, INSTRUCTIONS, Program
from p2psim.network.graph import TopologyInputs, from_edges
from p2psim.network.section import Network
from p2psim.network.topologies import Star, draw_links
from p2psim.simulation.algorithms.replay import goes_on
from p2psim.simulation.algorithms.training import TrainingCell


class TrainingSystem(AuditSystem):
    """Agents of a graph's cell, two that are linked with each other."""

    needs_pair = True
    cell: TrainingCell

    def __init__(self, cell: TrainingCell, agents: Sequence[int]):
        model = cell.problem.model
        if not model.uses_loss:
            raise MeaningError(
                "learning.model",
                f"an audit knows records whose gradient is largest of linear models only, got {model.kind}",
            )
        super().__init__(cell, agents)

    @property
    def network(self) -> Network:
        """The small network."""
        scenario = self.cell.scenario
        exchange, algorithm = scenario.network.exchange, scenario.learning.algorithm
        links = from_edges(2, np.array([0]), np.array([1]))
        return Network(
            links,
            exchange,
            goes_on=goes_on(scenario),
            updates=algorithm.updates_under(exchange),
            answerer_releases=algorithm.answerer_releases,
        )

    def play(
        self, held: Sequence[Record], events: np.ndarray, noise: np.ndarray, key: np.ndarray
    ) -> PublishedReleases:
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
        return PublishedReleases(gradients, models)


class OwnersTrainingSystem(TrainingSystem):
    """Owners of a star's cell, one or two."""

    needs_pair = False

    @property
    def network(self) -> Network:
        """The small network."""
        links = draw_links(Star(agents=len(self.agents)), TopologyInputs(len(self.agents)), learner=True)
        return Network(links, self.cell.scenario.network.exchange.asking_all())
