"""Graphs that follow from what agents are like: nearest neighbours, and similarity of targets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_matrix, csr_array
from topology_cases import assert_same, assert_sound, matrix

from p2psim.core.errors import MeaningError
from p2psim.network.graph import TopologyInputs
from p2psim.network.topologies import NearestNeighbours, Similarity, draw_links, points


def distance(x, y, metric):
    if metric == "euclidean":
        return np.sqrt(sum((a - b) ** 2 for a, b in zip(x, y, strict=True)))
    return 1 - x @ y / np.sqrt((x @ x) * (y @ y))


def brute(profiles, neighbours, metric, symmetrise):
    """Nearest neighbours, one agent after the other; distances that agree to 1e-9 are ties."""
    n = len(profiles)
    chosen = np.zeros((n, n), dtype=bool)
    for i in range(n):
        others = sorted((round(distance(profiles[i], profiles[j], metric), 9), j) for j in range(n) if j != i)
        chosen[i, [j for _, j in others[:neighbours]]] = True
    return (chosen | chosen.T if symmetrise == "or" else chosen & chosen.T).astype(float)


@settings(deadline=None)
@given(
    st.data(), st.integers(2, 25), st.integers(1, 6), st.sampled_from(["cosine", "euclidean"]),
    st.booleans(), st.integers(0, 2**32),
)  # fmt: skip
def test_nearest_neighbours_against_brute_force(data, agents, dimension, metric, whole, seed):
    neighbours = data.draw(st.integers(1, agents - 1))
    random = np.random.default_rng(seed)
    # Whole numbers make many ties, in which lower numbers win.
    profiles = (
        random.integers(1, 4, (agents, dimension)) if whole else random.normal(size=(agents, dimension))
    )
    profiles = profiles.astype(float)
    topology = NearestNeighbours(neighbours=neighbours, metric=metric, allow_disconnected=True)
    links = draw_links(topology, TopologyInputs(agents, profiles=profiles))
    W = assert_sound(links, connected=False)
    assert np.array_equal(W, brute(profiles, neighbours, metric, "or"))
    assert (W.sum(axis=1) >= neighbours).all()
    for sparse in (csr_array(profiles), coo_matrix(profiles).tocsr()):
        assert_same(links, draw_links(topology, TopologyInputs(agents, profiles=sparse)))


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_both_must_choose_each_other(metric):
    profiles = np.random.default_rng(1).uniform(0, 1, size=(60, 3))
    topology = NearestNeighbours(neighbours=20, metric=metric, symmetrise="and")
    W = assert_sound(draw_links(topology, TopologyInputs(60, profiles=profiles)))
    assert np.array_equal(W, brute(profiles, 20, metric, "and"))


def test_block_by_block_is_the_same(monkeypatch):
    profiles = np.random.default_rng(1).normal(size=(50, 3))
    topology, given_ = NearestNeighbours(neighbours=8), TopologyInputs(50, profiles=profiles)
    whole = draw_links(topology, given_)
    monkeypatch.setattr(points, "BLOCK", 150)
    assert_same(whole, draw_links(topology, given_))


def test_profiles_that_are_all_alike():
    # Everyone's nearest are the lowest numbers.
    W = matrix(
        draw_links(
            NearestNeighbours(neighbours=1, metric="euclidean"), TopologyInputs(5, profiles=np.zeros((5, 2)))
        )
    )
    assert np.array_equal(np.argwhere(np.triu(W)), [[0, 1], [0, 2], [0, 3], [0, 4]])


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_a_profile_that_is_zero_is_orthogonal_to_all(form):
    """Agent 2 takes the first two; nobody takes it before one that is nearer than a right angle."""
    profiles = np.array([[1.0, 0], [1, 0.1], [0, 0], [1, 0.2], [-1, 0]])
    W = matrix(draw_links(NearestNeighbours(neighbours=2), TopologyInputs(5, profiles=form(profiles))))
    # Of agent 4 all others are behind it, but agent 2.
    assert np.array_equal(np.argwhere(np.triu(W)), [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 4], [3, 4]])


@pytest.mark.parametrize(
    ("topology", "profiles", "message"),
    [
        (NearestNeighbours(neighbours=2), None, "knn needs profiles of the agents"),
        (NearestNeighbours(neighbours=4), np.ones((4, 2)), "neighbours: must be less than .* 4; got 4"),
        (NearestNeighbours(neighbours=2), np.ones((5, 2)), r"must be 4 vectors, got an array of shape \(5, 2\)"),
        (NearestNeighbours(neighbours=2), np.ones(4), r"must be 4 vectors, got an array of shape \(4,\)"),
        (NearestNeighbours(neighbours=2), np.full((4, 2), np.nan), "profiles must be finite numbers"),
        (NearestNeighbours(neighbours=2), csr_array(np.diag([1.0, 1, np.inf, 1])), "must be finite numbers"),
        (
            NearestNeighbours(neighbours=1, metric="euclidean"),
            np.array([[0.0], [1], [10], [11]]),
            "the graph falls into 2 parts that no link joins; allow_disconnected: true",
        ),
        (
            NearestNeighbours(neighbours=1, metric="euclidean", symmetrise="and", allow_disconnected=True),
            np.array([[0.0], [1], [10], [12]]) ** 2,
            None,
        ),
        (
            NearestNeighbours(neighbours=1, metric="euclidean", symmetrise="and", allow_disconnected=True),
            np.array([[0.0], [1], [3], [7]]),
            r"agent 2 \(and 1 others\) has no link",
        ),
        (NearestNeighbours(neighbours=2, agents=5), np.ones((4, 2)), "is 5, but the data gives 4 agents"),
    ],
)  # fmt: skip
def test_what_has_no_nearest_neighbours(topology, profiles, message):
    if message is None:
        assert_sound(draw_links(topology, TopologyInputs(4, profiles=profiles)), connected=False)
        return
    with pytest.raises(MeaningError, match=message):
        draw_links(topology, TopologyInputs(4, profiles=profiles))


def formula(targets, gamma):
    n = len(targets)
    W = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i != j:
                cosine = targets[i] @ targets[j] / np.linalg.norm(targets[i]) / np.linalg.norm(targets[j])
                W[i, j] = np.exp((cosine - 1) / gamma)
    return W


@settings(deadline=None)
@given(st.integers(2, 12), st.integers(1, 5), st.floats(0.05, 10), st.integers(0, 2**32))
def test_the_angular_kernel(agents, dimension, gamma, seed):
    targets = np.random.default_rng(seed).normal(size=(agents, dimension))
    W = assert_sound(draw_links(Similarity(gamma=gamma), TopologyInputs(agents, targets=targets)))
    np.testing.assert_allclose(W, formula(targets, gamma), rtol=1e-9)


def drop_one_by_one(W, above):
    """Drop the smallest weight as long as λ₂ stays above; plain, and stops the first time."""
    W = W.copy()
    while True:
        i, j = min(np.argwhere(np.triu(W) > 0), key=lambda pair: W[pair[0], pair[1]])
        less = W.copy()
        less[i, j] = less[j, i] = 0
        if not np.linalg.eigvalsh(np.diag(less.sum(axis=1)) - less)[1] > above:
            return W
        W = less


@pytest.mark.parametrize("above", [1e-3, 0.05, 0.5])
@pytest.mark.parametrize("seed", range(8))
def test_the_smallest_weights_are_dropped_while_connected(seed, above):
    random = np.random.default_rng(seed)
    targets = np.zeros((random.integers(4, 14), 6))
    targets[:, :2] = random.normal(size=(len(targets), 2))
    full = formula(targets, 0.5)
    if np.linalg.eigvalsh(np.diag(full.sum(axis=1)) - full)[1] <= above:
        with pytest.raises(MeaningError, match="with all weights, which is not above"):
            draw_links(
                Similarity(gamma=0.5, keep_connected=above), TopologyInputs(len(targets), targets=targets)
            )
        return
    W = assert_sound(
        draw_links(Similarity(gamma=0.5, keep_connected=above), TopologyInputs(len(targets), targets=targets))
    )
    np.testing.assert_allclose(W, drop_one_by_one(full, above), rtol=1e-9)


def test_a_hundred_agents_as_in_the_paper():
    targets = np.zeros((100, 100))
    targets[:, :2] = np.random.default_rng(0).normal(0, np.sqrt(0.5), (100, 2))
    W = assert_sound(
        draw_links(Similarity(gamma=0.1, keep_connected=1e-3), TopologyInputs(100, targets=targets), seed=1)
    )
    laplacian = np.diag(W.sum(axis=1)) - W
    assert np.linalg.eigvalsh(laplacian)[1] > 1e-3
    i, j = min(np.argwhere(np.triu(W) > 0), key=lambda pair: W[pair[0], pair[1]])
    W[i, j] = W[j, i] = 0
    assert np.linalg.eigvalsh(np.diag(W.sum(axis=1)) - W)[1] <= 1e-3, "one more could have been dropped"


@pytest.mark.parametrize(
    ("topology", "targets", "message"),
    [
        (Similarity(), None, "similarity needs targets of the agents"),
        (Similarity(), np.ones((3, 2)), r"targets must be 4 vectors, got an array of shape \(3, 2\)"),
        (Similarity(), np.diag([1.0, 1, 0, 1]), "the target of agent 2 is zero or not finite"),
        (Similarity(), np.full((4, 2), np.nan), "the target of agent 0 is zero or not finite"),
        (Similarity(gamma=1e-4), np.eye(4), r"agent 0 \(and 3 others\) has no link"),
        (Similarity(keep_connected=100.0), np.eye(4), "with all weights, which is not above 100; a larger gamma"),
        (Similarity(agents=5), np.eye(4), "is 5, but the data gives 4 agents"),
    ],
)  # fmt: skip
def test_targets_that_make_no_graph(topology, targets, message):
    with pytest.raises(MeaningError, match=message):
        draw_links(topology, TopologyInputs(4, targets=targets))
