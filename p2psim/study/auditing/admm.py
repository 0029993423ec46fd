"""Gossip ADMM under audit: what the other end of a link sees of an agent's models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from p2psim.learning.admm import GossipAdmm
from p2psim.learning.admm_replay import AdmmReplay
from p2psim.learning.batches import sampling
from p2psim.network.events import COMMIT, DELIVER, SEND
from p2psim.study.auditing.arena import Record, Seen
from p2psim.study.auditing.graph import GraphArena, replayed
from p2psim.study.families.graph_setting import admm_rule, algorithm_of

#: Weight of the link between the two agents of an arena.
_WEIGHT = 1.0


class Ends:
    """What the two ends of a link hold beside their models, in all copies: see `p2psim.learning.admm`.

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


class AdmmArena(GraphArena):
    """Two agents of a cell of gossip ADMM, linked with each other; see `p2psim.study.auditing.arena.Arena`.

    The link has the weight 1. Each keeps its confidence, step and ridge as in the cell.
    """

    def play(self, held: Sequence[Record], events: np.ndarray, noise: np.ndarray, key: np.ndarray) -> Seen:
        """Replay events for many copies, and solve each step of a model for its noisy gradient.

        θ_i ← θ_i − (μc_i(∇L_i(θ_i) + η) + (ρ + h)θ_i − target)/(ρ + h + μc_i·L_i^loc) gives the mean gradient of
        records plus η, as ∇L_i(θ) also holds 2λ_i·θ.
        """
        copies = len(noise)
        start = np.stack([record.start for record in held])
        problem = self._problem(held, copies)
        algorithm = algorithm_of(self._cell.scenario)
        assert isinstance(algorithm, GossipAdmm)
        rule = admm_rule(algorithm, replace(self._cell.rule, grid=self.grid), problem)
        batches = sampling(self._batch, problem.records, key)
        replay = AdmmReplay(problem, rule, np.tile(start, (copies, 1)), track=False, sampling=batches)
        claimed, agents = self._cell.problem, list(self.agents)
        pull = claimed.mu * _WEIGHT * claimed.confidence[agents]
        ends = Ends(start, copies, rule.rho)
        step = 1.0 / (ends.stiffness + pull * claimed.smoothness[agents])
        gradients, models = np.empty_like(noise), np.empty_like(noise)
        kinds = {int(event["seq"]): int(event["kind"]) for event in events}
        said: dict[int, np.ndarray] = {}  # what each sent last
        for event, release, before, after in replayed(replay, events, noise):
            i = int(event["agent"])
            if event["kind"] == SEND:
                if release is not None:
                    move = (before - after) / step[i]
                    slope = move - ends.stiffness * before + ends.target(i)
                    gradients[:, release] = slope / pull[i] - 2 * claimed.ridge[agents[i]] * before
                    models[:, release] = before
                said[i] = ends.message(i, after)
                if kinds.get(int(event["cause"])) == DELIVER:  # an answer
                    ends.meet(i, said[i], said[1 - i])
            elif event["kind"] == COMMIT:
                ends.meet(i, said[i], said[1 - i])
        return Seen(gradients, models)
