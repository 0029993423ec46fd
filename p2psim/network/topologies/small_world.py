"""Neighbours, and a few far away."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.errors import MeaningError
from p2psim.network.links import Given, Links
from p2psim.network.topologies.base import Topology
from p2psim.network.topologies.drawing import Ends, draw_until_joined, is_first, pair_keys
from p2psim.network.topologies.parts import Agents, AllowDisconnected, Seed, no_learner, settle
from p2psim.options import Count, Fraction

#: A link finds a new end among those that are free, or, after so many tries in a full graph, stays.
_TRIES = 1000


class SmallWorld(Topology):
    """A ring of near neighbours, some of whose links lead elsewhere; drawn again until connected.

    Watts and Strogatz (1998): each agent is linked with the nearest, half on either side; each link keeps its
    first end and, with the given chance, takes a second one, uniformly among those whom it is not linked with by then
    and was not on the ring.
    """

    kind: Literal["small-world"] = "small-world"
    neighbours: Count = Field(
        description="nearest agents on the ring that each is linked with at first; even"
    )
    rewire: Fraction = Field(description="chance that a link leads elsewhere")
    agents: Agents = None
    seed: Seed = None
    allow_disconnected: AllowDisconnected = False

    is_random: ClassVar[bool] = True

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return float(agents) * self.neighbours

    def links(
        self, agents: int | None, random: np.random.Generator, given: Given, learner: bool = False
    ) -> Links:
        """Links of one draw; see :func:`p2psim.network.topologies.draw_links`."""
        no_learner(self.kind, learner)
        number = settle(self.agents, agents, given, least=3)
        if self.neighbours % 2 or self.neighbours >= number:
            raise MeaningError(
                "network.topology.neighbours",
                f"must be even and less than the number of agents, {number}; got {self.neighbours}",
            )
        return draw_until_joined(
            number,
            lambda: self._draw(number, random),
            self.allow_disconnected,
            "more neighbours or less rewiring would help",
        )

    def _draw(self, agents: int, random: np.random.Generator) -> Ends:
        half = self.neighbours // 2
        a = np.tile(np.arange(agents, dtype=np.int64), half)
        b = (a + np.repeat(np.arange(1, half + 1), agents)) % agents
        moving = np.flatnonzero(random.random(a.size) < self.rewire)
        taken = np.sort(pair_keys(agents, a, b))
        for _ in range(_TRIES):
            if not moving.size:
                break
            end = random.integers(agents, size=moving.size)
            start = a[moving]
            keys = pair_keys(agents, start, end)
            free = taken[np.minimum(np.searchsorted(taken, keys), taken.size - 1)] != keys
            fits = free & is_first(keys) & (start != end)
            b[moving[fits]] = end[fits]
            taken = np.sort(np.concatenate([taken, keys[fits]]))
            moving = moving[~fits]
        return a, b
