"""Who hears what: ears, a receiver's own sending, and capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from p2psim.network.channels.draws import Draws
from p2psim.network.channels.ears import Ear, Reception
from p2psim.network.events import LEARNER

if TYPE_CHECKING:
    from p2psim.network.channels.radio import Transmission
    from p2psim.network.world import World


class Air:
    """All transmissions of a world.

    A transmission is heard in full at a receiver unless

    - another one that is in earshot of the receiver overlaps it; the sender's own do not count, and the receiver's own
      only with ``half_duplex``;
    - and it is not captured: one that began while nobody else was on the air there survives later ones, all together,
      with the probability ``capture``. Who is sending itself captures nothing.

    Parameters
    ----------
    world : World
    shared : bool
        Whether everybody hears everybody; otherwise only neighbours.
    half_duplex : bool
    capture : float
    clock : callable
        Time as transmissions are compared by, with the length of one: (start, end) of one that begins now. A slotted
        channel counts in slots, so that neighbouring slots touch without rounding.
    longest : float
        Length of the longest transmission, in that time.
    """

    def __init__(
        self,
        world: World,
        shared: bool,
        half_duplex: bool,
        capture: float,
        clock: Callable[[float], tuple[float, float]],
        longest: float,
    ):
        self._links, self._clock, self._longest = world.links, clock, longest
        self._common = Ear() if shared else None
        self._ears: dict[int, Ear] = {}
        self._earshot: dict[int, list[int]] = {}
        self._half_duplex = half_duplex
        # What each agent itself has sent, as long as something that it overlaps can be on the air.
        self._own: dict[int, list[tuple[float, float]]] = {}
        self._capture = capture
        self._luck = Draws(world, "capture")

    def begin(self, one: Transmission) -> None:
        """Put a transmission on the air, now."""
        start, end = one.span = self._clock(one.length)
        sender = one.sender
        if self._common is not None:
            one.received = self._common.begin(sender, start, end)
        else:
            one.received = self._begin_apart(one, start, end)
        if self._half_duplex:
            kept = [span for span in self._own.get(sender, ()) if span[1] > start - self._longest]
            self._own[sender] = [*kept, (start, end)]

    def _begin_apart(self, one: Transmission, start: float, end: float) -> dict[int, Reception]:
        sender, wanted = one.sender, set(one.receivers)
        made = {}
        for place in self._near(sender):
            reception = self._ear(place).begin(sender, start, end)
            if place in wanted:
                made[place] = reception
        return made

    def _near(self, sender: int) -> list[int]:
        """Places where a sender is heard."""
        near = self._earshot.get(sender)
        if near is None:
            links = self._links
            near = list(range(links.agents)) if sender == LEARNER else links.of(sender).tolist()
            self._earshot[sender] = near
        return near

    def _ear(self, place: int) -> Ear:
        ear = self._ears.get(place)
        if ear is None:
            ear = self._ears[place] = Ear()
        return ear

    def hears(self, one: Transmission, receiver: int) -> bool:
        """Whether a receiver has heard a transmission, which ends now; to be asked once."""
        if self._half_duplex and self._was_sending(receiver, one.span):
            return False
        received = one.received
        reception = received[receiver] if isinstance(received, dict) else received
        if not reception.collides(receiver):
            return True
        if not self._capture or not reception.began_in_quiet(receiver):
            return False
        return next(self._luck.of(one.sender)) < self._capture

    def _was_sending(self, agent: int, span: tuple[float, float]) -> bool:
        return any(start < span[1] and end > span[0] for start, end in self._own.get(agent, ()))

    def is_busy(self, sender: int, now: float) -> bool:
        """Whether a sender hears someone else."""
        ear = self._common or self._ears.get(sender)
        return ear is not None and ear.is_busy(sender, now)
