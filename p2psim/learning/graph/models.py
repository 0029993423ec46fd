"""The agents' models on a graph in a replay: the base classes of replays, and the current value of Q_L."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from p2psim.core.compiled import njit, unwritten
from p2psim.core.errors import SimulationError
from p2psim.learning.graph.problem import GraphTask, objective_parts
from p2psim.learning.owner_kernel import UNKNOWN, Records, evaluate_all
from p2psim.privacy.releases import Violations

# Places in the vector of counters.
COMMITS, SENT, NOISE_ROW, COUNTERS = 0, 1, 2, 3

#: What an update without a release does: averages, or averages towards the agent's anchor.
AVERAGE, ANCHORED = 0, 1


class Models(NamedTuple):
    """The agents' models, for kernels.

    Attributes
    ----------
    theta, gradients : ndarray, shape (n, p)
        Own models, and their mean gradients, where ``known`` says so.
    known : ndarray of int8, shape (n,)
        See `p2psim.learning.owner_kernel.UNKNOWN`.
    anchor : ndarray, shape (n, p)
        Each agent's last model that touched its data.
    local : ndarray, shape (n,)
        Mean loss of each agent's records without regulariser.
    sums : ndarray, shape (3,)
        The two parts of Q_L, and the largest that it has been since they were summed afresh.
    """

    theta: np.ndarray
    gradients: np.ndarray
    known: np.ndarray
    anchor: np.ndarray
    local: np.ndarray
    sums: np.ndarray


@njit(allocates=False)
def track_objective(i, old, mix, stale, new, models, graph):  # type: ignore[no-untyped-def]
    """Update Q_L for a change of one model: from its neighbours' true models, which it may not know yet."""
    theta, local, sums = models.theta, models.local, models.sums
    indptr, indices, weights, degrees, ridge, pull = graph
    p = old.size
    if stale:
        mix[:] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            for a in range(p):
                mix[a] += weights[e] / degrees[i] * theta[indices[e], a]
    smooth = own = was = 0.0
    for a in range(p):
        t = theta[i, a]
        own += t * t
        was += old[a] * old[a]
        smooth += (t - old[a]) * (0.5 * (t + old[a]) - mix[a])
    sums[0] += degrees[i] * smooth
    sums[1] += pull[i] * (new - local[i] + ridge[i] * (own - was))
    local[i] = new
    sums[2] = max(sums[2], abs(sums[0] + sums[1]))


#: Q_L is summed afresh where it has fallen so far that rounding of what it was would show.
FALL = 1e3


class ModelReplay(ABC):
    """One replica of models, one per agent, fed with chunks of events.

    Parameters
    ----------
    start : ndarray, shape (n, p)

    Attributes
    ----------
    theta : ndarray, shape (n, p)
        The agents' own models.
    violations : Violations
        Releases at which a record of each agent, in the batch or not, exceeded the claimed bound.
    """

    def __init__(self, start: np.ndarray):
        self.theta = np.array(start, dtype=np.float64, order="C")
        self.violations, self.counters = Violations.none(len(start)), np.zeros(COUNTERS, np.int64)

    @abstractmethod
    def feed(self, events: np.ndarray, noise: np.ndarray) -> None:
        """Replay events.

        Parameters
        ----------
        events : ndarray of EVENT
        noise : ndarray, shape (releases in these events, p)
            Noise of each release, in the order of the events.
        """

    @property
    def vectors_sent(self) -> int:
        """Vectors of length p sent so far: models of gossip and broadcasts, however many hear one; pairs of ADMM."""
        return int(self.counters[SENT])

    @property
    def objective(self) -> float | None:
        """Q_L at the agents' own models, where it is kept up to date; else None."""
        return None

    def check(self) -> None:
        """Raise a SimulationError if a model is not finite."""
        if not np.isfinite(self.theta).all():
            agent = int(np.argmin(np.isfinite(self.theta).all(axis=1)))
            raise SimulationError(f"the model of agent {agent} is not finite")


class LearningReplay(ModelReplay):
    """Models that are learned from the agents' records.

    Parameters
    ----------
    task : GraphTask
    track : bool
        Keep Q_L up to date.

    Attributes
    ----------
    local : ndarray, shape (n,)
        Mean loss of each agent's records without regulariser; kept up to date where Q_L is.
    """

    def __init__(self, task: GraphTask, track: bool = True):
        super().__init__(task.start)
        problem, rule, sampling = task.problem, task.rule, task.sampling
        self._problem, self._track, self._graph = problem, track, problem.for_kernel
        self._grid, self._records = rule.grid, Records.of(problem, rule)
        self._batch = None if sampling is None else sampling.for_kernel(problem.records)
        self._without_release = ANCHORED if rule.anchored else AVERAGE
        known, self.local = np.full(problem.agents, UNKNOWN, np.int8), np.zeros(problem.agents)
        # Nobody reads anchors where nobody is pulled towards them: they are written over the models, which they equal.
        anchors = task.anchors() if rule.anchored else self.theta
        self._models = Models(self.theta, np.empty_like(self.theta), known, anchors, self.local, np.zeros(3))
        if track:
            evaluate_all(self._records, self._models)
            self._sum_afresh()

    @property
    def objective(self) -> float | None:
        """See `ModelReplay.objective`."""
        if not self._track:
            return None
        sums = self._models.sums
        if not sums[2] <= FALL * abs(sums[:2].sum()):  # also where it was undefined meanwhile
            self._sum_afresh()
        return float(sums[:2].sum())

    def _sum_afresh(self) -> None:
        sums = self._models.sums
        sums[:2] = objective_parts(self._graph, unwritten(self.theta), self.local)
        sums[2] = abs(sums[:2].sum())
