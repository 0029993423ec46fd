"""Everyone with everyone."""

from typing import Literal

import numpy as np

from p2psim.network.links import Given, Links
from p2psim.network.topologies.base import Topology
from p2psim.network.topologies.parts import MOST_OF_ALL_PAIRS, Agents, no_learner, settle


class Complete(Topology):
    """Everyone is linked with everyone else; at most 10,000 agents."""

    kind: Literal["complete"] = "complete"
    agents: Agents = None

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return float(agents) * (agents - 1)

    def links(
        self, agents: int | None, random: np.random.Generator, given: Given, learner: bool = False
    ) -> Links:
        """Links of the complete graph; see :func:`p2psim.network.topologies.draw_links`."""
        no_learner(self.kind, learner)
        number = settle(self.agents, agents, given, most=MOST_OF_ALL_PAIRS)
        others = np.arange(number - 1, dtype=np.int32)
        indices = others[None, :] + (others[None, :] >= np.arange(number)[:, None])
        return Links(
            np.arange(number + 1, dtype=np.int64) * (number - 1),
            indices.astype(np.int32).ravel(),
            False,
            np.ones(number * (number - 1)),
        )
