"""What one place hears: which transmissions overlap there."""

from __future__ import annotations

import math
from typing import Protocol


class Received(Protocol):
    """What an ear needs of a transmission; see `Reception`."""

    sender: int
    end: float
    before: tuple[int, ...]
    others: tuple[int, ...]


class Reception:
    """A transmission as it is received at one place.

    Attributes
    ----------
    sender : int
    end : float
    before, others : tuple of int
        Other senders, at most two of them, that were on the air when it began, and in all. Two are enough to know
        whether there is one beside any receiver, who does not disturb itself.
    """

    __slots__ = ("before", "end", "others", "sender")

    def __init__(self, sender: int):
        self.sender = sender
        self.end = 0.0
        self.before: tuple[int, ...] = ()
        self.others: tuple[int, ...] = ()


def other_than(receiver: int, senders: tuple[int, ...]) -> bool:
    """Whether there is a sender beside the receiver."""
    return bool(senders) and (senders[0] != receiver or len(senders) > 1)


class Ear:
    """Transmissions on the air at one place; intervals are open at their end, and one sender's do not collide.

    A transmission costs a bounded amount of work on average: it is compared with the three senders whose
    transmissions end last, and each that is being received is marked at most twice. Most begin in quiet, and then
    only that is noted.
    """

    __slots__ = ("_last", "_open", "alone", "until")

    def __init__(self) -> None:
        # When the last of all ends that have begun. Who begins in quiet may set these two without a call of `begin`.
        self.until = -math.inf
        # The one that began in quiet, as long as no other has begun since; the lists are made when one does.
        self.alone: Received | None = None
        # (end, sender) of up to three different senders, those that end last, the last first.
        self._last: list[tuple[float, int]] = []
        # What is on the air and may still meet another sender that counts.
        self._open: list[Received] = []

    def is_busy(self, sender: int, now: float) -> bool:
        """Whether a sender hears another one."""
        if self.until <= now:
            return False
        if self.alone is not None:
            return self.alone.sender != sender
        for end, other in self._last:
            if end <= now:
                return False
            if other != sender:
                return True
        return False

    def begin(self, one: Received, start: float, end: float) -> None:
        """Put a transmission on the air; starts must not go back."""
        one.end = end
        if self.until <= start:
            self.until = end
            self.alone = one
            return
        first = self.alone
        if first is not None:
            self._last, self._open = [(first.end, first.sender)], [first]
            self.alone = None
        self._overlap(one, start, end)
        self.until = self._last[0][0]

    def _overlap(self, one: Received, start: float, end: float) -> None:
        """Put a transmission on the air while there are others."""
        sender = one.sender
        before: tuple[int, ...] = ()
        still = [(end, sender)]
        for entry in self._last:
            if entry[0] <= start:
                break
            if entry[1] != sender:
                still.append(entry)
                if len(before) < 2:
                    before += (entry[1],)
            elif entry[0] > end:
                still[0] = entry
        still.sort(key=_end, reverse=True)
        self._last = still[:3]
        if self._open:
            self._mark(sender, start)
        if before:
            one.before = one.others = before
        if len(before) < 2:
            self._open.append(one)

    def _mark(self, sender: int, start: float) -> None:
        """Let all that is being received know of another sender."""
        still = []
        for one in self._open:
            if one.end <= start:
                continue
            if one.sender != sender and sender not in one.others:
                one.others += (sender,)
            if len(one.others) < 2:
                still.append(one)
        self._open = still


def _end(entry: tuple[float, int]) -> float:
    return entry[0]
