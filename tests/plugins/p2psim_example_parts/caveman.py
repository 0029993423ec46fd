"""A topology: cliques in a circle (Watts 1999)."""

from typing import Literal

import networkx as nx
import numpy as np
from pydantic import Field

import p2psim
from p2psim.network.graph import Graph, TopologyInputs, from_edges
from p2psim.network.topologies.base import no_learner, settle


@p2psim.register
class Caveman(p2psim.Topology):
    """Cliques in a circle, one link of each rewired to the next."""

    kind: Literal["caveman"] = "caveman"
    cliques: int = Field(ge=2, description="number of cliques")
    members: int = Field(ge=3, description="agents of each clique")

    @property
    def agents(self) -> int:
        return self.cliques * self.members

    def links(
        self, agents: int | None, random: np.random.Generator, given: TopologyInputs, learner: bool = False
    ) -> Graph:
        no_learner(self.kind, learner)
        number = settle(self.agents, agents, given, key="network.topology.cliques")
        edges = np.array(nx.connected_caveman_graph(self.cliques, self.members).edges)
        return from_edges(number, edges[:, 0], edges[:, 1])
