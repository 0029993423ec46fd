"""Replays events of algorithms that train one model: a planner writes instructions, an executor carries them out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.core.errors import SimulationError
from p2psim.core.events import WAKE
from p2psim.learning.sgd import decentralised, gossip, learner
from p2psim.learning.sgd.execute import executor_of
from p2psim.learning.sgd.program import FREE, PLANNED, Program
from p2psim.learning.sgd.training import ROW, SENT, Mail, Training, room_to_train
from p2psim.privacy.releases import Violations

if TYPE_CHECKING:
    from p2psim.learning.sgd.problem import TrainingTask
    from p2psim.network.exchanges import Exchange
    from p2psim.network.mixing import MomentWeights


#: Slots, instructions and inputs that one event takes at most.
Room = tuple[int, int, int]

#: Bytes of instructions that are written before they are carried out, about.
_INSTRUCTIONS = 4096


class Planner:
    """Turns events into instructions; slot 0 holds the first model.

    Parameters
    ----------
    kernel : callable
        Writes instructions, such as `gossip.plan`.
    state : tuple
        What it takes besides events, the program and its room: how agents train, and what they hold.
    counts : ndarray of int64
        Counts that it keeps, first `ROW` and `SENT`.
    models : ndarray of int64
        Slots of the models that are measured: the learner's, or one an agent.
    holders : int
        How many hold slot 0 at first.
    room : tuple of int
        Slots, instructions and inputs that one event takes at most.
    """

    def __init__(
        self,
        kernel: Callable[..., tuple[int, int]],
        state: tuple[Any, ...],
        counts: np.ndarray,
        models: np.ndarray,
        holders: int,
        room: Room,
    ):
        self._kernel, self._state, self._counts = kernel, state, counts
        self.models, self.holders, self.room = models, holders, room

    def plan(
        self, events: np.ndarray, start: int, stop: int, receivers: np.ndarray, program: Program, mail: Mail
    ) -> tuple[int, int]:
        """Write instructions for events ``start`` to ``stop``; returns `PLANNED` or `NEEDS_ROOM`, and the next event.

        ``receivers`` is to how many each event is sent. Noise is read from row 0 of those of these events on.
        """
        status, at = self._kernel(
            events, start, stop, receivers, program, self.room, *self._state, self._counts, mail
        )
        return int(status), int(at)

    @property
    def sent(self) -> int:
        """Models sent so far."""
        return int(self._counts[SENT])

    def restart_noise(self) -> None:
        """Read noise from row 0 on again."""
        self._counts[ROW] = 0


class ModelsReplay(ABC):
    """One replica, fed with chunks of events.

    Attributes
    ----------
    violations : Violations
        None: every record's gradient is clipped.
    objective : None
        Nothing is kept up to date.
    """

    objective: None = None

    def __init__(self, task: TrainingTask):
        self.violations = Violations.none(task.problem.agents)

    @abstractmethod
    def feed(self, events: np.ndarray, noise: np.ndarray) -> None:
        """Replay events.

        Parameters
        ----------
        events : ndarray of EVENT
        noise : ndarray, shape (queries of these events, p)
            In the order of the events.
        """

    @property
    @abstractmethod
    def theta(self) -> np.ndarray:
        """The models now, shape (n, p), or (1, p) of a learner."""

    @property
    @abstractmethod
    def vectors_sent(self) -> int:
        """Models sent so far, however many hear one."""

    def check(self) -> None:
        """Raise a SimulationError if a model is not finite."""
        finite = np.isfinite(self.theta).all(axis=1)
        if not finite.all():
            who = f"the model of agent {int(np.argmin(finite))}" if finite.size > 1 else "the model"
            raise SimulationError(f"{who} is not finite: take a smaller step")


class TrainingReplay(ModelsReplay):
    """A replica of a planner's instructions.

    Parameters
    ----------
    planner : Planner
    task : TrainingTask
    receivers : callable
        Gives of events to how many each is sent, shape (events,).
    """

    def __init__(self, planner: Planner, task: TrainingTask, receivers: Callable[[np.ndarray], np.ndarray]):
        slots = planner.room[0] + 8
        self._planner, self._program = planner, Program.empty(slots, _INSTRUCTIONS)
        self._mail, self._executor, self._receivers = Mail.empty(), executor_of(task, slots), receivers
        # The first model is in slot 0, the first one that is taken.
        self._program.counts[FREE] -= 1
        self._program.holders[0] = planner.holders
        super().__init__(task)

    def feed(self, events: np.ndarray, noise: np.ndarray) -> None:
        """See `ModelsReplay.feed`."""
        planner, receivers, start = self._planner, self._receivers(events), 0
        planner.restart_noise()
        while start < events.size:
            before = start
            status, start = planner.plan(events, start, events.size, receivers, self._program, self._mail)
            self._executor.run(self._program, noise)
            if status != PLANNED and start == before:
                # Without instructions in the way there is still no room for this event.
                self._mail = self._mail.doubled() if self._is_full(events[start]) else self._mail
                self._program = self._program.with_room(*planner.room)

    def _is_full(self, event: np.void) -> bool:
        place = int(event["seq"]) % len(self._mail.places)
        return bool(self._mail.places[place, 0] >= 0)

    @property
    def theta(self) -> np.ndarray:
        """See `ModelsReplay.theta`."""
        return self._executor.pool[self._planner.models]

    @property
    def vectors_sent(self) -> int:
        """See `ModelsReplay.vectors_sent`."""
        return self._planner.sent


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
        self._weights, links = weights, weights.graph
        self._mixing = decentralised.Mixing(
            _ORDERS[order],
            not exchange.sends_to_all,
            exchange.in_rounds,
            links.indptr,
            links.indices,
            weights.values,
        )
        agents = decentralised.Agents.first(np.zeros(links.agents, np.int64), links.indices.size)
        room = 6, 5, 8 + int(np.diff(links.indptr).max(initial=0))
        state, counts = (training, self._mixing, agents), np.zeros(2, np.int64)
        super().__init__(decentralised.plan, state, counts, agents.models, links.agents, room)

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
            last, start = super().plan(events, start, until, receivers, program, mail)
        return last, start


class GossipPlanner(Planner):
    """Of gossip learning."""

    def __init__(self, training: Training, merge: str, by_age: bool, agents: int):
        walkers = gossip.Walkers.first(np.zeros(agents, np.int64))
        slots, instructions, inputs = room_to_train(training.steps)
        room = 2 * slots + 3, 2 * instructions + 1, 2 * inputs + 2
        state, counts = (training, gossip.Merging(_MERGES[merge], by_age), walkers), np.zeros(2, np.int64)
        super().__init__(gossip.plan, state, counts, walkers.models, 2 * agents, room)


class LearnerPlanner(Planner):
    """Of a central learner; ``weights`` (N,) are what answers count beside others, ``steps`` (N,) those of each."""

    def __init__(self, training: Training, rule: learner.LearnerRule, weights: np.ndarray, steps: np.ndarray):
        models = np.array([0, -1])
        slots, instructions, inputs = room_to_train(int(steps.max(initial=1)))
        room = slots + 4, instructions + 4, inputs + weights.size + rule.size + 8
        state = training, rule, models, learner.Owners.first(weights, steps, rule.size)
        super().__init__(learner.plan, state, learner.first_counts(), models[:1], 1, room)
