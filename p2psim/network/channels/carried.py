"""A message in a medium, which is also the event of what comes next for it."""

from __future__ import annotations

from collections.abc import Sequence

from p2psim.network.channels.medium import Ended, Ends
from p2psim.network.timers import Later


class Carried(Later):
    """A message on its way to receivers: what `Medium.carry` got, and in ``ring`` what becomes of it next."""

    def __init__(
        self,
        sender: int,
        receivers: Sequence[int],
        seq: int,
        version: int,
        release: int,
        heard: Ended,
        lost: Ended,
    ):
        self.sender = sender
        self.receivers = receivers
        self.seq = seq
        self.version = version
        self.release = release
        self.heard = heard
        self.lost = lost

    def arrive_at_all(self, ends: Ends) -> None:
        """Let it arrive at all receivers."""
        arrive = ends.arrive
        for receiver in self.receivers:
            arrive(self.sender, receiver, self.seq, self.version, self.release, self.heard, self.lost)

    def fail_at_all(self, ends: Ends, outcome: int) -> None:
        """Let it fail at all receivers."""
        fail = ends.fail
        for receiver in self.receivers:
            fail(self.sender, receiver, self.seq, self.version, self.release, self.heard, self.lost, outcome)
