"""Planners as objects: each keeps the state of the compiled function that writes its instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from p2psim.core.events import WAKE
from p2psim.learning.sgd import decentralised, gossip, learner
from p2psim.learning.sgd.mail import Mail
from p2psim.learning.sgd.program import PLANNED, Program
from p2psim.learning.sgd.replay import Planner
from p2psim.learning.sgd.training import Training, room_to_train

if TYPE_CHECKING:
    from p2psim.network.exchanges import Exchange
    from p2psim.network.mixing import MomentWeights

_ORDERS = {
    "gossip-then-gradient": decentralised.GOSSIP_FIRST,
    "gradient-then-gossip": decentralised.GRADIENT_FIRST,
    "together": decentralised.TOGETHER,
}
_MERGES = {
    "walk": gossip.WALK,
    "merge-update": gossip.MERGE_UPDATE,
    "update-merge": gossip.UPDATE_MERGE,
}


class DecentralisedPlanner(Planner):
    """Of decentralised SGD. On a graph that changes W is that of the moment, in rounds of their beginning."""

    def __init__(self, training: Training, order: str, exchange: Exchange, weights: MomentWeights):
        self._training, self._weights, links = training, weights, weights.graph
        self._mixing = decentralised.Mixing(
            _ORDERS[order],
            not exchange.sends_to_all,
            exchange.in_rounds,
            links.indptr,
            links.indices,
            weights.values,
        )
        self._agents = decentralised.Agents.first(np.zeros(links.agents, np.int64), links.indices.size)
        self._counts = np.zeros(2, np.int64)
        self.room = 6, 5, 8 + int(np.diff(links.indptr).max(initial=0))

    def begin(self, program: Program) -> None:
        """See `Planner.begin`."""
        program.holders[0] = self._agents.models.size

    def plan(
        self, events: np.ndarray, start: int, stop: int, receivers: np.ndarray, program: Program, mail: Mail
    ) -> tuple[int, int]:
        """See `Planner.plan`."""
        turns = np.zeros(0, np.int64)  # where W may become another
        if self._weights.upcoming < np.inf and not self._mixing.in_pairs:
            # A round mixes what is sent over the links that are there when it begins, and all wake.
            kinds = events["kind"][start:stop]
            turns = start + np.flatnonzero((kinds == WAKE) | (not self._mixing.in_rounds))
        times, last = events["time"][turns], PLANNED
        while last == PLANNED and start < stop:
            here = int(np.searchsorted(turns, start))
            if here < turns.size and turns[here] == start:
                self._weights.advance(float(times[here]))
            later = int(np.searchsorted(times, self._weights.upcoming))
            until = int(turns[later]) if later < turns.size else stop
            last, start = decentralised.plan(
                events, start, until, receivers, program, self.room, self._training, self._mixing, self._agents,
                self._counts, mail,
            )  # fmt: skip
        return int(last), int(start)

    @property
    def models(self) -> np.ndarray:
        """See `Planner.models`."""
        return self._agents.models

    @property
    def sent(self) -> int:
        """See `Planner.sent`."""
        return int(self._counts[decentralised.SENT])

    def restart_noise(self) -> None:
        """See `Planner.restart_noise`."""
        self._counts[decentralised.ROW] = 0


class GossipPlanner(Planner):
    """Of gossip learning."""

    def __init__(self, training: Training, merge: str, by_age: bool, agents: int):
        self._training, self._merging = training, gossip.Merging(_MERGES[merge], by_age)
        self._walkers = gossip.Walkers.first(np.zeros(agents, np.int64))
        self._counts = np.zeros(2, np.int64)
        slots, instructions, inputs = room_to_train(training)
        self.room = 2 * slots + 3, 2 * instructions + 1, 2 * inputs + 2

    def begin(self, program: Program) -> None:
        """See `Planner.begin`."""
        program.holders[0] = 2 * self._walkers.models.size

    def plan(
        self, events: np.ndarray, start: int, stop: int, receivers: np.ndarray, program: Program, mail: Mail
    ) -> tuple[int, int]:
        """See `Planner.plan`."""
        status, at = gossip.plan(
            events, start, stop, receivers, program, self.room, self._training, self._merging, self._walkers,
            self._counts, mail,
        )  # fmt: skip
        return int(status), int(at)

    @property
    def models(self) -> np.ndarray:
        """See `Planner.models`."""
        return self._walkers.models

    @property
    def sent(self) -> int:
        """See `Planner.sent`."""
        return int(self._counts[gossip.SENT])

    def restart_noise(self) -> None:
        """See `Planner.restart_noise`."""
        self._counts[gossip.ROW] = 0


class LearnerPlanner(Planner):
    """Of a central learner; ``weights`` (N,) are what answers count beside others."""

    def __init__(self, training: Training, rule: learner.LearnerRule, weights: np.ndarray):
        self._training, self._rule = training, rule
        self._owners = learner.Owners.first(weights, rule.size)
        self._slots, self._counts = np.array([0, -1]), learner.first_counts()
        slots, instructions, inputs = room_to_train(training)
        self.room = slots + 4, instructions + 4, inputs + weights.size + rule.size + 8

    def begin(self, program: Program) -> None:
        """See `Planner.begin`."""
        program.holders[0] = 1

    def plan(
        self, events: np.ndarray, start: int, stop: int, receivers: np.ndarray, program: Program, mail: Mail
    ) -> tuple[int, int]:
        """See `Planner.plan`."""
        status, at = learner.plan(
            events, start, stop, receivers, program, self.room, self._training, self._rule, self._slots,
            self._owners, self._counts, mail,
        )  # fmt: skip
        return int(status), int(at)

    @property
    def models(self) -> np.ndarray:
        """See `Planner.models`."""
        return self._slots[:1]

    @property
    def sent(self) -> int:
        """See `Planner.sent`."""
        return int(self._counts[learner.SENT])

    def restart_noise(self) -> None:
        """See `Planner.restart_noise`."""
        self._counts[learner.ROW] = 0
