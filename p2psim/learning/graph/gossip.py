"""Replays events with an algorithm of one's own: its methods for each update, gradients from the compiled kernel."""

from __future__ import annotations

import numpy as np

from p2psim.core.errors import SimulationError
from p2psim.core.events import COMMIT, DELIVER, DROP, SEND
from p2psim.learning.batches import Sampling
from p2psim.learning.graph.algorithms import GossipAlgorithm
from p2psim.learning.graph.problem import GraphProblem, OwnModels
from p2psim.learning.graph.replay import GraphRule
from p2psim.learning.in_flight import note_violation
from p2psim.learning.owner_kernel import UNKNOWN, release_gradient, snapped


class GossipReplay(OwnModels):
    """One replica of a `GossipAlgorithm`, fed with chunks of events of the exchange ``gossip``.

    Parameters
    ----------
    algorithm : GossipAlgorithm
    problem : GraphProblem
    rule : GraphRule
    start : ndarray, shape (n, p)
        The agents' first models.
    sampling : Sampling, optional
        How the records of each release are drawn; all take part when left out.

    Attributes
    ----------
    vectors_sent : int
        Models sent so far.
    """

    def __init__(
        self,
        algorithm: GossipAlgorithm,
        problem: GraphProblem,
        rule: GraphRule,
        start: np.ndarray,
        sampling: Sampling | None = None,
    ):
        super().__init__(start)
        self._algorithm, self._problem, self._rule = algorithm, problem, rule
        self._batch = None if sampling is None else sampling.for_kernel(problem.records)
        self._gradients, self._known = np.empty_like(self.theta), np.full(len(start), UNKNOWN, np.int8)
        self._sent: dict[int, np.ndarray] = {}
        # Of each agent, the event in which it heard a model last, and that model.
        self._heard: dict[int, tuple[int, np.ndarray]] = {}
        self.vectors_sent = self._commits = 0

    def feed(self, events: np.ndarray, noise: np.ndarray) -> None:
        """Replay events.

        Parameters
        ----------
        events : ndarray of EVENT
        noise : ndarray, shape (releases in these events, p)
            Noise of each release, in the order of the events.

        Raises
        ------
        SimulationError
            If a method gives what is no model, or an update follows no delivery.
        """
        row = 0
        columns = (events[name].tolist() for name in ("seq", "kind", "agent", "version", "cause", "release"))
        for seq, kind, agent, version, cause, release in zip(*columns, strict=True):
            if kind == SEND and version >= 0:
                self._sent[seq] = self.theta[agent].copy()
                self.vectors_sent += 1
            elif kind in (DELIVER, DROP) and cause in self._sent:
                model = self._sent.pop(cause)
                if kind == DELIVER:
                    self._heard[agent] = seq, model
            elif kind == COMMIT:
                heard, received = self._heard.pop(agent, (-1, self.theta[agent]))
                if heard != cause:
                    raise SimulationError(
                        f"{self._algorithm.kind} updates where a model is heard: give gossip"
                    )
                self._update(agent, received, release, noise[row : row + 1])
                row += release >= 0
                self._commits += 1

    def _update(self, i: int, received: np.ndarray, release: int, noise: np.ndarray) -> None:
        problem, rule, algorithm = self._problem, self._rule, self._algorithm
        self.theta[i] = self._model("mix", algorithm.mix(self.theta[i].copy(), received))
        if release < 0:
            return
        self._known[i] = UNKNOWN
        longest = release_gradient(
            problem.loss.for_kernel(), problem.X, problem.y, problem.norms(rule.order), problem.offsets,
            rule.clip, self._batch, rule.bound, self.theta, i, release, self._known, self._gradients,
        )  # fmt: skip
        if longest > 0:
            sizes = self.violations, self.violation_steps, self.violation_sizes
            note_violation(i, self._commits, longest / rule.bound, *sizes)
        at = self.theta[i].copy()
        released = np.array([snapped(value, rule.grid) for value in self._gradients[i] + noise[0]])
        gradient = released + 2 * problem.ridge[i] * at
        self.theta[i] = self._model("step", algorithm.step(at, gradient, release))

    def _model(self, method: str, made: np.ndarray) -> np.ndarray:
        if np.shape(made) != self.theta.shape[1:]:
            wanted, kind = self.theta.shape[1:], self._algorithm.kind
            raise SimulationError(
                f"{method} of {kind} must give a model of shape {wanted}, got {np.shape(made)}"
            )
        return made
