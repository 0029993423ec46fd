import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from network_cases import connected_graphs
from threadpoolctl import threadpool_limits
from topology_cases import matrix

from p2psim.network import spectrum
from p2psim.network.graph import TopologyInputs, links
from p2psim.network.spectrum import dense_lambda2, spectral_facts, weight_matrix
from p2psim.network.topologies import (
    Complete,
    ErdosRenyi,
    Grid,
    RandomRegular,
    Ring,
    ScaleFree,
    SmallWorld,
    Star,
    draw_links,
)

pytestmark = pytest.mark.blas

#: A little more than those of which the whole matrix is decomposed.
MANY = 1010


def facts(topology, agents=None, **how):
    return spectral_facts(draw_links(topology, TopologyInputs(agents), **how))


@pytest.mark.parametrize("n", [3, 4, 7, 60, MANY])
def test_ring(n):
    found = facts(Ring(), n)
    assert found["lambda2"] == pytest.approx(2 - 2 * np.cos(2 * np.pi / n), rel=1e-6)
    assert found["spectral_gap"] == pytest.approx(1 - np.cos(2 * np.pi / n), rel=1e-6)
    assert found["diameter"] == n // 2
    assert (found["degree_min"], found["degree_max"], found["degree_std"]) == (2, 2, 0)


@pytest.mark.parametrize("n", [2, 5, 50, MANY])
def test_complete(n):
    found = facts(Complete(), n)
    assert found["lambda2"] == pytest.approx(n, rel=1e-6)
    assert found["spectral_gap"] == pytest.approx(n / (n - 1), rel=1e-6)
    assert found["diameter"] == 1


@pytest.mark.parametrize("learner", [True, False])
@pytest.mark.parametrize("n", [3, 20, 2100])
def test_star(n, learner):
    found = facts(Star(), n, learner=learner)
    leaves = n if learner else n - 1
    assert found["lambda2"] == pytest.approx(1, rel=1e-6)
    assert found["spectral_gap"] == pytest.approx(1, rel=1e-6)
    assert found["degree_max"] == leaves
    assert found["degree_mean"] == pytest.approx(2 * leaves / (leaves + 1))
    if leaves < 2000:
        assert found["diameter"] == 2


def test_a_learner_with_one_owner_is_a_pair():
    assert facts(Star(), 1, learner=True)["lambda2"] == pytest.approx(2)


@pytest.mark.parametrize("shape", [(1, 2), (1, 9), (6, 10), (3, 3), (1, MANY), (30, 40)])
def test_grid(shape):
    # Eigenvalues of a product of paths are sums of theirs, 2 − 2cos(kπ/n).
    found = facts(Grid(shape=shape))
    assert found["lambda2"] == pytest.approx(2 - 2 * np.cos(np.pi / max(shape)), rel=1e-6)
    assert found["diameter"] == sum(shape) - 2


@pytest.mark.parametrize("n", [4, 30])
def test_a_path_walks_with_a_known_gap(n):
    # Eigenvalues of the walk on a path are cos(kπ/(n − 1)).
    assert facts(Grid(shape=(1, n)))["spectral_gap"] == pytest.approx(1 - np.cos(np.pi / (n - 1)))


@settings(deadline=None)
@given(connected_graphs(), st.integers(0, 2**32))
def test_facts_against_plain_ones(graph, seed):
    random = np.random.default_rng(seed)
    for _, _, edge in graph.edges(data=True):
        edge["weight"] = random.uniform(0.1, 3)
    found = links(graph)
    W = matrix(found)
    D = W.sum(axis=1)
    told = spectral_facts(found)
    assert told["lambda2"] == pytest.approx(np.linalg.eigvalsh(np.diag(D) - W)[1])
    walk = np.sort(np.linalg.eigvals(W / D[:, None]).real)
    assert told["spectral_gap"] == pytest.approx(1 - walk[-2])
    assert told["diameter"] == nx.diameter(graph)
    degrees = [degree for _, degree in graph.degree]
    assert told["degree_mean"] == pytest.approx(np.mean(degrees))
    assert told["degree_std"] == pytest.approx(np.std(degrees))
    assert (told["degree_min"], told["degree_max"]) == (min(degrees), max(degrees))
    assert told["weight_mean"] == pytest.approx(W[W > 0].mean())
    assert (told["weight_min"], told["weight_max"]) == (W[W > 0].min(), W.max())
    assert told["weighted_degree_min"] == pytest.approx(D.min())
    assert told["weighted_degree_max"] == pytest.approx(D.max())


@pytest.mark.parametrize(
    "topology",
    [
        Ring(),
        Grid(shape=(10, 101)),
        RandomRegular(degree=6),
        SmallWorld(neighbours=6, rewire=0.2),
        ScaleFree(attach=3),
        ErdosRenyi(probability=0.015),
        Star(),
    ],
    ids=lambda topology: topology.kind,
)
def test_large_graphs_agree_with_the_full_matrix(topology):
    found = draw_links(topology, TopologyInputs(MANY), seed=4)
    W = weight_matrix(found).toarray()
    D = W.sum(axis=1)
    told = spectral_facts(found)
    normal = np.eye(MANY) - W / np.sqrt(D) / np.sqrt(D)[:, None]
    with threadpool_limits(limits=1):  # several would take longer where tests run beside each other
        whole, walk = (np.linalg.eigvalsh(full)[1] for full in (np.diag(D) - W, normal))
    assert told["lambda2"] == pytest.approx(whole, rel=1e-5)
    assert told["spectral_gap"] == pytest.approx(walk, rel=1e-5)


def test_every_way_is_taken(monkeypatch):
    # Narrow graphs go by a banded factor; with that forbidden, hubs by conjugate gradients, others by Lanczos.
    monkeypatch.setattr(spectrum, "BAND", 0)
    for topology in (ScaleFree(attach=3), RandomRegular(degree=6)):
        found = draw_links(topology, TopologyInputs(MANY), seed=4)
        with threadpool_limits(limits=1):
            whole = dense_lambda2(weight_matrix(found).toarray())
        assert spectral_facts(found)["lambda2"] == pytest.approx(whole, rel=1e-5)


def test_what_does_not_converge_is_left_out(monkeypatch):
    monkeypatch.setattr(spectrum, "BAND", 0)
    told = facts(Ring(), 3000)
    assert "lambda2" not in told
    assert "spectral_gap" not in told
    assert told["degree_mean"] == 2


def test_what_is_too_large_is_left_out():
    told = facts(Ring(), 200_001)
    assert not {"lambda2", "spectral_gap", "diameter"} & set(told)
    assert told["degree_max"] == 2


def test_parts_that_no_link_joins():
    told = spectral_facts(links(nx.Graph([(0, 1), (2, 3)]), allow_disconnected=True))
    assert told["lambda2"] == told["spectral_gap"] == 0
    assert "diameter" not in told


def test_facts_are_the_same_at_every_call():
    found = draw_links(RandomRegular(degree=6), TopologyInputs(MANY), seed=4)
    assert spectral_facts(found) == spectral_facts(found)
