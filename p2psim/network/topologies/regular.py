"""Topologies that nothing random is in: complete graph, ring, stars, grid, tree, hypercube and exponential graph."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.errors import MeaningError
from p2psim.core.options import AS_TUPLE, Count
from p2psim.network.graph import Graph, TopologyInputs, from_edges, star_links
from p2psim.network.topologies import base


class Complete(base.SizedTopology):
    """Everyone is linked with everyone else; at most 10,000 agents."""

    kind: Literal["complete"] = "complete"
    agents: base.Agents = None
    weights: base.Weights = None
    normalise: base.Normalise = None
    most: ClassVar[int | None] = base.MOST_OF_ALL_PAIRS

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return float(agents) * (agents - 1)

    def build(self, agents: int, random: np.random.Generator, given: TopologyInputs) -> Graph:
        """Links of the complete graph."""
        others = np.arange(agents - 1, dtype=np.int32)
        indices = others[None, :] + (others[None, :] >= np.arange(agents)[:, None])
        indptr = np.arange(agents + 1, dtype=np.int64) * (agents - 1)
        return Graph(indptr, indices.astype(np.int32).ravel(), False, np.ones(indices.size))


class Ring(base.SizedTopology):
    """Every agent is linked with the one before and the one after it."""

    kind: Literal["ring"] = "ring"
    agents: base.Agents = None
    weights: base.Weights = None
    normalise: base.Normalise = None

    least: ClassVar[int] = 3

    def build(self, agents: int, random: np.random.Generator, given: TopologyInputs) -> Graph:
        """Links of the ring."""
        place = np.arange(agents)
        return from_edges(agents, place, (place + 1) % agents)


class Star(base.Topology):
    """A central learner (node −1) linked with each of its data owners; without a learner, as star-of-agents."""

    kind: Literal["star"] = "star"
    agents: base.Agents = None

    is_star: ClassVar[bool] = True

    def links(
        self, agents: int | None, random: np.random.Generator, given: TopologyInputs, learner: bool = False
    ) -> Graph:
        """Links of the star; see :func:`p2psim.network.topologies.draw_links`."""
        if learner:
            return star_links(base.settle(self.agents, agents, given, least=1))
        return _star(base.settle(self.agents, agents, given))


def _star(agents: int) -> Graph:
    leaves = np.arange(1, agents)
    return from_edges(agents, np.zeros_like(leaves), leaves)


class StarOfAgents(base.SizedTopology):
    """Agent 0 is linked with every other agent; all have data, and there is no learner."""

    kind: Literal["star-of-agents"] = "star-of-agents"
    agents: base.Agents = None
    weights: base.Weights = None
    normalise: base.Normalise = None

    def build(self, agents: int, random: np.random.Generator, given: TopologyInputs) -> Graph:
        """Links of the star."""
        return _star(agents)


class Grid(base.SizedTopology):
    """Agents in rows and columns, linked with those beside, above and below; ``[1, n]`` is a path."""

    kind: Literal["grid"] = "grid"
    shape: Annotated[tuple[Count, Count], AS_TUPLE] = Field(
        description="rows and columns; agent r·columns + c stands in row r, column c"
    )
    weights: base.Weights = None
    normalise: base.Normalise = None

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


class BinaryTree(base.SizedTopology):
    """Agent i is linked with its children 2i + 1 and 2i + 2; agent 0 is the root, and the last row may have gaps."""

    kind: Literal["binary-tree"] = "binary-tree"
    agents: base.Agents = None
    weights: base.Weights = None
    normalise: base.Normalise = None

    def build(self, agents: int, random: np.random.Generator, given: TopologyInputs) -> Graph:
        """Links of the tree."""
        child = np.arange(1, agents)
        return from_edges(agents, (child - 1) // 2, child)


class Hypercube(base.SizedTopology):
    """Agents are linked whose numbers differ in one binary digit; there are 2, 4, 8, … agents."""

    kind: Literal["hypercube"] = "hypercube"
    agents: base.Agents = None
    weights: base.Weights = None
    normalise: base.Normalise = None

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return float(agents) * (agents.bit_length() - 1)

    def build(self, agents: int, random: np.random.Generator, given: TopologyInputs) -> Graph:
        """Links of the hypercube."""
        if agents & (agents - 1):
            below = 1 << (agents.bit_length() - 1)
            raise MeaningError(
                self.size_key,
                f"a hypercube has a power of two of agents, such as {below} or {2 * below}; got {agents}",
            )
        place, digit = np.arange(agents), 1 << np.arange(agents.bit_length() - 1)
        a, b = np.broadcast_arrays(place[:, None], place[:, None] ^ digit)
        return from_edges(agents, a[a < b], b[a < b])


class Exponential(base.SizedTopology):
    """Agent i is linked with i ± 1, i ± 2, i ± 4, … (modulo the number of agents n), up to the largest power below n.

    The static exponential graph with links that go both ways; in the directed form (Ying et al. 2021, "Exponential
    graph is provably efficient for decentralized deep training") i sends to i + 2ᵏ only. Of n = 2ᵐ agents each has
    2m − 1 neighbours.
    """

    kind: Literal["exponential"] = "exponential"
    agents: base.Agents = None
    weights: base.Weights = None
    normalise: base.Normalise = None

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return 2.0 * agents * (agents - 1).bit_length()

    def build(self, agents: int, random: np.random.Generator, given: TopologyInputs) -> Graph:
        """Links of the exponential graph."""
        place, hop = np.arange(agents), 1 << np.arange((agents - 1).bit_length())
        a, b = np.broadcast_arrays(place[:, None], (place[:, None] + hop) % agents)
        keys = np.unique(base.pair_keys(agents, a.ravel(), b.ravel()))
        return from_edges(agents, keys // agents, keys % agents)
