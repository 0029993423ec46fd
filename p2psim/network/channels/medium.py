"""What carries messages, and whom it tells how each of them ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

#: Called when a message ends at a receiver: (sender, receiver, seq of that event, version, release).
Ended = Callable[[int, int, int, int, int], None]

#: A message at one receiver: sender, receiver, seq of the send, version, release, and whom to call at its end.
Message = tuple[int, int, int, int, int, Ended, Ended]


class Medium(Protocol):
    """Takes over messages: for each receiver it sees to it that, now or later, its `Ends` are told once."""

    def carry(
        self,
        sender: int,
        receivers: Sequence[int],
        seq: int,
        version: int,
        release: int,
        heard: Ended,
        lost: Ended,
        lane: int = 0,
    ) -> None:
        """Take over a message, sent at this moment, for each of its receivers.

        Parameters
        ----------
        sender : int
        receivers : sequence of int
        seq : int
            Of the send.
        version, release : int
        heard, lost : callable
            What the world calls at its end.
        lane : int
            Which of the sender's streams to draw from: 0, and 1 for what is sent again, so that this moves no draw of
            what is sent for the first time.
        """


class Ends(Protocol):
    """Is told how a message ended at a receiver: the world, or what sends again first."""

    def arrive(
        self, sender: int, receiver: int, seq: int, version: int, release: int, heard: Ended, lost: Ended
    ) -> None:
        """Take in a message that has reached the place of its receiver."""

    def fail(
        self,
        sender: int,
        receiver: int,
        seq: int,
        version: int,
        release: int,
        heard: Ended,
        lost: Ended,
        outcome: int,
    ) -> None:
        """Hear that a message has not come to its receiver, and why."""
