"""What one place hears: which transmissions overlap there."""

from __future__ import annotations


class Reception:
    """A transmission as it is received at one place.

    Attributes
    ----------
    sender : int
    end : float
    before, others : list of int
        Other senders, at most two of them, that were on the air when it began, and in all. Two are enough to know
        whether there is one beside any receiver, who does not disturb itself.
    """

    __slots__ = ("before", "end", "others", "sender")

    def __init__(self, sender: int, end: float, before: list[int]):
        self.sender = sender
        self.end = end
        self.before = before
        self.others = before.copy()

    def collides(self, receiver: int) -> bool:
        """Whether someone other than sender and receiver was on the air meanwhile."""
        others = self.others
        return bool(others) and (others[0] != receiver or len(others) > 1)

    def began_in_quiet(self, receiver: int) -> bool:
        """Whether nobody other than the receiver was on the air when it began."""
        before = self.before
        return not before or (before[0] == receiver and len(before) == 1)


class Ear:
    """Transmissions on the air at one place; intervals are open at their end, and one sender's do not collide.

    A transmission costs a bounded amount of work on average: it is compared with the three senders whose
    transmissions end last, and each that is being received is marked at most twice.
    """

    __slots__ = ("_last", "_open")

    def __init__(self) -> None:
        # (end, sender) of up to three different senders, those that end last, the last first.
        self._last: list[tuple[float, int]] = []
        # What is on the air and may still meet another sender that counts.
        self._open: list[Reception] = []

    def is_busy(self, sender: int, now: float) -> bool:
        """Whether a sender hears another one."""
        for end, other in self._last:
            if end <= now:
                return False
            if other != sender:
                return True
        return False

    def begin(self, sender: int, start: float, end: float) -> Reception:
        """Put a transmission on the air; starts must not go back."""
        before: list[int] = []
        last = self._last
        if last:
            if last[0][0] <= start:
                last.clear()
                self._open.clear()
            else:
                still = [(end, sender)]
                for entry in last:
                    if entry[0] <= start:
                        break
                    if entry[1] != sender:
                        still.append(entry)
                        if len(before) < 2:
                            before.append(entry[1])
                    elif entry[0] > end:
                        still[0] = entry
                still.sort(key=_end, reverse=True)
                self._last = last = still[:3]
                if self._open:
                    self._mark(sender, start)
        if not last:
            last.append((end, sender))
        made = Reception(sender, end, before)
        if len(before) < 2:
            self._open.append(made)
        return made

    def _mark(self, sender: int, start: float) -> None:
        """Let all that is being received know of another sender."""
        still = []
        for one in self._open:
            if one.end <= start:
                continue
            if one.sender != sender and sender not in one.others:
                one.others.append(sender)
            if len(one.others) < 2:
                still.append(one)
        self._open = still


def _end(entry: tuple[float, int]) -> float:
    return entry[0]
