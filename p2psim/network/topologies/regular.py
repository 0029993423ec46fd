"""Regular topologies: complete graph, ring, star and grid."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.options import AS_TUPLE, Count
from p2psim.network.graph import Graph, TopologyInputs, from_edges, star_links
from p2psim.network.topologies.base import MOST_OF_ALL_PAIRS, Agents, SizedTopology, Topology, settle


class Complete(SizedTopology):
    """Everyone is linked with everyone else; at most 10,000 agents."""

    kind: Literal["complete"] = "complete"
    agents: Agents = None
    most: ClassVar[int | None] = MOST_OF_ALL_PAIRS

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return float(agents) * (agents - 1)

    def build(self, agents: int, random: np.random.Generator, given: TopologyInputs) -> Graph:
        """Links of the complete graph."""
        others = np.arange(agents - 1, dtype=np.int32)
        indices = others[None, :] + (others[None, :] >= np.arange(agents)[:, None])
        indptr = np.arange(agents + 1, dtype=np.int64) * (agents - 1)
        return Graph(indptr, indices.astype(np.int32).ravel(), False, np.ones(indices.size))


class Ring(SizedTopology):
    """Every agent is linked with the one before and the one after it."""

    kind: Literal["ring"] = "ring"
    agents: Agents = None

    least: ClassVar[int] = 3

    def build(self, agents: int, random: np.random.Generator, given: TopologyInputs) -> Graph:
        """Links of the ring."""
        place = np.arange(agents)
        return from_edges(agents, place, (place + 1) % agents)


class Star(Topology):
    """A central learner (node −1) linked with each of its data owners; without a learner, agent 0 is the middle."""

    kind: Literal["star"] = "star"
    agents: Agents = None

    is_star: ClassVar[bool] = True

    def links(
        self, agents: int | None, random: np.random.Generator, given: TopologyInputs, learner: bool = False
    ) -> Graph:
        """Links of the star; see :func:`p2psim.network.topologies.draw_links`."""
        if learner:
            return star_links(settle(self.agents, agents, given, least=1))
        number = settle(self.agents, agents, given)
        leaves = np.arange(1, number)
        return from_edges(number, np.zeros_like(leaves), leaves)


class Grid(SizedTopology):
    """Agents in rows and columns, linked with those beside, above and below; ``[1, n]`` is a path."""

    kind: Literal["grid"] = "grid"
    shape: Annotated[tuple[Count, Count], AS_TUPLE] = Field(
        description="rows and columns; agent r·columns + c stands in row r, column c"
    )

    size_key: ClassVar[str] = "network.topology.shape"

    @property
    def agents(self) -> int:
        """Rows times columns."""
        return self.shape[0] * self.shape[1]

    def build(self, agents: int, random: np.random.Generator, given: TopologyInputs) -> Graph:
        """Links of the grid."""
        place = np.arange(agents).reshape(self.shape)
        a = np.concatenate([place[:, :-1].ravel(), place[:-1].ravel()])
        b = np.concatenate([place[:, 1:].ravel(), place[1:].ravel()])
        return from_edges(agents, a, b)
