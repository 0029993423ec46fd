"""What tests of topologies share: plain matrices, and what every graph must be."""

import numpy as np

from p2psim.network.changes import graph_at
from p2psim.network.graph import Graph


def matrix(links: Graph) -> np.ndarray:
    """W, filled entry by entry."""
    W = np.zeros((links.agents, links.agents))
    for agent in range(links.agents):
        for other, weight in zip(links.of(agent), links.weights_of(agent), strict=True):
            assert W[agent, other] == 0, "a link is there twice"
            W[agent, other] = weight
    return W


def reached(W: np.ndarray) -> set[int]:
    """Whom agent 0's word reaches."""
    seen, edge = {0}, [0]
    while edge:
        for other in np.flatnonzero(W[edge.pop()]):
            if other not in seen:
                seen.add(int(other))
                edge.append(int(other))
    return seen


def assert_sound(links: Graph, connected: bool = True) -> np.ndarray:
    """Symmetric, no loops, rows in rising order, positive weights; returns W."""
    assert links.indptr.dtype == np.int64
    assert links.indices.dtype == np.int32
    assert links.weights.dtype == np.float64
    assert links.indptr[0] == 0
    assert links.indptr[-1] == links.indices.size == links.weights.size
    assert (np.diff(links.indptr) > 0).all()
    for agent in range(links.agents):
        assert (np.diff(links.of(agent)) > 0).all()
    W = matrix(links)
    assert (links.weights > 0).all()
    assert np.array_equal(W, W.T)
    assert not np.diag(W).any()
    np.testing.assert_allclose(links.degrees(), W.sum(axis=1), rtol=1e-12)
    if connected:
        assert len(reached(W)) == links.agents
    return W


def assert_same(one: Graph, other: Graph) -> None:
    for name in ("indptr", "indices", "weights"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
    assert (one.changes is None) == (other.changes is None)
    if one.changes is not None:
        for time in (0.0, 1.5, 4.0):
            assert_same(graph_at(one, time), graph_at(other, time))
