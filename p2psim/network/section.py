"""The ``network`` section of a scenario."""

from typing import Annotated, Literal

from pydantic import Field

from p2psim.network.availability import Always, Availability
from p2psim.network.channels import Channel
from p2psim.network.clocks import Clock
from p2psim.network.exchanges import Exchange
from p2psim.network.graphs import AnyTopology
from p2psim.options import BY_NAME, Options

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
