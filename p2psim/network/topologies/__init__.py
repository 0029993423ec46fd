"""Topologies: who is linked with whom. A new one is one file beside these, and one name in the list below."""

from dataclasses import replace
from typing import Annotated, Any, get_args

from pydantic import BeforeValidator

from p2psim.core.options import BY_NAME
from p2psim.core.randomness import generator, stream_key
from p2psim.core.registry import AnyOf, register_all
from p2psim.network.changes import LinkChanges
from p2psim.network.graph import Graph, TopologyInputs
from p2psim.network.mixing import WeightRule, weights_by_degrees
from p2psim.network.topologies.base import Topology
from p2psim.network.topologies.blocks import StochasticBlock, TwoCluster
from p2psim.network.topologies.changing import (
    ChangingTopology,
    IntervalTopology,
    OnePeerExponential,
    RandomMatching,
)
from p2psim.network.topologies.changing_file import ChangingFile
from p2psim.network.topologies.file import FromFile, FromGraph, is_graph
from p2psim.network.topologies.points import NearestNeighbours, Similarity
from p2psim.network.topologies.random import ErdosRenyi, RandomRegular, ScaleFree, SmallWorld
from p2psim.network.topologies.regular import (
    BinaryTree,
    Complete,
    Exponential,
    Grid,
    Hypercube,
    Ring,
    Star,
    StarOfAgents,
)
from p2psim.network.topologies.waypoint import RandomWaypoint

register_all(
    [
        Star, Complete, Ring, Grid, StarOfAgents, BinaryTree, Hypercube, Exponential, RandomRegular, ErdosRenyi,
        SmallWorld, ScaleFree, TwoCluster, StochasticBlock, NearestNeighbours, Similarity, FromFile, FromGraph,
        OnePeerExponential, RandomMatching, RandomWaypoint, ChangingFile,
    ]
)  # fmt: skip

# It begins as any of these.
from p2psim.network.topologies.rewired import Rewired  # noqa: E402

#: A graph of NetworkX stands for the topology of it.
_BY_GRAPH = BeforeValidator(lambda value: {"kind": "networkx", "graph": value} if is_graph(value) else value)

#: Any topology that is registered.
AnyTopology = Annotated[Topology, AnyOf("topology"), BY_NAME, _BY_GRAPH]

__all__ = [
    "AnyTopology",
    "BinaryTree",
    "ChangingFile",
    "ChangingTopology",
    "Complete",
    "ErdosRenyi",
    "Exponential",
    "FromFile",
    "FromGraph",
    "Grid",
    "Hypercube",
    "IntervalTopology",
    "NearestNeighbours",
    "OnePeerExponential",
    "RandomMatching",
    "RandomRegular",
    "RandomWaypoint",
    "Rewired",
    "Ring",
    "ScaleFree",
    "Similarity",
    "SmallWorld",
    "Star",
    "StarOfAgents",
    "StochasticBlock",
    "Topology",
    "TwoCluster",
    "draw_links",
    "is_redrawn",
]


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
