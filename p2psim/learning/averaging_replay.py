"""Replays events as gossip averaging (Boyd, Ghosh, Prabhakar, Shah 2006)."""

from __future__ import annotations

import numpy as np

from p2psim.errors import SimulationError
from p2psim.learning import averaging_kernel as kernel
from p2psim.learning.in_flight import DONE, InFlight
from p2psim.learning.own_models import OwnModels


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
        self.counters = np.zeros(kernel.COUNTERS, np.int64)

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
            status, at = kernel.replay(
                events, at, self.theta, self._heard, self._heard_seq,
                mail.places, mail.payloads, mail.free, mail.free_rows, self.counters,
            )  # fmt: skip
            if status == kernel.UNHEARD:
                raise SimulationError(
                    f"event {events['seq'][at]}: averaging updates a model when another is heard, not on waking"
                )
            if status != DONE:
                mail.make_room(status)

    @property
    def vectors_sent(self) -> int:
        """Models sent so far; a question carries none."""
        return int(self.counters[kernel.SENT])

    @property
    def messages_held(self) -> int:
        """Messages on their way."""
        return self._mail.held
