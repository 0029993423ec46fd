"""Kinds of agents that metrics are averaged over: by degree, clusters of the graph, and blocks of the topology."""

import networkx as nx
import pytest
from graph_cases import graph_scenario

from p2psim.core.errors import InputError
from p2psim.network.exchanges import Broadcast
from p2psim.network.section import Network
from p2psim.simulation.algorithms.agents import kinds_of

BLOCKS = {"kind": "stochastic-block", "sizes": [2, 4, 3], "within": 1.0, "between": 0.2}


def kinds(by, graph, topology=None):
    agents = graph.number_of_nodes()
    changes = {
        "record.by": by,
        "network.topology": {"kind": "ring", "agents": agents},
        "data.source.agents": agents,
    }
    if topology is not None:
        changes["network.topology"] = topology
    return kinds_of(graph_scenario(changes), None, Network.of_graph(graph, Broadcast()).links)


@pytest.mark.parametrize("by", ["cluster", "louvain"])
def test_cliques_that_few_links_join_are_clusters(by):
    graph = nx.connected_caveman_graph(3, 5)
    assert kinds(by, graph) == tuple(f"cluster {1 + agent // 5}" for agent in range(15))


def test_kinds_by_degree_are_numbers_of_neighbours():
    assert kinds("degree", nx.path_graph(4)) == ("degree 1", "degree 2", "degree 2", "degree 1")


@pytest.mark.parametrize(
    ("topology", "sizes"),
    [
        (BLOCKS, [2, 4, 3]),
        ({**BLOCKS, "sizes": None, "blocks": 4}, [3, 2, 2, 2]),
        ({"kind": "planted-partition", "within": 1.0, "between": 0.1}, [5, 4]),
    ],
)
def test_blocks_are_those_of_the_topology(topology, sizes):
    expected = [f"block {number}" for number, size in enumerate(sizes, 1) for _ in range(size)]
    assert list(kinds("block", nx.path_graph(9), topology)) == expected


def test_a_graph_without_blocks_has_no_means_over_them():
    with pytest.raises(
        InputError, match=r"record\.by: block needs a topology that is drawn in blocks, got ring"
    ):
        graph_scenario({"record.by": "block", "network.topology": "ring"})
