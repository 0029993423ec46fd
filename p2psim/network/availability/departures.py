"""Agents that leave for good, join late, or are removed at one moment, and the centrality by which some are removed.

The centrality is betweenness: how many of the shortest paths between others pass through an agent (Freeman 1979).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from p2psim.core.distributions import Quantity, sample
from p2psim.core.randomness import Streams
from p2psim.network.availability.absence import KEY, Availability
from p2psim.network.graph import Graph
from p2psim.network.members import Members
from p2psim.network.spec import RunningNetwork

if TYPE_CHECKING:
    import networkx as nx

Share = Annotated[float, Field(gt=0, le=1)]


def chosen(share: float, agents: int, random: np.random.Generator) -> list[int]:
    """A random part of the agents, in rising order; its size is the share, rounded."""
    return sorted(random.permutation(agents)[: round(share * agents)].tolist())


def _turn_once(part: Leave | Join, begins: bool, world: RunningNetwork, streams: Streams) -> None:
    """Let a share of the agents turn, each after a time of its own; whether they are there before."""
    agents = world.links.agents
    for agent in chosen(part.share, agents, streams.generator("availability", agents)):
        after = sample(part.after, streams.generator("availability", agent), 1)[0]
        world.presence.alternate((agent,), begins, iter((float(after),)))


class Leave(Availability):
    """A share of the agents goes for good, each after its own time."""

    kind: Literal["leave"] = "leave"
    after: Quantity = Field(description="time after which an agent goes")
    share: Share = Field(1.0, description="share of the agents that go, drawn at random")

    def start(self, world: RunningNetwork, streams: Streams) -> None:
        """Schedule the departures."""
        _turn_once(self, True, world, streams)


class Join(Availability):
    """A share of the agents comes late, each after its own time; ``rejoin`` says with what model."""

    kind: Literal["join"] = "join"
    after: Quantity = Field(description="time after which an agent comes")
    share: Share = Field(1.0, description="share of the agents that come late, drawn at random")

    def start(self, world: RunningNetwork, streams: Streams) -> None:
        """Schedule the arrivals."""
        _turn_once(self, False, world, streams)


class Remove(Availability):
    """A share of the agents is removed for good at one moment: an attack on those that count most.

    Choices
    -------
    by: degree
        number of links
    by: betweenness
        share of shortest paths that lead through the agent
    by: records
        number of records
    by: random
        nothing: all with the same chance
    order: largest
        those with the most
    order: smallest
        those with the least
    """

    kind: Literal["remove"] = "remove"
    by: Literal["degree", "betweenness", "records", "random"] = Field(
        "degree", description="what the agents are ranked by"
    )
    order: Literal["largest", "smallest"] = Field("largest", description="which end of the ranking goes")
    share: Annotated[float, Field(gt=0, lt=1)] = Field(description="share of the agents")
    at: Annotated[float, Field(ge=0)] = Field(0.0, description="when")

    def victims(self, members: Members, links: Graph, random: np.random.Generator) -> list[int]:
        """Who is removed, in rising order; ties are broken at random."""
        values = self._values(members, links)
        tie = random.random(links.agents)
        order = np.lexsort((tie, -values if self.order == "largest" else values))
        return sorted(order[: round(self.share * links.agents)].tolist())

    def _values(self, members: Members, links: Graph) -> np.ndarray:
        if self.by == "random":
            return np.zeros(links.agents)
        if self.by == "records":
            return np.asarray(members.number("records", f"{KEY}.by"), dtype=float)
        if self.by == "degree" or links.star:
            return np.diff(links.indptr).astype(float)

        return betweenness(links)

    def start(self, world: RunningNetwork, streams: Streams) -> None:
        """Schedule the removal."""
        random = streams.generator("availability", world.links.agents)
        for agent in self.victims(world.members, world.links, random):
            turns = (self.at,) if self.at > 0 else ()
            world.presence.alternate((agent,), self.at > 0, iter(turns))

    def shares(self, members: Members, links: Graph) -> np.ndarray:
        """None can be said."""
        if self.by == "records":
            members.number("records", f"{KEY}.by")
        return super().shares(members, links)


#: Beyond so many agents betweenness is estimated from as many sources, drawn once and for all.
MOST_SOURCES = 500


def _unweighted(links: Graph) -> nx.Graph[Any]:
    """The graph without its weights."""
    import networkx as nx
    from scipy.sparse import csr_array

    shape = (links.agents, links.agents)
    return nx.from_scipy_sparse_array(
        csr_array((np.ones(links.indices.size), links.indices, links.indptr), shape=shape)
    )


def betweenness(links: Graph) -> np.ndarray:
    """Normalised betweenness of each agent, shape (n,): exact up to `MOST_SOURCES` agents, estimated beyond."""
    import networkx as nx

    n = links.agents
    sources = None if n <= MOST_SOURCES else MOST_SOURCES
    found = nx.betweenness_centrality(_unweighted(links), k=sources, seed=0)
    return np.array([found[i] for i in range(n)])
