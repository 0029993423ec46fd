"""The two sides of a bipartite graph, of which one asks and the other answers."""

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.network.graph import Graph


def asking_side(links: Graph) -> np.ndarray:
    """Whether each agent is of the side of a bipartite graph that asks, shape (n,).

    Raises
    ------
    MeaningError
        If the graph has a cycle of odd length.
    """
    sides = np.full(links.agents, -1)
    for first in range(links.agents):
        if sides[first] >= 0:
            continue
        sides[first], reached = 1, [first]
        while reached:
            agent = reached.pop()
            near = links.of(agent)
            if (sides[near] == sides[agent]).any():
                raise MeaningError(
                    "network.exchange.blocking",
                    f"agent {agent} is on a cycle of odd length: where who waits answers nobody, agents that wait in a "
                    "cycle deadlock; it needs a bipartite graph, such as a ring of an even number of agents",
                )
            fresh = near[sides[near] < 0]
            sides[fresh] = 1 - sides[agent]
            reached += fresh.tolist()
    return sides == 1
