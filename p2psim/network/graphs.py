"""Who is linked with whom: kinds of graphs, and the arrays that engines work on, in one place."""

from p2psim.network.links import Given, Links, from_edges, links
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
