"""What replays of models on a graph have in common: the agents' own models, and what is known of them."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from p2psim.errors import SimulationError
from p2psim.learning.batches import Sampling
from p2psim.learning.graph_kernel import objective_parts
from p2psim.learning.graph_loss import UNKNOWN, evaluate_all
from p2psim.learning.graph_problem import GraphProblem

#: Q_L is summed afresh where it has fallen so far that rounding of what it was would show.
FALL = 1e3


class OwnModels:
    """Models, one an agent.

    Parameters
    ----------
    start : ndarray, shape (n, p)

    Attributes
    ----------
    theta : ndarray, shape (n, p)
        The agents' own models.
    violations : ndarray of int64, shape (n,)
        Releases at which a record of each agent, in the batch or not, exceeded the claimed bound.
    violation_steps : ndarray of int64, shape (n,)
        Commits before the first of them; −1 for none.
    violation_sizes : ndarray, shape (n,)
        Largest gradient seen at them over the bound; 0 for none.
    """

    def __init__(self, start: np.ndarray):
        self.theta = np.array(start, dtype=np.float64)
        n = len(start)
        self.violations, self.violation_steps = np.zeros(n, np.int64), np.full(n, -1)
        self.violation_sizes = np.zeros(n)

    def check(self) -> None:
        """Raise a SimulationError if a model is not finite."""
        if not np.isfinite(self.theta).all():
            agent = int(np.argmin(np.isfinite(self.theta).all(axis=1)))
            raise SimulationError(f"the model of agent {agent} is not finite")


class Gradients(Protocol):
    """What a rule of updates says of gradients; see `p2psim.learning.graph_replay.GraphRule`."""

    @property
    def clip(self) -> float:
        """Norm to which each record's gradient is clipped."""

    @property
    def order(self) -> int:
        """Order of that norm."""

    @property
    def bound(self) -> float:
        """Claimed bound."""


class LearnedModels(OwnModels):
    """Models that are learned from the agents' records.

    Parameters
    ----------
    problem : GraphProblem
    rule : Gradients
    start : ndarray, shape (n, p)
        The agents' first models, which their neighbours know.
    anchor : ndarray, shape (n, p), optional
        What updates without a release pull towards, until the agent's first release; the start when left out.
    track : bool
        Keep Q_L up to date.
    sampling : Sampling, optional
        How the records of each release are drawn; all take part when left out.

    Attributes
    ----------
    local : ndarray, shape (n,)
        Mean loss of each agent's records without regulariser; kept up to date where Q_L is.
    """

    def __init__(
        self,
        problem: GraphProblem,
        rule: Gradients,
        start: np.ndarray,
        anchor: np.ndarray | None,
        track: bool,
        sampling: Sampling | None,
    ):
        super().__init__(start)
        n = len(start)
        self._problem, self._track = problem, track
        self._batch = None if sampling is None else sampling.for_kernel(problem.records)
        self._anchor = np.array(start if anchor is None else anchor, dtype=np.float64)
        self.local, self._sums = np.zeros(n), np.zeros(3)
        self._gradients, self._known = np.empty_like(self.theta), np.full(n, UNKNOWN, np.int8)
        if track:
            evaluate_all(
                problem.loss.for_kernel(), problem.X, problem.y, problem.norms(rule.order), problem.offsets,
                rule.clip, rule.bound, self.theta, self.local, self._gradients, self._known,
            )  # fmt: skip
            self._sum_afresh()

    @property
    def objective(self) -> float:
        """Q_L at the agents' own models, where it is tracked."""
        if not self._sums[2] <= FALL * abs(self._sums[:2].sum()):  # also where it was undefined meanwhile
            self._sum_afresh()
        return float(self._sums[:2].sum())

    def _sum_afresh(self) -> None:
        problem = self._problem
        self._sums[:2] = objective_parts(
            problem.indptr, problem.indices, problem.weights, self.theta,
            self.local, problem.ridge, problem.pull,
        )  # fmt: skip
        self._sums[2] = abs(self._sums[:2].sum())
