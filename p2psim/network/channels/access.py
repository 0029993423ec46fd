"""When a sender may begin: at the next slot, or when it hears nobody.

Pure ALOHA (Abramson 1970) has no such rule: whoever has something to send sends.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from p2psim.distributions import Distribution
from p2psim.moments import ROUNDING
from p2psim.network.channels.air import Air
from p2psim.network.channels.draws import Draws

if TYPE_CHECKING:
    from p2psim.network.channels.radio import Transmission
    from p2psim.network.world import World


class Access(Protocol):
    """Says when a sender may begin."""

    #: Whether a sender that has waited asks again; otherwise it begins.
    asks_again: bool

    def when(self, one: Transmission) -> float | None:
        """Moment to wait for: none later than now where the sender may begin now, None where it gives up."""

    def over(self, one: Transmission) -> float:
        """When a transmission that begins now ends."""


class Slots:
    """Slotted ALOHA (Roberts 1975): transmissions begin at whole multiples of the slot."""

    asks_again = False

    def __init__(self, world: World, slot: float):
        self._env, self._slot = world.env, slot

    def when(self, one: Transmission) -> float:
        """When the next slot begins; its number is noted."""
        one.slot = number = math.ceil(self._env._now / self._slot * (1 - ROUNDING))
        return number * self._slot

    def over(self, one: Transmission) -> float:
        """In its slot."""
        return (one.slot + one.length / self._slot) * self._slot


class CarrierSense:
    """Non-persistent carrier sensing (Kleinrock, Tobagi 1975): who hears another waits a random time, and tries again.

    A sender hears at its own place what is on the air at that moment: there is no propagation delay.
    """

    asks_again = True

    def __init__(self, world: World, air: Air, backoff: Distribution, attempts: int):
        self._env, self._is_busy = world.env, air.is_busy
        self._backoffs = Draws(world, "backoff", backoff)
        self._attempts = attempts

    def when(self, one: Transmission) -> float | None:
        """Now if nobody is heard; otherwise after a random time, or None after so many attempts."""
        now = self._env._now
        while self._is_busy(one.sender, now):
            one.tries += 1
            if one.tries == self._attempts:
                return None
            again = now + next(self._backoffs.of(one.sender))
            if again > now:
                return again
        return now

    def over(self, one: Transmission) -> float:
        """After its airtime."""
        return self._env._now + one.length
