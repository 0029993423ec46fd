"""What topologies have in common: keys, the number of agents, and errors about both."""

from typing import Annotated

from pydantic import Field

from p2psim.errors import MeaningError
from p2psim.network.links import Given
from p2psim.options import Few, Whole

Agents = Annotated[Few | None, Field(description="number of agents; left out, as many as the data gives")]
Seed = Annotated[
    Whole | None, Field(description="seed of this one graph for all replicas; left out, each draws its own")
]
AllowDisconnected = Annotated[
    bool, Field(description="whether the graph may fall into parts that no link joins")
]

#: Where all pairs of agents are built: 1.2 GB of links.
MOST_OF_ALL_PAIRS = 10_000


def settle(
    own: int | None,
    agents: int | None,
    given: Given,
    least: int = 2,
    most: int | None = None,
    key: str = "network.topology.agents",
) -> int:
    """Number of agents that the topology, the caller and the data agree on.

    Raises
    ------
    MeaningError
        If they disagree, none of them says it, or there are too few or too many for the kind of graph.
    """
    wanted = agents if agents is not None else given.agents
    if agents is not None and given.agents is not None and agents != given.agents:
        raise MeaningError(key, f"{agents} agents are asked for, but the data gives {given.agents}")
    if own is not None and wanted is not None and own != wanted:
        raise MeaningError(key, f"is {own}, but the data gives {wanted} agents")
    number = own if own is not None else wanted
    if number is None:
        raise MeaningError(key, "say how many agents there are, here or in the data")
    if number < least:
        raise MeaningError(key, f"this graph takes at least {least} agents, got {number}")
    if most is not None and number > most:
        raise MeaningError(
            key, f"this graph has a link for every pair: at most {most:,} agents, got {number:,}"
        )
    return number


def no_learner(kind: str, learner: bool) -> None:
    """Refuse a learner where there is no place for one.

    Raises
    ------
    MeaningError
    """
    if learner:
        raise MeaningError("network.topology", f"a central learner needs a star, got {kind}")
