"""When a sender may begin: at the next slot, or when it hears nobody.

Pure ALOHA (Abramson 1970) has no such rule: whoever has something to send sends.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from p2psim.distributions import Distribution
from p2psim.network.channels.air import Air
from p2psim.network.channels.draws import Draws

if TYPE_CHECKING:
    from p2psim.network.channels.radio import Transmission
    from p2psim.network.world import World

#: Part of a slot by which rounding may make a sender late for it.
ROUNDING = 1e-6


class Access(Protocol):
    """Says how long a sender waits before it begins."""

    #: Whether a sender that has waited asks again; otherwise it begins.
    asks_again: bool

    def wait(self, one: Transmission) -> float | None:
        """Time to wait from now on: 0 where the sender may begin now, None where it gives up."""


class Slots:
    """Slotted ALOHA (Roberts 1975): transmissions begin at whole multiples of the slot."""

    asks_again = False

    def __init__(self, world: World, slot: float):
        self._env, self._slot = world.env, slot

    def wait(self, one: Transmission) -> float:
        """Time until the next slot begins; its number is noted."""
        now, slot = self._env._now, self._slot
        one.slot = number = math.ceil(now / slot - ROUNDING)
        wait = number * slot - now
        return wait if wait > 0.0 else 0.0


class CarrierSense:
    """Non-persistent carrier sensing (Kleinrock, Tobagi 1975): who hears another waits a random time, and tries again.

    A sender hears at its own place what is on the air at that moment: there is no propagation delay.
    """

    asks_again = True

    def __init__(self, world: World, air: Air, backoff: Distribution, attempts: int):
        self._env, self._is_busy = world.env, air.is_busy
        self._backoffs = Draws(world, "backoff", backoff)
        self._attempts = attempts

    def wait(self, one: Transmission) -> float | None:
        """Nothing if nobody is heard; otherwise a random time, or None after so many attempts."""
        while self._is_busy(one.sender, self._env._now):
            one.tries += 1
            if one.tries == self._attempts:
                return None
            backoff = next(self._backoffs.of(one.sender))
            if backoff:
                return backoff
        return 0.0
