"""A closed chain."""

from typing import Literal

import numpy as np

from p2psim.network.links import Given, Links, from_edges
from p2psim.network.topologies.base import Topology
from p2psim.network.topologies.parts import Agents, no_learner, settle


class Ring(Topology):
    """Every agent is linked with the one before and the one after it."""

    kind: Literal["ring"] = "ring"
    agents: Agents = None

    def links(
        self, agents: int | None, random: np.random.Generator, given: Given, learner: bool = False
    ) -> Links:
        """Links of the ring; see :func:`p2psim.network.topologies.draw_links`."""
        no_learner(self.kind, learner)
        number = settle(self.agents, agents, given, least=3)
        one = np.arange(number)
        return from_edges(number, one, (one + 1) % number)
