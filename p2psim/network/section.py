"""When agents wake.

The ``network`` section of a scenario.

Who is linked with whom: kinds of graphs, and the arrays that engines work on, in one place.
"""

from typing import Annotated, Literal

from pydantic import Field

from p2psim.core.options import BY_NAME, Options, PerAgent
from p2psim.network.availability import Always, Availability
from p2psim.network.channels import Channel
from p2psim.network.exchanges import Exchange
from p2psim.network.graph import Given, Links, from_edges, links
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


class Clock(Options):
    """Independent Poisson clocks."""

    kind: Literal["poisson"] = "poisson"
    rate: PerAgent = Field(1.0, description="mean number of wakes per unit of time")


__all__ = [
    "AnyTopology",
    "Complete",
    "ErdosRenyi",
    "FromFile",
    "Given",
    "Grid",
    "Links",
    "NearestNeighbours",
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
