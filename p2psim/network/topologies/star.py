"""One in the middle."""

from typing import ClassVar, Literal

import numpy as np

from p2psim.network.links import Given, Links, from_edges, star_links
from p2psim.network.topologies.parts import Agents, settle
from p2psim.options import Options


class Star(Options):
    """A central learner (node −1) linked with each of its data owners; without a learner, agent 0 is the middle."""

    kind: Literal["star"] = "star"
    agents: Agents = None

    is_random: ClassVar[bool] = False

    def links(
        self, agents: int | None, random: np.random.Generator, given: Given, learner: bool = False
    ) -> Links:
        """Links of the star; see :func:`p2psim.network.topologies.draw_links`."""
        if learner:
            return star_links(settle(self.agents, agents, given, least=1))
        number = settle(self.agents, agents, given)
        leaves = np.arange(1, number)
        return from_edges(number, np.zeros_like(leaves), leaves)
