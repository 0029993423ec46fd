"""Interference on a shared medium: which transmissions overlap at a place, and which of them are heard there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from p2psim.core.events import LEARNER
from p2psim.network.channels.draws import Draws
from p2psim.network.simpy_engine.base import Run

if TYPE_CHECKING:
    from p2psim.network.channels.channel import Channel


class Reception:
    """A transmission as it is received at one place.

    Attributes
    ----------
    sender : int
    start, end : float
    before, others : set of int
        Other senders that were on the air when it began, and in all.
    """

    __slots__ = ("before", "end", "others", "sender", "start")

    def __init__(self, sender: int, start: float, end: float, before: set[int]):
        self.sender, self.start, self.end = sender, start, end
        self.before, self.others = before, set(before)


class Place:
    """What is on the air at one place; transmissions of one sender do not disturb one another."""

    def __init__(self) -> None:
        self._on_air: list[Reception] = []

    def begin(self, sender: int, start: float, end: float) -> Reception:
        """Put a transmission on the air in [start, end); starts must not go back."""
        self._on_air = [other for other in self._on_air if other.end > start]
        rivals = [other for other in self._on_air if other.sender != sender]
        for rival in rivals:
            rival.others.add(sender)
        reception = Reception(sender, start, end, {rival.sender for rival in rivals})
        self._on_air.append(reception)
        return reception

    def is_busy(self, listener: int, now: float) -> bool:
        """Whether someone else than the listener is on the air."""
        return any(other.end > now and other.sender != listener for other in self._on_air)


class Interference:
    """All transmissions of a run.

    A transmission is heard in full at a receiver unless

    - another one that is in earshot of the receiver overlaps it; the sender's own do not count, and the receiver's own
      only with ``half_duplex``;
    - and it is not captured: one that began while nobody else was on the air there survives later ones, all together,
      with the probability ``capture``. Who is sending itself captures nothing.

    Parameters
    ----------
    run : Run
    options : Channel
    longest : float
        Length of the longest transmission, in the unit of the spans that it compares.
    """

    def __init__(self, run: Run, options: Channel, longest: float):
        links = run.links
        self._links, self._longest = links, longest
        shared = links.star if options.shared is None else options.shared
        self._everywhere = Place() if shared else None
        self._places = (
            {} if shared else {place: Place() for place in range(-1 if links.star else 0, links.agents)}
        )
        self._half_duplex = options.half_duplex
        # What each has sent itself, as long as something that it overlaps can be on the air.
        self._own: dict[int, list[tuple[float, float]]] = {}
        self._capture, self._luck = options.capture, Draws(run, "capture")

    def begin(
        self, sender: int, receivers: Sequence[int], start: float, end: float
    ) -> Mapping[int, Reception]:
        """Put a transmission on the air in [start, end), now; returns how each receiver gets it."""
        if self._half_duplex:
            recent = [span for span in self._own.get(sender, ()) if span[1] > start - self._longest]
            self._own[sender] = [*recent, (start, end)]
        if self._everywhere is not None:
            return dict.fromkeys(receivers, self._everywhere.begin(sender, start, end))
        return {place: self._places[place].begin(sender, start, end) for place in self._earshot(sender)}

    def _earshot(self, sender: int) -> list[int]:
        """Places where a sender is heard."""
        return list(range(self._links.agents)) if sender == LEARNER else self._links.of(sender).tolist()

    def is_busy(self, listener: int, now: float) -> bool:
        """Whether a sender hears another one at its own place."""
        place = self._everywhere if self._everywhere is not None else self._places[listener]
        return place.is_busy(listener, now)

    def hears(self, receiver: int, reception: Reception) -> bool:
        """Whether a receiver has heard a transmission, which ends now; to be asked once."""
        if self._half_duplex and self._was_sending(receiver, reception.start, reception.end):
            return False
        if not reception.others - {receiver}:
            return True
        if not self._capture or reception.before - {receiver}:
            return False
        return next(self._luck.of(reception.sender)) < self._capture

    def _was_sending(self, agent: int, start: float, end: float) -> bool:
        return any(begun < end and over > start for begun, over in self._own.get(agent, ()))
