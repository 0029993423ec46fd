"""Replays events as push-sum (Kempe, Dobra, Gehrke 2003)."""

from __future__ import annotations

import numpy as np

from p2psim.errors import SimulationError
from p2psim.learning import averaging_kernel, push_sum_kernel
from p2psim.learning.in_flight import DONE, InFlight
from p2psim.learning.own_models import OwnModels


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
        self.counters = np.zeros(averaging_kernel.COUNTERS, np.int64)

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
            status, at = push_sum_kernel.replay(
                events, at, self._mass, self.theta, self._heard, self._heard_seq,
                mail.places, mail.payloads, mail.free, mail.free_rows, self.counters,
            )  # fmt: skip
            if status == averaging_kernel.UNHEARD:
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
        return int(self.counters[averaging_kernel.SENT])

    @property
    def messages_held(self) -> int:
        """Messages on their way."""
        return self._mail.held
