"""Two communities."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.network.links import Given, Links
from p2psim.network.topologies.base import Topology
from p2psim.network.topologies.drawing import Ends, draw_until_joined, pairs_between, pairs_within
from p2psim.network.topologies.parts import Agents, AllowDisconnected, Seed, no_learner, settle
from p2psim.options import Fraction


class TwoCluster(Topology):
    """Two halves, linked densely within and sparsely between; drawn again until connected.

    A stochastic block model: the first ⌈n/2⌉ agents are one cluster, the others the other; every pair is linked
    independently.
    """

    kind: Literal["two-cluster"] = "two-cluster"
    within: Fraction = Field(description="chance that two agents of a cluster are linked")
    between: Fraction = Field(description="chance that two agents of different clusters are linked")
    agents: Agents = None
    seed: Seed = None
    allow_disconnected: AllowDisconnected = False

    is_random: ClassVar[bool] = True

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return (self.within + self.between) / 2 * agents * (agents - 2)

    def links(
        self, agents: int | None, random: np.random.Generator, given: Given, learner: bool = False
    ) -> Links:
        """Links of one draw; see :func:`p2psim.network.topologies.draw_links`."""
        no_learner(self.kind, learner)
        number = settle(self.agents, agents, given)
        return draw_until_joined(
            number,
            lambda: self._draw(number, random),
            self.allow_disconnected,
            "larger chances would help, or allow_disconnected: true",
        )

    def _draw(self, agents: int, random: np.random.Generator) -> Ends:
        second = agents // 2
        first = agents - second
        one, two = pairs_within(first, self.within, random), pairs_within(second, self.within, random)
        across = pairs_between(first, second, self.between, random)
        a = np.concatenate([one[0], two[0] + first, across[0]])
        b = np.concatenate([one[1], two[1] + first, across[1]])
        return a, b
