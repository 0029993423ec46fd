"""The effective number of neighbours, against known values, sums of powers and a simulated walk."""

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2psim.core.errors import InputError
from p2psim.network.graph import TopologyInputs, links, star_links
from p2psim.network.mixing import mixing_matrix
from p2psim.network.topologies import Complete, Hypercube, Ring, Topology, draw_links
from p2psim.theory.neighbours import effective_neighbours, neighbour_facts, one_peer_exponential

pytestmark = pytest.mark.blas


def metropolis(topology: Topology) -> np.ndarray:
    found: np.ndarray = mixing_matrix(draw_links(topology, TopologyInputs()), "metropolis").toarray()
    return found


def by_powers(rounds: list[np.ndarray], gamma: float, terms: int) -> float:
    """The definition, summed term by term: mean over the rounds at which the sum of products can end."""
    n, totals = len(rounds[0]), []
    for last in range(len(rounds)):
        product, total = np.eye(n), 0.0
        for t in range(terms):
            total += gamma**t * float((product**2).sum()) / n
            product = product @ rounds[(last - t) % len(rounds)]
        totals.append(total)
    return float((1 / (1 - gamma)) / np.mean(totals))


@pytest.mark.parametrize(
    ("topology", "at_90", "at_99"),
    [
        (Ring(agents=32), 4.2426, 14.711),
        (Hypercube(agents=32), 6.857, 23.261),
        (Complete(agents=32), 7.805, 24.428),
    ],
)
def test_known_values_of_32_agents(topology: Topology, at_90: float, at_99: float) -> None:
    W = metropolis(topology)
    assert effective_neighbours(W, 0.9) == pytest.approx(at_90, abs=6e-5 if at_90 < 5 else 6e-4)
    assert effective_neighbours(W, 0.99) == pytest.approx(at_99, abs=6e-4)
    facts = neighbour_facts(draw_links(topology, TopologyInputs()))
    assert facts == {
        "effective_neighbours_90": pytest.approx(at_90, abs=6e-4),
        "effective_neighbours_99": pytest.approx(at_99, abs=6e-4),
    }


@given(st.integers(1, 40), st.floats(0, 0.999))
def test_the_mean_of_all_and_nobody(n: int, gamma: float) -> None:
    """W = 11ᵀ/n: 1 + (n − 1)·γ agents' variance are left of 1/(1 − γ); W = I: everyone is alone."""
    alone = effective_neighbours(np.eye(n), gamma)
    assert alone == pytest.approx(1, rel=1e-9)
    everyone = effective_neighbours(np.full((n, n), 1 / n), gamma)
    assert everyone == pytest.approx(n / (1 + (n - 1) * (1 - gamma)), rel=1e-9)


def a_mixing_matrix(n: int, seed: int) -> np.ndarray:
    """Doubly stochastic and not symmetric: a mean of permutations."""
    random = np.random.default_rng(seed)
    weights = random.dirichlet(np.ones(4))
    return np.asarray(sum(w * np.eye(n)[random.permutation(n)] for w in weights))


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 12), st.integers(0, 10**6), st.floats(0, 0.95), st.integers(1, 3))
def test_any_matrices_against_the_sum_of_powers(n: int, seed: int, gamma: float, count: int) -> None:
    rounds = [a_mixing_matrix(n, seed + k) for k in range(count)]
    expected = by_powers(rounds, gamma, 800)
    assert effective_neighbours(rounds, gamma) == pytest.approx(expected, rel=1e-9)
    if count == 1:
        assert effective_neighbours(rounds[0], gamma) == pytest.approx(expected, rel=1e-9)


@given(st.integers(2, 12), st.integers(0, 10**6), st.floats(0, 0.99))
def test_eigenvalues_and_norms_agree(n: int, seed: int, gamma: float) -> None:
    """A symmetric matrix by its eigenvalues, and as two equal rounds, which are not looked at for symmetry."""
    matrix = a_mixing_matrix(n, seed)
    W = (matrix + matrix.T) / 2
    assert effective_neighbours(W, gamma) == pytest.approx(effective_neighbours([W, W], gamma), rel=1e-8)


def test_an_array_of_rounds_and_a_sparse_matrix() -> None:
    rounds = one_peer_exponential(8)
    assert effective_neighbours(np.array(rounds), 0.9) == effective_neighbours(rounds, 0.9)
    graph = links(nx.petersen_graph())
    sparse = mixing_matrix(graph, "metropolis")
    assert effective_neighbours(sparse, 0.9) == effective_neighbours(sparse.toarray(), 0.9)
    assert effective_neighbours(sparse.toarray().tolist(), 0.9) == effective_neighbours(sparse, 0.9)


def test_one_peer_exponential_rounds() -> None:
    rounds = one_peer_exponential(32)
    assert len(rounds) == 5
    for k, W in enumerate(rounds):
        for i in range(32):
            assert set(np.flatnonzero(W[i])) == {i, (i - 2**k) % 32}
            np.testing.assert_array_equal(W[i][W[i] > 0], 0.5)
        np.testing.assert_array_equal(W.sum(axis=0), 1)
    np.testing.assert_allclose(np.linalg.multi_dot(rounds), np.full((32, 32), 1 / 32))
    # After k rounds each model is the mean of 2ᵏ, whichever round was first: ‖·‖_F²/n = 2⁻ᵏ, and 1/32 from 5 on.
    gamma = 0.9
    variance = sum((gamma / 2) ** k for k in range(5)) + (gamma**5 / (1 - gamma)) / 32
    assert effective_neighbours(rounds, gamma) == pytest.approx((1 / (1 - gamma)) / variance, rel=1e-12)


def test_a_simulated_walk_has_the_variance() -> None:
    """The definition itself, x ← W(√γ·x) + ξ, in 200,000 independent coordinates."""
    random, gamma = np.random.default_rng(8), 0.8
    W = metropolis(Ring(agents=7))
    x = np.zeros((7, 200_000))
    for _ in range(60):
        x = np.sqrt(gamma) * (W @ x) + random.standard_normal(x.shape)
    assert (1 / (1 - gamma)) / float((x**2).mean()) == pytest.approx(effective_neighbours(W, gamma), rel=0.01)


def test_facts_are_left_out_where_they_are_slow_or_mean_nothing() -> None:
    assert neighbour_facts(star_links(5)) == {}
    assert neighbour_facts(draw_links(Ring(agents=1001), TopologyInputs())) == {}


@pytest.mark.parametrize(
    ("mixing", "gamma", "message"),
    [
        (np.eye(3), 1.0, "less than 1, got 1"),
        (np.eye(3), -0.1, "at least 0"),
        (np.eye(3), float("nan"), "got nan"),
        (np.ones((3, 2)) / 2, 0.5, r"square and of one size, got one of shape \(3, 2\)"),
        ([np.eye(3), np.eye(2)], 0.5, r"one of shape \(2, 2\)"),
        (np.array([[0.5, np.nan], [0.5, 0.5]]), 0.5, "finite"),
        (np.array([[0.5, 0.4], [0.5, 0.5]]), 0.5, "row 0 sums to 0.9"),
        (np.array([[3.0, -2.0], [-2.0, 3.0]]), 0.5, "spectral radius is 5"),
        (np.array([[3.0, -2.0], [-1.0, 2.0]]), 0.1, "spectral radius is 4"),
    ],
)
def test_what_is_refused(mixing: Any, gamma: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        effective_neighbours(mixing, gamma)
