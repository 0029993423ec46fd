"""Everyone is there all the time."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from p2psim.network.links import Links
from p2psim.network.members import Members
from p2psim.options import Options
from p2psim.randomness import Streams

if TYPE_CHECKING:
    from p2psim.network.availability.absence import Misses
    from p2psim.network.world import World


class Always(Options):
    """Everyone is there all the time."""

    kind: Literal["always"] = "always"
    ideal: ClassVar[bool] = True
    has_spans: ClassVar[bool] = False
    messages: ClassVar[str] = "lost"
    rejoin: ClassVar[str] = "stale"

    def start(self, world: World, streams: Streams) -> None:
        """Nobody ever leaves."""

    def misses(self, world: World, streams: Streams) -> list[Misses] | None:
        """No wake is missed."""
        return None

    def shares(self, members: Members, links: Links) -> np.ndarray:
        """All of its ticks."""
        return np.ones(links.agents)
