"""The well connected become better connected."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.network.links import Given, Links, from_edges
from p2psim.network.topologies.base import Topology
from p2psim.network.topologies.drawing import Ends
from p2psim.network.topologies.parts import Agents, Seed, no_learner, settle
from p2psim.options import Count


class ScaleFree(Topology):
    """Agents come one by one and attach to earlier ones, in proportion to their degrees; always connected.

    Barabási and Albert (1999), from a star of attach + 1 agents: each newcomer draws different earlier agents,
    one after the other.
    """

    kind: Literal["scale-free"] = "scale-free"
    attach: Count = Field(description="links that each newcomer makes")
    agents: Agents = None
    seed: Seed = None

    is_random: ClassVar[bool] = True

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return 2.0 * agents * self.attach

    def links(
        self, agents: int | None, random: np.random.Generator, given: Given, learner: bool = False
    ) -> Links:
        """Links of one draw; see :func:`p2psim.network.topologies.draw_links`."""
        no_learner(self.kind, learner)
        number = settle(self.agents, agents, given, least=self.attach + 1)
        return from_edges(number, *_attach(number, self.attach, random))


def _attach(agents: int, attach: int, random: np.random.Generator) -> Ends:
    # Every link leaves both its ends in the urn, so that a uniform draw from it goes by degree.
    urn = [0] * attach + list(range(1, attach + 1))
    draws, place = random.random(1 << 12).tolist(), 0
    links = [(0, other) for other in range(1, attach + 1)]
    for newcomer in range(attach + 1, agents):
        chosen: dict[int, None] = {}  # in the order drawn: sets have none to rely on
        while len(chosen) < attach:
            if place == len(draws):
                draws, place = random.random(1 << 12).tolist(), 0
            chosen[urn[int(draws[place] * len(urn))]] = None
            place += 1
        for other in chosen:
            links.append((newcomer, other))
            urn += (newcomer, other)
    ends = np.array(links, dtype=np.int64)
    return ends[:, 0], ends[:, 1]
