"""Replays events as gossip ADMM; see :mod:`p2psim.learning.admm` for the method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2psim.errors import SimulationError
from p2psim.learning import admm_kernel as kernel
from p2psim.learning import graph_kernel
from p2psim.learning.batches import Sampling
from p2psim.learning.graph_problem import GraphProblem
from p2psim.learning.in_flight import DONE, InFlight
from p2psim.learning.own_models import LearnedModels


@dataclass(frozen=True)
class AdmmRule:
    """How an agent makes its local steps.

    Attributes
    ----------
    rho : float
        Penalty, positive.
    inner : int
        Gradient steps of each local problem; each takes the gradient of the agent's records anew.
    clip, order, bound, grid
        As in `p2psim.learning.graph_replay.GraphRule`.
    anchored : bool
        What local steps without a release minimise in place of the agent's loss: nothing, or, if anchored, half the
        squared distance from its last model that touched its data.
    """

    rho: float
    inner: int = 10
    clip: float = np.inf
    order: int = 1
    bound: float = np.inf
    anchored: bool = False
    grid: float | None = None


class AdmmReplay(LearnedModels):
    """One replica of gossip ADMM, fed with chunks of events of the exchange ``{kind: gossip, mode: edge}``.

    Parameters
    ----------
    problem : GraphProblem
    rule : AdmmRule
    start : ndarray, shape (n, p)
        The agents' first models, which their neighbours know.
    anchor : ndarray, shape (n, p), optional
        What anchored steps without a release pull towards, until the agent's first release; the start when left out.
    track : bool
        Keep Q_L up to date.
    sampling : Sampling, optional
        How the records of each release are drawn; all take part when left out.

    Attributes
    ----------
    theta : ndarray, shape (n, p)
        The agents' own models. One changes when its agent sends, before the commit that the exchange may end in.
    """

    def __init__(
        self,
        problem: GraphProblem,
        rule: AdmmRule,
        start: np.ndarray,
        anchor: np.ndarray | None = None,
        track: bool = True,
        sampling: Sampling | None = None,
    ):
        super().__init__(problem, rule, start, anchor, track, sampling)
        self._rule, (n, p) = rule, self.theta.shape
        owner = np.repeat(np.arange(n), np.diff(problem.indptr))
        self._pulled = np.stack([self.theta[owner], self.theta[problem.indices]], axis=1)
        self._multipliers = np.zeros((owner.size, 2, p))
        self._newest = np.full(owner.size, -1, np.int64)
        self._heard, self._heard_of = np.zeros(4 * p), np.full(2, -1, np.int64)
        self._mail = InFlight(4 * p)
        self.counters = np.zeros(kernel.COUNTERS, np.int64)

    def feed(self, events: np.ndarray, noise: np.ndarray) -> None:
        """Replay events.

        Parameters
        ----------
        events : ndarray of EVENT
        noise : ndarray, shape (releases in these events, p)
            Noise of each release, in the order of the events; added to the mean gradient of the agent's records.

        Raises
        ------
        SimulationError
            If there is noise and more than one inner step: one draw does not hide several gradients.
        """
        problem, rule, mail = self._problem, self._rule, self._mail
        if rule.inner > 1 and noise.any():
            raise SimulationError(
                f"a release of gossip ADMM is private with inner: 1 only, for each of its {rule.inner} inner steps "
                "takes the gradient anew"
            )
        self.counters[kernel.NOISE_ROW] = 0
        at = 0
        while at < events.size:
            status, at = kernel.replay(
                events, at, self.theta, self._gradients, self._known, self._anchor,
                self._pulled, self._multipliers, self._newest,
                self._heard, self._heard_of, mail.places, mail.payloads, mail.free, mail.free_rows,
                self.counters, self._sums, self.local,
                problem.indptr, problem.indices, problem.weights, problem.degrees,
                problem.loss.for_kernel(), problem.X, problem.y, problem.norms(rule.order), problem.offsets,
                rule.clip, rule.grid, self._batch, rule.bound,
                self.violations, self.violation_steps, self.violation_sizes,
                problem.smoothness, problem.pull, problem.ridge, rule.rho, rule.inner,
                graph_kernel.ANCHORED if rule.anchored else graph_kernel.AVERAGE, noise, self._track,
            )  # fmt: skip
            if status != DONE:
                mail.make_room(status)

    @property
    def vectors_sent(self) -> int:
        """Vectors of length p sent so far: two a message, four for each link woken."""
        return int(self.counters[kernel.SENT])

    @property
    def messages_held(self) -> int:
        """Messages on their way."""
        return self._mail.held
