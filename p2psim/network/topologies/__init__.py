"""Topologies: who is linked with whom. A new one is one file beside these, and one line in the list below."""

from dataclasses import replace
from typing import Annotated, Any, get_args

from pydantic import BeforeValidator

from p2psim.core.options import BY_NAME
from p2psim.core.part_types import AnyOf
from p2psim.core.randomness import generator, stream_key
from p2psim.core.registry import declare
from p2psim.network.changes import LinkChanges
from p2psim.network.graph import Graph, TopologyInputs
from p2psim.network.mixing import WeightRule, weights_by_degrees
from p2psim.network.topologies.base import ChangingTopology, Topology, is_graph

__getattr__ = declare(
    "topology",
    __name__,
    {
        "star": "regular:Star",
        "complete": "regular:Complete",
        "ring": "regular:Ring",
        "grid": "regular:Grid",
        "star-of-agents": "regular:StarOfAgents",
        "binary-tree": "regular:BinaryTree",
        "hypercube": "regular:Hypercube",
        "exponential": "regular:Exponential",
        "random-regular": "random:RandomRegular",
        "erdos-renyi": "random:ErdosRenyi",
        "small-world watts-strogatz": "random:SmallWorld",
        "scale-free barabasi-albert": "random:ScaleFree",
        "two-cluster planted-partition": "blocks:TwoCluster",
        "stochastic-block": "blocks:StochasticBlock",
        "knn": "points:NearestNeighbours",
        "similarity": "points:Similarity",
        "file": "file:FromFile",
        "networkx": "file:FromGraph",
        "one-peer-exponential": "changing:OnePeerExponential",
        "random-matching": "changing:RandomMatching",
        "random-waypoint": "moving:RandomWaypoint",
        "changing-file": "changing:ChangingFile",
        "rewired": "moving:Rewired",
    },
)

#: A graph of NetworkX stands for the topology of it.
_BY_GRAPH = BeforeValidator(lambda value: {"kind": "networkx", "graph": value} if is_graph(value) else value)

#: Any topology that is registered.
AnyTopology = Annotated[Topology, AnyOf("topology"), BY_NAME, _BY_GRAPH]

__all__ = ["AnyTopology", "ChangingTopology", "Topology", "draw_links", "is_redrawn"]


def is_redrawn(topology: Topology) -> bool:
    """Whether each replica draws a graph of its own."""
    return topology.is_random and getattr(topology, "seed", None) is None


def draw_links(
    topology: Topology,
    given: TopologyInputs,
    *,
    seed: int = 0,
    replica: int | None = None,
    variant: str = "",
    learner: bool = False,
) -> Graph:
    """Make the graph of one replica.

    Parameters
    ----------
    topology : Topology
    given : TopologyInputs
        What the data says: the number of agents, and what neighbours are found by.
    seed, replica, variant
        As in :func:`p2psim.core.randomness.stream_key`, for the purpose ``topology``. A topology's own seed stands for
        all three.
    learner : bool
        Whether there shall be a central learner, which only a star has.

    Returns
    -------
    Graph

    Raises
    ------
    MeaningError
        If the number of agents is unknown, too small, or given twice and differently; there is no such graph; or
        the graph has an agent without links, or, unless that is allowed, parts that no link joins.
    MissingSourceError
        If there is no such file.
    """
    own = getattr(topology, "seed", None)
    if own is not None:
        key = stream_key(own, None, "topology")
    else:
        key = stream_key(seed, replica if topology.is_random else None, "topology", variant)
    links = _weighted(topology, topology.links(None, generator(key), given, learner))
    if isinstance(topology, ChangingTopology):
        return replace(links, changes=LinkChanges(topology, given, key))
    return links


def _weighted(topology: Topology, links: Graph) -> Graph:
    """The graph with the weights that the topology's keys ask for."""
    rule: Any = getattr(topology, "weights", None)
    if rule in get_args(WeightRule):  # a topology of the user's may call something else so
        links = replace(links, weights=weights_by_degrees(links, rule))
    if getattr(topology, "normalise", None) is True:
        links = replace(links, weights=links.weights / (links.weights.sum() / links.agents))
    return links
