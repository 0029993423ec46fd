"""One in the middle."""

from typing import Literal

import numpy as np

from p2psim.network.links import Given, Links, from_edges, star_links
from p2psim.network.topologies.base import Topology
from p2psim.network.topologies.parts import Agents, settle


class Star(Topology):
    """A central learner (node −1) linked with each of its data owners; without a learner, agent 0 is the middle."""

    kind: Literal["star"] = "star"
    agents: Agents = None

    def links(
        self, agents: int | None, random: np.random.Generator, given: Given, learner: bool = False
    ) -> Links:
        """Links of the star; see :func:`p2psim.network.topologies.draw_links`."""
        if learner:
            return star_links(settle(self.agents, agents, given, least=1))
        number = settle(self.agents, agents, given)
        leaves = np.arange(1, number)
        return from_edges(number, np.zeros_like(leaves), leaves)
