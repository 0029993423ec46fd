"""Regular topologies: complete graph, ring, star and grid."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from p2psim.core.options import AS_TUPLE, Count
from p2psim.network.graph import Graph, TopologyInputs, from_edges, star_links
from p2psim.network.topologies.base import MOST_OF_ALL_PAIRS, Agents, Topology, no_learner, settle


class Complete(Topology):
    """Everyone is linked with everyone else; at most 10,000 agents."""

    kind: Literal["complete"] = "complete"
    agents: Agents = None

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return float(agents) * (agents - 1)

    def links(
        self, agents: int | None, random: np.random.Generator, given: TopologyInputs, learner: bool = False
    ) -> Graph:
        """Links of the complete graph; see :func:`p2psim.network.topologies.draw_links`."""
        no_learner(self.kind, learner)
        number = settle(self.agents, agents, given, most=MOST_OF_ALL_PAIRS)
        others = np.arange(number - 1, dtype=np.int32)
        indices = others[None, :] + (others[None, :] >= np.arange(number)[:, None])
        return Graph(
            np.arange(number + 1, dtype=np.int64) * (number - 1),
            indices.astype(np.int32).ravel(),
            False,
            np.ones(number * (number - 1)),
        )


class Ring(Topology):
    """Every agent is linked with the one before and the one after it."""

    kind: Literal["ring"] = "ring"
    agents: Agents = None

    def links(
        self, agents: int | None, random: np.random.Generator, given: TopologyInputs, learner: bool = False
    ) -> Graph:
        """Links of the ring; see :func:`p2psim.network.topologies.draw_links`."""
        no_learner(self.kind, learner)
        number = settle(self.agents, agents, given, least=3)
        one = np.arange(number)
        return from_edges(number, one, (one + 1) % number)


class Star(Topology):
    """A central learner (node −1) linked with each of its data owners; without a learner, agent 0 is the middle."""

    kind: Literal["star"] = "star"
    agents: Agents = None

    def links(
        self, agents: int | None, random: np.random.Generator, given: TopologyInputs, learner: bool = False
    ) -> Graph:
        """Links of the star; see :func:`p2psim.network.topologies.draw_links`."""
        if learner:
            return star_links(settle(self.agents, agents, given, least=1))
        number = settle(self.agents, agents, given)
        leaves = np.arange(1, number)
        return from_edges(number, np.zeros_like(leaves), leaves)


class Grid(Topology):
    """Agents in rows and columns, linked with those beside, above and below; ``[1, n]`` is a path."""

    kind: Literal["grid"] = "grid"
    shape: Annotated[tuple[Count, Count], AS_TUPLE] = Field(
        description="rows and columns; agent r·columns + c stands in row r, column c"
    )

    @property
    def agents(self) -> int:
        """Rows times columns."""
        return self.shape[0] * self.shape[1]

    def links(
        self, agents: int | None, random: np.random.Generator, given: TopologyInputs, learner: bool = False
    ) -> Graph:
        """Links of the grid; see :func:`p2psim.network.topologies.draw_links`."""
        no_learner(self.kind, learner)
        number = settle(self.agents, agents, given, key="network.topology.shape")
        place = np.arange(number).reshape(self.shape)
        a = np.concatenate([place[:, :-1].ravel(), place[:-1].ravel()])
        b = np.concatenate([place[:, 1:].ravel(), place[1:].ravel()])
        return from_edges(number, a, b)
