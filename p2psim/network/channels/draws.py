"""Random draws that every sender makes for itself, so that what one does moves no one else's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from p2psim.distributions import Distribution

if TYPE_CHECKING:
    from p2psim.network.world import World

UNIT = Distribution(uniform=(0.0, 1.0))


class Draws:
    """Draws of every sender for one purpose, each from streams of its own."""

    def __init__(self, world: World, purpose: str, quantity: float | Distribution = UNIT):
        self._world, self._purpose, self._quantity = world, purpose, quantity
        self._lanes: tuple[dict[int, Iterator[float]], ...] = ({}, {})

    def of(self, sender: int, lane: int = 0) -> Iterator[float]:
        """Endless draws of one sender."""
        lanes = self._lanes[lane]
        found = lanes.get(sender)
        if found is None:
            found = lanes[sender] = self._world.draws(self._purpose, sender, self._quantity, lane)
        return found
