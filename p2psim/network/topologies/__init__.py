"""Topologies: who is linked with whom. A new one is one file beside these, and one name in the list below."""

from typing import Annotated

from pydantic import BeforeValidator

from p2psim.core.options import BY_NAME
from p2psim.core.randomness import generator, stream_key
from p2psim.core.registry import AnyOf, register_all
from p2psim.network.graph import Graph, TopologyInputs
from p2psim.network.topologies.base import Topology
from p2psim.network.topologies.file import FromFile, FromGraph, is_graph
from p2psim.network.topologies.points import NearestNeighbours, Similarity
from p2psim.network.topologies.random import ErdosRenyi, RandomRegular, ScaleFree, SmallWorld, TwoCluster
from p2psim.network.topologies.regular import Complete, Grid, Ring, Star

register_all(
    [
        Star, Complete, Ring, Grid, RandomRegular, ErdosRenyi, SmallWorld, ScaleFree, TwoCluster, NearestNeighbours,
        Similarity, FromFile, FromGraph,
    ]
)  # fmt: skip

#: A graph of NetworkX stands for the topology of it.
_BY_GRAPH = BeforeValidator(lambda value: {"kind": "networkx", "graph": value} if is_graph(value) else value)

#: Any topology that is registered.
AnyTopology = Annotated[Topology, AnyOf("topology"), BY_NAME, _BY_GRAPH]

__all__ = [
    "AnyTopology",
    "Complete",
    "ErdosRenyi",
    "FromFile",
    "FromGraph",
    "Grid",
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
    return topology.links(None, generator(key), given, learner)
