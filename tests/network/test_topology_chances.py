"""Random graphs have the chances that their names promise.

Seeds are fixed. Each test of a frequency lets it differ by 4.5 standard deviations of a normal law: were seeds drawn
anew, one check in 150,000 would fail.
"""

import itertools
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from topology_cases import matrix

from p2psim.network.graph import TopologyInputs
from p2psim.network.topologies import ErdosRenyi, RandomRegular, ScaleFree, SmallWorld, TwoCluster, draw_links
from p2psim.network.topologies.base import chosen, pairs_within
from p2psim.network.topologies.random import regular_pairs

DEVIATIONS = 4.5


def assert_binomial(count, trials, probability):
    spread = np.sqrt(trials * probability * (1 - probability))
    assert abs(count - trials * probability) <= DEVIATIONS * spread, (count, trials * probability, spread)


@pytest.mark.parametrize("probability", [0.02, 0.2, 0.7, 1.0])
def test_erdos_renyi_has_the_expected_links(probability):
    # At these sizes a graph has someone alone with chance below .4 %, so that drawing again changes nothing that
    # could be seen.
    n = 600 if probability < 0.1 else 100  # 600 · .98⁵⁹⁹ = .0033
    total = sum(
        draw_links(ErdosRenyi(probability=probability), TopologyInputs(n), seed=3, replica=r).indices.size
        // 2
        for r in range(30)
    )
    assert_binomial(total, 30 * n * (n - 1) // 2, probability)


def test_every_pair_is_equally_likely():
    random, n = np.random.default_rng(5), 7
    seen = Counter()
    for _ in range(4000):
        a, b = pairs_within(n, 0.3, random)
        assert (b < a).all()
        seen.update(zip(a.tolist(), b.tolist(), strict=True))
    for pair in ((a, b) for a in range(n) for b in range(a)):
        assert_binomial(seen[pair], 4000, 0.3)
    assert len(seen) == n * (n - 1) // 2


def test_pairs_are_told_from_their_places_in_large_graphs():
    class Jumps:
        """Jumps to the first and last pair of agents far up, where floating point is coarse."""

        def geometric(self, probability, size):
            n = 3_000_000
            wanted = [a * (a - 1) // 2 + b for a in (1, 2, 94_906_267 % n, n - 1) for b in (0, a - 1)]
            places = sorted({*wanted, n * (n - 1) // 2 - 1})
            jumps = np.diff([-1, *places, n * (n - 1)])
            return np.array([*jumps, *[n * n] * size], dtype=np.int64)[:size]

    a, b = pairs_within(3_000_000, 1e-12, Jumps())
    assert ((b >= 0) & (b < a) & (a < 3_000_000)).all()
    assert (a[-1], b[-1]) == (2_999_999, 2_999_998)
    assert (a[-2], b[-2]) == (2_999_999, 0)
    assert (a[0], b[0]) == (1, 0)


@pytest.mark.parametrize(("count", "probability"), [(0, 0.5), (10, 0.0), (10, 1.0), (1, 1.0)])
def test_choosing_none_or_all(count, probability):
    found = chosen(count, probability, np.random.default_rng(0))
    assert found.tolist() == (list(range(count)) if probability == 1 else [])


def test_two_clusters_have_the_expected_links():
    topology, n, draws = TwoCluster(within=0.4, between=0.05), 61, 60
    within = between = 0
    for replica in range(draws):
        W = matrix(draw_links(topology, TopologyInputs(n), seed=1, replica=replica))
        between += W[:31, 31:].sum()
        within += (W[:31, :31].sum() + W[31:, 31:].sum()) / 2
    assert_binomial(within, draws * (31 * 30 + 30 * 29) // 2, 0.4)
    assert_binomial(between, draws * 31 * 30, 0.05)


def test_small_worlds_rewire_the_expected_links():
    n, draws, moved = 200, 40, 0
    ring = matrix(draw_links(SmallWorld(neighbours=6, rewire=0), TopologyInputs(n)))
    for replica in range(draws):
        W = matrix(
            draw_links(SmallWorld(neighbours=6, rewire=0.25), TopologyInputs(n), seed=1, replica=replica)
        )
        moved += ((W == 0) & (ring == 1)).sum() // 2
    assert_binomial(moved, draws * 3 * n, 0.25)


def test_newcomers_go_by_degree():
    # From the star of three, the fourth draws two of {0, 1, 2} by degrees 2, 1, 1 without repeats: agent 0 is missed
    # with chance 2 · (1/4)(1/3) = 1/6.
    draws = 6000
    missed = sum(
        0 not in draw_links(ScaleFree(attach=2), TopologyInputs(4), seed=2, replica=r).of(3)
        for r in range(draws)
    )
    assert_binomial(missed, draws, 1 / 6)


@pytest.mark.verification
def test_small_regular_graphs_are_uniform():
    # There are 70 cubic graphs on six labelled nodes: K₃,₃ in 10 ways, the prism in 60.
    draws, random, complete_bipartite = 3000, np.random.default_rng(8), 0
    seen = Counter()
    for _ in range(draws):
        a, b = regular_pairs(6, 3, random)
        near = {frozenset(pair) for pair in zip(a.tolist(), b.tolist(), strict=True)}
        assert len(near) == 9
        seen[frozenset(near)] += 1
        triangles = sum(
            all(frozenset(pair) in near for pair in itertools.combinations(three, 2))
            for three in itertools.combinations(range(6), 3)
        )
        complete_bipartite += triangles == 0
    assert len(seen) == 70
    assert_binomial(complete_bipartite, draws, 1 / 7)
    for count in seen.values():
        assert_binomial(count, draws, 1 / 70)


@pytest.mark.verification
def test_small_sparse_regular_graphs_are_uniform():
    # On seven labelled nodes there are 360 heptagons, and 105 pairs of a triangle and a square (35 choices of
    # the triangle, three squares on the other four).
    draws, random, split = 3000, np.random.default_rng(9), 0
    for _ in range(draws):
        W = np.zeros((7, 7))
        a, b = regular_pairs(7, 2, random)
        W[a, b] = W[b, a] = 1
        split += np.trace(W @ W @ W) > 0
    assert_binomial(split, draws, 105 / 465)


def test_sparse_regular_graphs_have_the_triangles_of_uniform_ones():
    # The number of triangles tends to a Poisson law of mean (d − 1)³/6 (Bollobás 1980).
    draws, degree, found = 60, 4, 0
    for replica in range(draws):
        links = draw_links(RandomRegular(degree=degree), TopologyInputs(300), seed=4, replica=replica)
        near = [set(links.of(agent).tolist()) for agent in range(links.agents)]
        found += sum(len(near[a] & near[b]) for a in range(links.agents) for b in near[a]) // 6
    mean = (degree - 1) ** 3 / 6 * draws
    assert abs(found - mean) < DEVIATIONS * np.sqrt(mean) + 0.05 * mean


@pytest.mark.verification
def test_large_regular_graphs_are_small():
    agents = 200_000
    tracemalloc.start()
    links = draw_links(RandomRegular(degree=8), TopologyInputs(agents), seed=1)
    assert tracemalloc.get_traced_memory()[1] < 1e9
    tracemalloc.stop()
    assert (np.diff(links.indptr) == 8).all()
    rows = links.indices.reshape(agents, 8)
    assert (np.diff(rows, axis=1) > 0).all()
    assert (rows != np.arange(agents)[:, None]).all()
    forth = np.repeat(np.arange(agents, dtype=np.int64), 8) * agents + links.indices
    back = links.indices.astype(np.int64) * agents + np.repeat(np.arange(agents), 8)
    assert np.array_equal(forth, np.sort(back))
