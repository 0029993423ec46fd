"""The compiled replay of gossip averaging (Boyd, Ghosh, Prabhakar, Shah 2006) and push-sum (Kempe, Dobra, Gehrke 2003).

In gossip averaging, an agent that hears a model takes the mean of it and its own. In push-sum it adds the half that
another has sent of its sum and weight. State:

- ``models`` (n, p): the agents' models; in push-sum, sums divided by weights;
- ``state`` (n, width): the same array; in push-sum (n, p + 1), each agent's sum and, last, its weight;
- ``hearing`` (`Hearing`): what agents have heard, and begun to compute with;
- messages on their way (:mod:`p2psim.learning.in_flight`).
"""

from typing import ClassVar, NamedTuple

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.errors import SimulationError
from p2psim.core.events import BEGIN, COMMIT, DELIVER, DROP, SEND
from p2psim.learning.graph.models import SENT, ModelReplay
from p2psim.learning.in_flight import DONE, InFlight, copy_row, post, take

#: Status of a stream in which a model is updated without one that was heard.
UNHEARD = -3


class Hearing(NamedTuple):
    """What agents have heard, for kernels.

    Attributes
    ----------
    heard : ndarray, shape (n, width)
        What each agent heard last, since it may answer between hearing a model and using it.
    heard_seq : ndarray of int64, shape (n,)
        The delivery that brought it.
    begun : ndarray, shape (n, width)
        Where agents take time to compute, what each has begun with.
    begun_seq : ndarray of int64, shape (n,)
        The event with which it did.
    """

    heard: np.ndarray
    heard_seq: np.ndarray
    begun: np.ndarray
    begun_seq: np.ndarray

    @classmethod
    def none(cls, n: int, width: int) -> "Hearing":
        """Before anything was heard."""
        return cls(np.empty((n, width)), np.full(n, -1), np.empty((n, width)), np.full(n, -1))


@njit(inline="always")
def keep_heard(event, mail, hearing):  # type: ignore[no-untyped-def]
    """End a message; where it is delivered, keep what it brought as what its receiver heard last."""
    row, _ = take(event.cause, mail)
    if event.kind == DELIVER and row >= 0:
        copy_row(mail.payloads[row], hearing.heard[event.agent])
        hearing.heard_seq[event.agent] = event.seq


@njit(inline="always")
def begin(event, hearing):  # type: ignore[no-untyped-def]
    """Let an agent compute with what it heard last; returns whether the event follows that delivery."""
    i = event.agent
    copy_row(hearing.heard[i], hearing.begun[i])
    hearing.begun_seq[i] = event.seq
    return hearing.heard_seq[i] == event.cause


@njit(inline="always")
def used(event, hearing):  # type: ignore[no-untyped-def]
    """What an agent updates with at a commit; empty where that follows no model that was heard."""
    i = event.agent
    if hearing.heard_seq[i] == event.cause:
        return hearing.heard[i]
    if hearing.begun_seq[i] == event.cause:
        return hearing.begun[i]
    return hearing.heard[i, :0]


@njit(allocates=False)
def replay(events, start, models, state, hearing, mail, counters, factors):  # type: ignore[no-untyped-def]
    """Replay events from ``start``; returns (status, next event).

    A sender's state is multiplied by the first factor, and the sum of a receiver's and what it hears by the second.
    """
    at_send, at_commit = factors
    p, width = models.shape[1], state.shape[1]
    for at in range(start, events.size):
        event = events[at]
        kind, i = event.kind, event.agent
        if kind == SEND and event.version >= 0:
            row = post(event.seq, 0, mail)
            if row < 0:
                return row, at
            for a in range(width):
                state[i, a] *= at_send
                mail.payloads[row, a] = state[i, a]
            counters[SENT] += 1
        elif kind in (DELIVER, DROP):
            keep_heard(event, mail, hearing)
        elif kind == BEGIN:
            if not begin(event, hearing):
                return UNHEARD, at
        elif kind == COMMIT:
            other = used(event, hearing)
            if other.size == 0:
                return UNHEARD, at
            for a in range(width):
                state[i, a] = at_commit * (state[i, a] + other[a])
            if width > p:
                for a in range(p):
                    models[i, a] = state[i, a] / state[i, p]
    return DONE, events.size


class AveragingReplay(ModelReplay):
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

    name: ClassVar[str] = "averaging"
    factors: ClassVar[tuple[float, float]] = (1.0, 0.5)

    def __init__(self, start: np.ndarray):
        super().__init__(start)
        self._state = self._first_state()
        self._hearing = Hearing.none(*self._state.shape)
        self.mail = InFlight.of(self._state.shape[1])

    def _first_state(self) -> np.ndarray:
        return self.theta

    def feed(self, events: np.ndarray, noise: np.ndarray | None = None) -> None:
        """Replay events, which make no releases; see `ModelReplay.feed`.

        Raises
        ------
        SimulationError
            If there is a release, or an update without a message that was heard.
        """
        if noise is not None and len(noise):
            raise SimulationError(f"{self.name} touches no data, but there are releases")
        at = 0
        while at < events.size:
            status, at = replay(
                events, at, self.theta, self._state, self._hearing, self.mail, self.counters, self.factors
            )
            if status == UNHEARD:
                raise SimulationError(
                    f"event {events['seq'][at]}: {self.name} updates a model when another is heard, not on waking"
                )
            if status != DONE:
                self.mail = self.mail.with_room(status)


class PushSumReplay(AveragingReplay):
    """One replica of push-sum, fed with chunks of events.

    Parameters
    ----------
    start : ndarray, shape (n, p)

    Attributes
    ----------
    theta : ndarray, shape (n, p)
        The agents' models: sums by weights.
    """

    name = "push-sum"
    factors = (0.5, 1.0)

    def _first_state(self) -> np.ndarray:
        return np.column_stack([self.theta, np.ones(len(self.theta))])

    @property
    def mass(self) -> float:
        """Weight that all agents hold, by n: 1 as long as nothing is lost or on its way."""
        return float(self._state[:, -1].mean())
