"""Centralities in the table of agents, beside those of an independent library."""

import networkx as nx
import numpy as np
import pytest
from graph_cases import graph_scenario
from hypothesis import given, settings
from hypothesis import strategies as st

import p2psim
from p2psim.network.graph import Graph
from p2psim.simulation.algorithms.agents import graph_centralities


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 25), st.floats(0, 0.5), st.integers(0, 2**16))
def test_they_are_those_of_networkx(agents, density, seed):
    """On any graph, also one that falls into parts or has agents without links."""
    graph = nx.gnp_random_graph(agents, density, seed=seed)
    matrix = nx.to_scipy_sparse_array(graph, format="csr", dtype=float)
    matrix.sort_indices()
    links = Graph(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), False, matrix.data)
    found = graph_centralities(links, True)
    for name, expected in (
        ("closeness_centrality", nx.closeness_centrality(graph)),
        ("betweenness_centrality", nx.betweenness_centrality(graph)),
    ):
        np.testing.assert_allclose(found[name], [expected[i] for i in range(agents)], rtol=1e-12, atol=1e-15)


OF_EACH, RECORDED, NOT = (
    {"record.per_agent": ["releases"]},
    {"record.centralities": True},
    {"record.centralities": False},
)


@pytest.mark.parametrize(
    ("record", "kept"), [({}, False), (OF_EACH, True), (RECORDED, True), (OF_EACH | NOT, False)]
)
def test_they_are_kept_where_they_are_recorded(record, kept):
    scenario = graph_scenario({"record.metrics": ["objective"], **record})
    table = p2psim.simulate(scenario).agents
    assert ("betweenness_centrality" in table, "closeness_centrality" in table) == (kept, kept)
    assert {"degree", "degree_centrality"} <= set(table)
