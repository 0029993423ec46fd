"""The audit of private starts: local models by output or objective perturbation, which each agent releases once.

One record is worst: others of x = 0 have no gradient, and n records of which n − 1 are such have the same noise and
minimisers as the remaining one with nΛ in place of Λ. The noise has the same density in every direction.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from p2psim.audit.algorithms import nothing_held_out
from p2psim.audit.audit_run import INFLATED, Trial
from p2psim.audit.canaries import FAR
from p2psim.audit.claims import Canary, findings, lower_bound, thresholds_for
from p2psim.learning.graph.problem import GraphProblem
from p2psim.learning.steps import PrivateWarmStart
from p2psim.privacy.accounting.noises import LAPLACE, PURE
from p2psim.privacy.perturbation import objective_noise, output_rate
from p2psim.simulation.algorithms.graph_setting import perturbed_models
from p2psim.simulation.outcome import streams_of

#: Numbers in an array of copies' models, at most.
_NUMBERS = 1_000_000

#: Runs on each data set of objective perturbation, at most: each is a minimisation.
MOST_MINIMISATIONS = 2_000


@dataclass(frozen=True)
class StartSystem:
    """Agents of a cell whose starts have the same law.

    Attributes
    ----------
    cell : PreparedCell
    agents : tuple of int
    """

    cell: Any
    agents: tuple[int, ...]

    @property
    def start(self) -> PrivateWarmStart:
        """The start, with the loss at which few runs show most."""
        return self.cell.scenario.learning.algorithm.start.model_copy(update={"epsilon": INFLATED})

    @property
    def mechanism(self) -> str:
        """What is audited, as a table says it."""
        return f"{self.start.perturbation} perturbation"

    def pairs(self) -> Iterator[tuple[str, tuple[GraphProblem, GraphProblem]]]:
        """Problems of one agent on two adjacent data sets, by how their record lies."""
        problem, agent = self.cell.problem, self.agents[0]
        p, loss = problem.dimension, problem.loss
        strong = problem.records[agent] * self.cell.scenario.learning.algorithm.start.ridge(problem)[agent]
        # With an intercept, which is 1, nothing is left for other coordinates.
        one = np.eye(p)[-1 if loss.intercept else 0]
        xs = {"one coordinate": one} | (
            {} if loss.intercept or p == 1 else {"dense": np.ones(p) / np.sqrt(p)}
        )
        far = 1.0 if loss.needs_classes else FAR
        for name, x in xs.items():
            alone = _unlinked(problem, 1, X=x[None], y=np.array([far]), ridge=np.array([strong]))
            yield name, (alone, replace(alone, y=-alone.y))

    def released(self, alone: GraphProblem, replica: int, samples: int) -> np.ndarray:
        """What runs release in so many replicas, shape (samples, p)."""
        start, exact, p = self.start, self.start.models(alone), alone.dimension
        streams, models = streams_of(self.cell.scenario, replica), []
        most = max(1, _NUMBERS // (p * p))
        for first, count in ((first, min(most, samples - first)) for first in range(0, samples, most)):
            y, ridge = np.tile(alone.y, count), np.tile(alone.ridge, count)
            many = _unlinked(alone, count, X=np.tile(alone.X, (count, 1)), y=y, ridge=ridge)
            key = replace(streams, replica=replica + first).key("start")
            models.append(perturbed_models(start, many, np.tile(exact, (count, 1)), key))
        return np.concatenate(models)


def _unlinked(problem: GraphProblem, agents: int, **records: Any) -> GraphProblem:
    """The problem with other records, one of each of so many agents; no link connects them, none is held out."""
    ones, none = np.ones(agents), np.zeros(agents + 1, np.int64)
    links = {"indptr": none, "indices": np.empty(0, np.int32), "weights": np.empty(0)}
    own = {"offsets": np.arange(agents + 1), "confidence": ones, "smoothness": ones}
    return replace(problem, **(nothing_held_out(agents, problem.dimension) | own | links | records))


class _Claimed:
    """What is claimed of a release: the norm of its noise, in units in which the density is exp(−‖b‖).

    That of objective perturbation has a further factor, which records (x, y) and (x, −y) share for logistic losses. For
    others leaving it out costs the audit power alone.
    """

    def __init__(self, start: PrivateWarmStart, alone: GraphProblem):
        self.loss, self.x, self.y = alone.loss, alone.X, alone.y
        self.exact = start.models(alone) if start.perturbation == "output" else None
        ones, strong = np.ones(1), 2 * alone.ridge
        if self.exact is not None:
            self.rate, self.strong = float(output_rate(ones, strong, start.epsilon)[0]), float(strong[0])
            return
        rate, extra = objective_noise(ones, strong, self.loss.curvature, start.epsilon)
        self.rate, self.strong = float(rate[0]), float(strong[0] + extra[0])

    def distances(self, theta: np.ndarray) -> np.ndarray:
        """Norm of the noise that makes each of these models, shape (samples,)."""
        noise = theta - self.exact if self.exact is not None else self.gradients(theta)
        return np.asarray(self.rate * np.linalg.norm(noise, axis=1))

    def gradients(self, theta: np.ndarray) -> np.ndarray:
        """−b of objective perturbation, shape (samples, p)."""
        slopes = self.loss.slopes(theta @ self.x[0], np.broadcast_to(self.y, len(theta)))
        return np.asarray(slopes[:, None] * self.x + self.strong * theta)

    def moves(self, other: "_Claimed") -> float:
        """How far the record moves the minimiser, or the gradient at zero, over the most that is claimed."""
        if self.exact is not None and other.exact is not None:
            return float(np.linalg.norm(self.exact - other.exact)) * self.strong / 2
        zero = np.zeros_like(self.x)
        return float(np.linalg.norm(self.gradients(zero) - other.gradients(zero))) / 2


def audit_start(system: StartSystem, replica: int, samples: int, gamma: float) -> Trial:
    """Audit the start of a system's first agent; parameters are those of `p2psim.audit.audit_run.audit_system`."""
    from scipy.stats import gamma as gamma_law
    from scipy.stats import kstest

    start, kind = system.start, system.start.perturbation
    samples = min(samples, MOST_MINIMISATIONS) if kind == "objective" else samples
    canaries, laws, moves = [], [], 0.0
    for name, problems in system.pairs():
        claimed = [_Claimed(start, problem) for problem in problems]
        scores = []
        for world, problem in enumerate(problems):
            theta = system.released(problem, replica, samples)
            replica += samples
            scores.append(claimed[1].distances(theta) - claimed[0].distances(theta))
            law = gamma_law(problem.dimension)
            laws.append(float(kstest(claimed[world].distances(theta), law.cdf).pvalue))
        canaries.append(Canary(name, *scores))
        moves = max(moves, claimed[0].moves(claimed[1]))
    noise = LAPLACE if kind == "output" else PURE
    claimed_loss = np.array(INFLATED)
    thresholds = thresholds_for(claimed_loss[None])
    results = findings(
        canaries, lambda e: float(noise.delta(claimed_loss, np.array(e))), thresholds, gamma / 3
    )
    law_holds, least = min(1.0, len(laws) * min(laws)), lower_bound(results, 0.0)
    return Trial(1, 1, 1, INFLATED, INFLATED, 0.0, moves, least, results, law_holds, None, gamma)
