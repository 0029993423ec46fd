"""Mixing weights against their definitions, written out link by link, and what is refused."""

import networkx as nx
import numpy as np
import pytest

from p2psim.core.errors import MeaningError
from p2psim.network.graph import Graph, from_edges, links, star_links
from p2psim.network.mixing import mixing_matrix, mixing_weights
from p2psim.network.spectrum import metropolis

GRAPHS = {
    "path": nx.path_graph(5),
    "star": nx.star_graph(6),
    "petersen": nx.petersen_graph(),
    "karate": nx.Graph(nx.karate_club_graph().edges()),
    "barbell": nx.barbell_graph(4, 2),
    "lollipop": nx.lollipop_graph(5, 3),
}

FORMULAS = {
    "metropolis": lambda a, b, most: 1 / (1 + max(a, b)),
    "uniform": lambda a, b, most: 1 / (1 + most),
    "degree": lambda a, b, most: 1 / max(a, b),
}


def by_hand(graph: "nx.Graph[int]", rule: str) -> np.ndarray:
    n = graph.number_of_nodes()
    degree, W = dict(graph.degree()), np.zeros((n, n))
    for a, b in graph.edges():
        W[a, b] = W[b, a] = FORMULAS[rule](degree[a], degree[b], max(degree.values()))
    for i in range(n):
        W[i, i] = 1 - W[i].sum()
    return W


@pytest.mark.parametrize("rule", FORMULAS)
@pytest.mark.parametrize("name", GRAPHS)
def test_weights_are_those_of_the_definition(name: str, rule: str) -> None:
    graph = links(GRAPHS[name])
    if name == "star" and rule == "degree":  # the leaves keep 5/6
        assert mixing_weights(graph, "degree")[1] == pytest.approx([0, *[5 / 6] * 6])
    W = mixing_matrix(graph, rule).toarray()  # type: ignore[arg-type]
    np.testing.assert_allclose(W, by_hand(GRAPHS[name], rule), atol=1e-15)
    np.testing.assert_allclose(W.sum(axis=0), 1, atol=1e-14)
    np.testing.assert_allclose(W.sum(axis=1), 1, atol=1e-14)
    assert (W >= 0).all()
    # Averaging converges: all eigenvalues but the first are inside of (−1, 1).
    values = np.linalg.eigvalsh(W)
    assert values[-2] < 1 - 1e-6
    assert values[0] > -1 + 1e-6


def test_metropolis_is_that_of_private_averaging() -> None:
    graph = links(GRAPHS["karate"])
    np.testing.assert_allclose(
        mixing_matrix(graph, "metropolis").toarray(), metropolis(graph).toarray(), atol=1e-15
    )


def test_weights_are_in_the_order_of_links() -> None:
    graph = links(nx.path_graph(4))
    between, own = mixing_weights(graph, "degree")
    np.testing.assert_array_equal(graph.indices, [1, 0, 2, 1, 3, 2])
    np.testing.assert_allclose(between, [1 / 2] * 6)
    np.testing.assert_allclose(own, [1 / 2, 0, 0, 1 / 2])


def test_weights_of_links() -> None:
    ends = np.array([0, 1, 2]), np.array([1, 2, 0])
    graph = from_edges(3, *ends, weights=np.array([0.5, 0.25, 0.125]))
    W = mixing_matrix(graph, "links").toarray()
    expected = [[0.375, 0.5, 0.125], [0.5, 0.25, 0.25], [0.125, 0.25, 0.625]]
    np.testing.assert_array_equal(W, expected)


def test_thirds_on_a_triangle_leave_thirds() -> None:
    graph = from_edges(3, np.array([0, 1, 2]), np.array([1, 2, 0]), weights=np.full(3, 1 / 3))
    np.testing.assert_allclose(mixing_weights(graph, "links")[1], 1 / 3, rtol=1e-12)


def test_links_of_one_way_may_be_doubly_stochastic() -> None:
    """Everyone takes half of the next: a permutation, of which nobody's model is worth more."""
    n = 5
    graph = Graph(np.arange(n + 1), ((np.arange(n) + 1) % n).astype(np.int32), False, np.full(n, 0.5))
    between, own = mixing_weights(graph, "links")
    np.testing.assert_array_equal(between, 0.5)
    np.testing.assert_array_equal(own, 0.5)


def refused(graph: Graph, rule: str) -> str:
    with pytest.raises(MeaningError) as error:
        mixing_weights(graph, rule)  # type: ignore[arg-type]
    return str(error.value)


def test_what_is_refused() -> None:
    assert "a star with a learner has none" in refused(star_links(3), "metropolis")
    assert "metropolis, uniform, degree, links" in refused(links(nx.path_graph(3)), "best")
    assert "the weights of agent 1 sum to 2" in refused(links(nx.path_graph(3)), "links")
    one_way = Graph(np.array([0, 1, 2, 3]), np.array([1, 0, 0], dtype=np.int32), False, np.full(3, 0.5))
    assert "the model of agent 0 sum to 1.5, not 1" in refused(one_way, "links")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0, 0.0])
def test_weights_that_are_no_weights_are_refused(bad: float) -> None:
    graph = from_edges(3, np.array([0, 1]), np.array([1, 2]), weights=np.array([0.25, bad]))
    said = refused(graph, "links")
    assert "the weight of the link 1 – 2 must be a positive number" in said


@pytest.mark.parametrize(
    "graph",
    [
        nx.cycle_graph(6),
        nx.hypercube_graph(3),
        nx.path_graph(2),
        nx.disjoint_union(nx.cycle_graph(4), nx.cycle_graph(3)),
    ],
)
def test_averaging_that_alternates_is_refused(graph: "nx.Graph[int]") -> None:
    named: nx.Graph[int] = nx.convert_node_labels_to_integers(graph)  # type: ignore[arg-type]
    assert "alternates for ever" in refused(links(named, allow_disconnected=True), "degree")
    mixing_weights(links(named, allow_disconnected=True), "metropolis")


def test_an_odd_ring_does_not_alternate() -> None:
    _, own = mixing_weights(links(nx.cycle_graph(7)), "degree")
    np.testing.assert_array_equal(own, 0)
