"""Topologies with nothing random in them, against NetworkX's graphs or their definitions link by link."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from topology_cases import assert_same, assert_sound

from p2psim.core.errors import MeaningError
from p2psim.network.graph import TopologyInputs, links
from p2psim.network.topologies import BinaryTree, Exponential, Hypercube, Star, StarOfAgents, draw_links


@given(st.integers(2, 50))
def test_a_star_of_agents(agents: int) -> None:
    found = draw_links(StarOfAgents(agents=agents), TopologyInputs())
    assert_same(found, links(nx.star_graph(agents - 1)))
    assert_same(found, draw_links(Star(agents=agents), TopologyInputs()))
    assert not found.star


@given(st.integers(2, 70))
def test_a_binary_tree(agents: int) -> None:
    found = draw_links(BinaryTree(), TopologyInputs(agents))
    assert_sound(found)
    assert_same(found, links(nx.full_rary_tree(2, agents)))


@given(st.integers(1, 7))
def test_a_hypercube(dimension: int) -> None:
    found = draw_links(Hypercube(), TopologyInputs(2**dimension))
    cube = nx.hypercube_graph(dimension)
    number = {
        node: sum(digit << k for k, digit in enumerate(node if dimension > 1 else (node,))) for node in cube
    }
    assert_same(found, links(nx.relabel_nodes(cube, number)))
    assert (np.diff(found.indptr) == dimension).all()


@pytest.mark.parametrize(("agents", "near"), [(12, "8 or 16"), (3, "2 or 4"), (33, "32 or 64")])
def test_a_hypercube_has_a_power_of_two(agents: int, near: str) -> None:
    with pytest.raises(MeaningError, match=f"power of two of agents, such as {near}; got {agents}"):
        draw_links(Hypercube(agents=agents), TopologyInputs())


@given(st.integers(2, 70))
def test_the_exponential_graph(agents: int) -> None:
    found = draw_links(Exponential(), TopologyInputs(agents))
    W = assert_sound(found)
    hops = [2**k for k in range(8) if 2**k < agents]
    for i in range(agents):
        for j in range(agents):
            assert W[i, j] == (i != j and any((i - j) % agents in (hop, agents - hop) for hop in hops))
    assert_same(found, links(nx.circulant_graph(agents, hops)))


def test_the_exponential_graph_of_a_power_of_two_has_two_logarithms_less_one_neighbours() -> None:
    for power in range(1, 8):
        found = draw_links(Exponential(agents=2**power), TopologyInputs())
        assert (np.diff(found.indptr) == 2 * power - 1).all()
