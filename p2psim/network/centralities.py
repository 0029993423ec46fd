"""Centralities of agents, by the shortest paths between others (Freeman 1979)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.network.links import Links

if TYPE_CHECKING:
    import networkx as nx

#: Beyond so many agents betweenness is estimated from as many sources, drawn once and for all.
MOST_SOURCES = 500


def _unweighted(links: Links) -> nx.Graph[Any]:
    """The graph without its weights."""
    import networkx as nx
    from scipy.sparse import csr_array

    shape = (links.agents, links.agents)
    return nx.from_scipy_sparse_array(
        csr_array((np.ones(links.indices.size), links.indices, links.indptr), shape=shape)
    )


def betweenness(links: Links) -> np.ndarray:
    """Normalised betweenness of each agent, shape (n,): exact up to `MOST_SOURCES` agents, estimated beyond."""
    import networkx as nx

    n = links.agents
    sources = None if n <= MOST_SOURCES else MOST_SOURCES
    found = nx.betweenness_centrality(_unweighted(links), k=sources, seed=0)
    return np.array([found[i] for i in range(n)])
