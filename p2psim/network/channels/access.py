"""When a sender may begin: at the next slot, or when it hears nobody.

Pure ALOHA (Abramson 1970) has no such rule: whoever has something to send sends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from p2psim.distributions import Distribution
from p2psim.network.channels.air import Air
from p2psim.network.channels.draws import Draws
from p2psim.network.events import GAVE_UP

if TYPE_CHECKING:
    from p2psim.network.channels.radio import Transmission
    from p2psim.network.world import World

Begin = Callable[["Transmission"], None]
Refuse = Callable[["Transmission", int], None]

#: Part of a slot by which rounding may make a sender late for it.
ROUNDING = 1e-6


class Access(Protocol):
    """Calls, now or later, ``begin`` or ``refuse`` once."""

    def ask(self, one: Transmission, begin: Begin, refuse: Refuse) -> None:
        """Ask to send."""


class Slots:
    """Slotted ALOHA (Roberts 1975): transmissions begin at whole multiples of the slot."""

    def __init__(self, world: World, slot: float):
        self._env, self._after, self._slot = world.env, world.after, slot

    def next_slot(self) -> int:
        """Number of the slot that begins now or next."""
        return math.ceil(self._env.now / self._slot - ROUNDING)

    def ask(self, one: Transmission, begin: Begin, refuse: Refuse) -> None:
        """Wait for the next slot."""
        wait = self.next_slot() * self._slot - self._env.now
        self._after(max(wait, 0.0), lambda: begin(one))

    def current(self) -> int:
        """Number of the slot that begins now."""
        return round(self._env.now / self._slot)


class CarrierSense:
    """Non-persistent carrier sensing (Kleinrock, Tobagi 1975): who hears another waits a random time, and tries again.

    A sender hears at its own place what is on the air at that moment: there is no propagation delay.
    """

    def __init__(self, world: World, air: Air, backoff: Distribution, attempts: int):
        self._env, self._after, self._air = world.env, world.after, air
        self._backoffs = Draws(world, "backoff", backoff)
        self._attempts = attempts

    def ask(self, one: Transmission, begin: Begin, refuse: Refuse) -> None:
        """Begin now if nobody is heard."""
        if not self._air.is_busy(one.sender, self._env.now):
            begin(one)
            return
        one.tries += 1
        if one.tries == self._attempts:
            refuse(one, GAVE_UP)
            return
        self._after(next(self._backoffs.of(one.sender)), lambda: self.ask(one, begin, refuse))
