"""Compiled replays of gossip averaging (Boyd, Ghosh, Prabhakar, Shah 2006) and push-sum (Kempe, Dobra, Gehrke 2003).

In gossip averaging, an agent that hears a model takes the mean of it and its own. State:

- ``models`` (n, p): the agents' models; in push-sum, sums divided by weights;
- ``mass`` (n, p + 1), in push-sum alone: each agent's sum and, last, its weight;
- ``heard`` (n, p), in push-sum (n, p + 1), and ``heard_seq`` (n,): what each agent heard last and the delivery that
  brought it, since an agent may answer between hearing a model and using it;
- messages on their way (:mod:`p2psim.learning.in_flight`).
"""

from __future__ import annotations

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.errors import SimulationError
from p2psim.core.events import COMMIT, DELIVER, DROP, SEND
from p2psim.learning.graph.problem import OwnModels
from p2psim.learning.in_flight import DONE, InFlight, post, take

#: Status of a stream in which a model is updated without one that was heard.
UNHEARD = -3

# Places in the vector of counters.
COMMITS, SENT, COUNTERS = 0, 1, 2


@njit()
def replay_averaging(  # type: ignore[no-untyped-def]
    events, start, models, heard, heard_seq, places, payloads, free, free_rows, counters,
):  # fmt: skip
    """Replay events from ``start``; returns (status, next event)."""
    p = models.shape[1]
    for at in range(start, events.size):
        event = events[at]
        kind, i = event.kind, event.agent
        if kind == SEND and event.version >= 0:
            row = post(event.seq, 0, places, free, free_rows)
            if row < 0:
                return row, at
            for a in range(p):
                payloads[row, a] = models[i, a]
            counters[SENT] += 1
        elif kind in (DELIVER, DROP):
            row, _ = take(event.cause, places, free, free_rows)
            if kind == DELIVER and row >= 0:
                for a in range(p):
                    heard[i, a] = payloads[row, a]
                heard_seq[i] = event.seq
        elif kind == COMMIT:
            if heard_seq[i] != event.cause:
                return UNHEARD, at
            for a in range(p):
                models[i, a] = 0.5 * (models[i, a] + heard[i, a])
            counters[COMMITS] += 1
    return DONE, events.size


class AveragingReplay(OwnModels):
    """One replica of gossip averaging, fed with chunks of events.

    On hearing a model an agent takes x_i ← (x_i + x_j)/2. In push-pull over an ideal channel both ends of an exchange
    use the models from before it: E[x] and E‖x − x̄‖² then follow the matrices of Boyd et al. exactly, and Σ x_i stays.
    With a delay an agent's model may have moved when the answer comes; the sum then stays on average only.

    Averaging touches no data: its events carry no releases, and no noise belongs to them. A start that depends on data
    is to be paid for elsewhere.

    Parameters
    ----------
    start : ndarray, shape (n, p)
    """

    def __init__(self, start: np.ndarray):
        super().__init__(start)
        n, p = self.theta.shape
        self._heard, self._heard_seq = np.empty((n, p)), np.full(n, -1, np.int64)
        self._mail = InFlight(p)
        self.counters = np.zeros(COUNTERS, np.int64)

    def feed(self, events: np.ndarray, noise: np.ndarray | None = None) -> None:
        """Replay events.

        Parameters
        ----------
        events : ndarray of EVENT
        noise : ndarray, shape (0, p), optional
            Of releases in these events: there must be none.

        Raises
        ------
        SimulationError
            If there is a release, or an update without a model that was heard.
        """
        if noise is not None and len(noise):
            raise SimulationError("averaging touches no data, but there are releases")
        mail, at = self._mail, 0
        while at < events.size:
            status, at = replay_averaging(
                events, at, self.theta, self._heard, self._heard_seq,
                mail.places, mail.payloads, mail.free, mail.free_rows, self.counters,
            )  # fmt: skip
            if status == UNHEARD:
                raise SimulationError(
                    f"event {events['seq'][at]}: averaging updates a model when another is heard, not on waking"
                )
            if status != DONE:
                mail.make_room(status)

    @property
    def vectors_sent(self) -> int:
        """Models sent so far; a question carries none."""
        return int(self.counters[SENT])

    @property
    def messages_held(self) -> int:
        """Messages on their way."""
        return self._mail.held


@njit()
def replay_push_sum(  # type: ignore[no-untyped-def]
    events, start, mass, models, heard, heard_seq, places, payloads, free, free_rows, counters
):
    """Replay events from ``start``; returns (status, next event)."""
    p = models.shape[1]
    for at in range(start, events.size):
        event = events[at]
        kind, i = event.kind, event.agent
        if kind == SEND and event.version >= 0:
            row = post(event.seq, 0, places, free, free_rows)
            if row < 0:
                return row, at
            for a in range(p + 1):
                mass[i, a] *= 0.5
                payloads[row, a] = mass[i, a]
            counters[SENT] += 1
        elif kind in (DELIVER, DROP):
            row, _ = take(event.cause, places, free, free_rows)
            if kind == DELIVER and row >= 0:
                heard[i] = payloads[row]
                heard_seq[i] = event.seq
        elif kind == COMMIT:
            if heard_seq[i] != event.cause:
                return UNHEARD, at
            for a in range(p + 1):
                mass[i, a] += heard[i, a]
            for a in range(p):
                models[i, a] = mass[i, a] / mass[i, p]
            counters[COMMITS] += 1
    return DONE, events.size


class PushSumReplay(OwnModels):
    """One replica of push-sum, fed with chunks of events.

    Parameters
    ----------
    start : ndarray, shape (n, p)

    Attributes
    ----------
    theta : ndarray, shape (n, p)
        The agents' models: sums by weights.
    """

    def __init__(self, start: np.ndarray):
        super().__init__(start)
        n, p = self.theta.shape
        self._mass = np.column_stack([self.theta, np.ones(n)])
        self._heard, self._heard_seq = np.empty((n, p + 1)), np.full(n, -1, np.int64)
        self._mail = InFlight(p + 1)
        self.counters = np.zeros(COUNTERS, np.int64)

    def feed(self, events: np.ndarray, noise: np.ndarray | None = None) -> None:
        """Replay events.

        Parameters
        ----------
        events : ndarray of EVENT
        noise : ndarray, shape (0, p), optional
            Of releases in these events: there must be none.

        Raises
        ------
        SimulationError
            If there is a release, or an update without a message that was heard.
        """
        if noise is not None and len(noise):
            raise SimulationError("push-sum touches no data, but there are releases")
        mail, at = self._mail, 0
        while at < events.size:
            status, at = replay_push_sum(
                events, at, self._mass, self.theta, self._heard, self._heard_seq,
                mail.places, mail.payloads, mail.free, mail.free_rows, self.counters,
            )  # fmt: skip
            if status == UNHEARD:
                raise SimulationError(
                    f"event {events['seq'][at]}: push-sum updates a model when another is heard, not on waking"
                )
            if status != DONE:
                mail.make_room(status)

    @property
    def mass(self) -> float:
        """Weight that all agents hold, by n: 1 as long as nothing is lost or on its way."""
        return float(self._mass[:, -1].mean())

    @property
    def vectors_sent(self) -> int:
        """Messages sent so far, of p + 1 numbers each."""
        return int(self.counters[SENT])

    @property
    def messages_held(self) -> int:
        """Messages on their way."""
        return self._mail.held
