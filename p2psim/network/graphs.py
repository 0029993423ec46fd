"""Who is linked with whom: builders of graphs, and the arrays that engines work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from p2psim.errors import InputError, MeaningError
from p2psim.network.events import LEARNER
from p2psim.options import BY_NAME, Count, Options

if TYPE_CHECKING:
    import networkx as nx


class Star(Options):
    """A central learner (node −1) linked with each of its data owners."""

    kind: Literal["star"] = "star"
    agents: Count | None = Field(None, description="number of owners; left out, as many as the data gives")

    def build(self, agents: int) -> nx.Graph[int]:
        """Graph with nodes −1 (the learner) and 0 … agents − 1."""
        import networkx as nx

        graph: nx.Graph[int] = nx.Graph()
        graph.add_nodes_from(range(agents))
        graph.add_edges_from((LEARNER, owner) for owner in range(agents))
        return graph


class Complete(Options):
    """Everyone is linked with everyone else."""

    kind: Literal["complete"] = "complete"
    agents: Count | None = Field(None, description="number of agents; left out, as many as the data gives")

    def build(self, agents: int) -> nx.Graph[int]:
        """Graph with nodes 0 … agents − 1."""
        import networkx as nx

        return nx.complete_graph(agents)


class Ring(Options):
    """Every agent is linked with the one before and the one after it."""

    kind: Literal["ring"] = "ring"
    agents: Count | None = Field(None, description="number of agents; left out, as many as the data gives")

    def build(self, agents: int) -> nx.Graph[int]:
        """Graph with nodes 0 … agents − 1."""
        import networkx as nx

        if agents < 3:
            raise MeaningError("network.topology.agents", f"a ring takes at least 3 agents, got {agents}")
        return nx.cycle_graph(agents)


Topology = Annotated[Star | Complete | Ring, Field(discriminator="kind"), BY_NAME]


@dataclass(frozen=True)
class Links:
    """Neighbours of every agent, as compressed rows.

    Attributes
    ----------
    indptr : ndarray of int64, shape (n + 1,)
    indices : ndarray of int32
        ``indices[indptr[i]:indptr[i + 1]]`` are the neighbours of agent i, in rising order.
    star : bool
        Whether there is a learner (−1), to which then every agent is linked, and nobody else.
    """

    indptr: np.ndarray
    indices: np.ndarray
    star: bool

    @property
    def agents(self) -> int:
        """Number of agents, the learner not counted."""
        return self.indptr.size - 1

    def of(self, agent: int) -> np.ndarray:
        """Neighbours of one agent."""
        return self.indices[self.indptr[agent] : self.indptr[agent + 1]]


def links(graph: nx.Graph[int]) -> Links:
    """Arrays of an undirected graph whose nodes are 0 … n − 1, and −1 where there is a learner.

    Raises
    ------
    InputError
        If the graph is directed, its nodes are not numbered so, an agent is linked with itself or with
        nobody, or there is a learner and the graph is not a star.
    """
    if graph.is_directed():
        raise InputError("the graph is directed; links must go both ways")
    star = LEARNER in graph
    agents = graph.number_of_nodes() - star
    if agents < 1 or not all(agent in graph for agent in range(agents)):
        raise InputError(f"the graph's nodes must be 0 … {agents - 1} (and {LEARNER} for a learner)")
    if star and LEARNER in graph.adj[LEARNER]:
        raise InputError("the learner is linked with itself")
    rows = [sorted(graph.adj[agent]) for agent in range(agents)]
    for agent, row in enumerate(rows):
        if agent in row:
            raise InputError(f"agent {agent} is linked with itself")
        if star and row != [LEARNER]:
            raise InputError(
                f"there is a learner, so agent {agent} must be linked with it and nobody else; got {row}"
            )
        if not row:
            raise InputError(f"agent {agent} is linked with nobody")
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return Links(indptr, np.array([j for row in rows for j in row], dtype=np.int32), star)
