"""Replays events with an algorithm of one's own: its methods for each update, gradients from the compiled kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from p2psim.core.errors import SimulationError
from p2psim.core.events import COMMIT, DELIVER, DROP, SEND
from p2psim.learning.graph.models import COMMITS, SENT, LearningReplay
from p2psim.learning.graph.problem import GraphTask
from p2psim.learning.owner_kernel import UNKNOWN, note_violation, release_gradient, snapped


class GossipReplay(LearningReplay):
    """One replica of a `GossipAlgorithm`, fed with chunks of events of the exchange ``gossip``.

    Parameters
    ----------
    algorithm : GossipAlgorithm
    task : GraphTask
    """

    def __init__(self, algorithm: Any, task: GraphTask):
        super().__init__(task, track=False)
        self._algorithm = algorithm
        self._sent: dict[int, np.ndarray] = {}
        # Of each agent, the event in which it heard a model last, and that model.
        self._heard: dict[int, tuple[int, np.ndarray]] = {}

    def feed(self, events: np.ndarray, noise: np.ndarray) -> None:
        """See `ModelReplay.feed`.

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
                self.counters[SENT] += 1
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
                self.counters[COMMITS] += 1

    def _update(self, i: int, received: np.ndarray, release: int, noise: np.ndarray) -> None:
        algorithm = self._algorithm
        self.theta[i] = self._model("mix", algorithm.mix(self.theta[i].copy(), received))
        if release < 0:
            return
        self._models.known[i] = UNKNOWN
        longest = release_gradient(self._records, self._batch, i, release, self._models)
        if longest > 0:
            note_violation(i, self.counters[COMMITS], longest / self._records.bound, self.violations)
        at = self.theta[i].copy()
        released = np.array([snapped(value, self._grid) for value in self._models.gradients[i] + noise[0]])
        gradient = released + 2 * self._problem.ridge[i] * at
        self.theta[i] = self._model("step", algorithm.step(at, gradient, release))

    def _model(self, method: str, model: np.ndarray) -> np.ndarray:
        if np.shape(model) != self.theta.shape[1:]:
            wanted, kind = self.theta.shape[1:], self._algorithm.kind
            raise SimulationError(
                f"{method} of {kind} must give a model of shape {wanted}, got {np.shape(model)}"
            )
        return model
