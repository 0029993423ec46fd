"""The ``network`` section of a scenario, and the network that an engine runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from p2psim.core.options import BY_NAME, Options, PerAgent
from p2psim.network.availability import Always, AnyAvailability, Availability
from p2psim.network.channels import Channel
from p2psim.network.exchanges import Exchange
from p2psim.network.exchanges.gossip import Gossip
from p2psim.network.exchanges.poll import Poll
from p2psim.network.exchanges.protocol import ExchangePattern
from p2psim.network.graph import Given, Links, from_edges, links
from p2psim.network.members import Members
from p2psim.network.topologies import (
    AnyTopology,
    Complete,
    ErdosRenyi,
    FromFile,
    Grid,
    NearestNeighbours,
    RandomRegular,
    Ring,
    ScaleFree,
    Similarity,
    SmallWorld,
    Star,
    Topology,
    TwoCluster,
    draw_links,
    is_redrawn,
)

if TYPE_CHECKING:
    import networkx as nx


class Clock(Options):
    """Independent Poisson clocks."""

    kind: Literal["poisson"] = "poisson"
    rate: PerAgent = Field(1.0, description="mean number of wakes per unit of time")


__all__ = [
    "AnyTopology",
    "Clock",
    "Complete",
    "Engine",
    "ErdosRenyi",
    "FromFile",
    "Given",
    "Grid",
    "Links",
    "NearestNeighbours",
    "Network",
    "NetworkSection",
    "RandomRegular",
    "Ring",
    "ScaleFree",
    "Similarity",
    "SmallWorld",
    "Star",
    "Topology",
    "TwoCluster",
    "draw_links",
    "from_edges",
    "is_redrawn",
    "links",
]

Engine = Literal["auto", "simpy", "array"]


class NetworkSection(Options):
    """Who wakes, who hears whom, and when."""

    topology: AnyTopology = Field(description="who is linked with whom")
    exchange: Exchange = Field(description="what happens when an agent wakes")
    clock: Annotated[Clock | None, BY_NAME] = Field(
        None, description="when agents wake; a Poisson clock of rate 1 when absent"
    )
    channel: Channel = Field(Channel(), description="what happens to a message on its way")
    availability: Availability = Field(Always(), description="who is there")
    engine: Engine = Field(
        "auto",
        description="auto takes the array engine where messages take no time, and are lost independently if at all",
    )


@dataclass(frozen=True)
class Network:
    """What makes events.

    Attributes
    ----------
    links : Links
        From :func:`p2psim.network.section.links`.
    exchange : ExchangePattern
    channel : Channel
    availability : Always or Absence
        Who is there.
    rates : ndarray, shape (n,), optional
        Wakes of each agent per unit of time, positive; one each when left out.
    goes_on : bool
        Whether an agent that may make no more releases goes on without its data: it wakes, commits and sends as before,
        releasing nothing. Otherwise it is silent. Not for a star's owners.
    updates : {"wake", "hear"}
        Whether the algorithm updates a model when its agent wakes, or when it hears another model. The latter needs an
        exchange by gossip.
    members : Members, optional
        What is known of the agents beside their links; their indices when left out.
    vectors : int
        p-vectors in a message that carries a model: with a bandwidth they take airtime.
    """

    links: Links
    exchange: ExchangePattern
    channel: Channel = field(default_factory=Channel)
    availability: AnyAvailability = field(default_factory=Always)
    rates: np.ndarray | None = None
    goes_on: bool = False
    updates: Literal["wake", "hear"] = "wake"
    members: Members | None = None
    vectors: int = 1

    def __post_init__(self) -> None:
        """Refuse a channel that means nothing on these links; see `Channel.check`."""
        self.channel.check(self.links)

    @classmethod
    def of_graph(
        cls,
        graph: nx.Graph[int],
        exchange: ExchangePattern,
        channel: Channel | None = None,
        availability: AnyAvailability | None = None,
    ) -> Network:
        """Network on a NetworkX graph with nodes 0 … n − 1 (and −1, the learner); node attribute ``rate`` is read."""
        arrays = links(graph)
        rates = np.array([float(graph.nodes[i].get("rate", 1.0)) for i in range(arrays.agents)])
        return cls(arrays, exchange, channel or Channel(), availability or Always(), rates)

    @property
    def by_edge(self) -> bool:
        """Whether links wake, so that releases go with sends, and not with commits (`EventChecker`)."""
        return isinstance(self.exchange, Gossip) and self.exchange.mode == "edge"

    @property
    def polled(self) -> float | None:
        """Interval at which the learner asks everyone, where that is fixed."""
        return self.exchange.interval if isinstance(self.exchange, Poll) else None

    def shares(self) -> np.ndarray:
        """Share of its ticks at which each agent is there, shape (n,); NaN where it cannot be said beforehand.

        Raises
        ------
        MeaningError
            If the availability means nothing for these agents.
        """
        assert self.members is not None
        return self.availability.shares(self.members, self.links)
