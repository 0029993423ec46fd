"""Who learns what about whom: exact rational arithmetic, known values, and what must hold for any graph."""

from collections.abc import Sequence
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2psim.network.graph import links, star_links
from p2psim.network.spectrum import metropolis
from p2psim.privacy.network_privacy import (
    View,
    by_distance,
    equitable_cells,
    hop_distances,
    shares,
    view,
    view_of_many,
)

Matrix = list[list[Fraction]]


def exact_weights(graph: nx.Graph) -> Matrix:
    """Metropolis weights as fractions, written down from their definition."""
    n = len(graph)
    weights = [[Fraction(0)] * n for _ in range(n)]
    for a, b in graph.edges:
        weights[a][b] = weights[b][a] = Fraction(1, 1 + max(graph.degree[a], graph.degree[b]))
    for a in range(n):
        weights[a][a] = 1 - sum(weights[a])
    return weights


def times(a: Matrix, b: Matrix) -> Matrix:
    columns = list(zip(*b, strict=True))
    return [
        [sum((x * y for x, y in zip(row, column, strict=True) if x), Fraction(0)) for column in columns]
        for row in a
    ]


def exact_shares(matrices: Sequence[Matrix], group: Sequence[int]) -> list[Fraction]:
    """[P]_uu for every u: every row that the group sees, by Gram–Schmidt without square roots."""
    n = len(matrices[0])
    rows = [[Fraction(int(i == v)) for i in range(n)] for v in group]
    power: Matrix = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    for matrix in matrices:
        heard = {w for v in group for w in range(n) if matrix[v][w] != 0}
        rows += [power[w] for w in sorted(heard)]
        power = times(matrix, power)
    found = [Fraction(0)] * n
    basis: list[tuple[list[Fraction], Fraction]] = []
    for row in rows:
        for direction, square in basis:
            along = sum((x * y for x, y in zip(row, direction, strict=True)), Fraction(0)) / square
            if along:
                row = [x - along * y for x, y in zip(row, direction, strict=True)]
        square = sum((x * x for x in row), Fraction(0))
        if square:
            basis.append((row, square))
            found = [f + x * x / square for f, x in zip(found, row, strict=True)]
    return found


PRIME = 2**31 - 1


def exact_rank(graph: nx.Graph, observer: int, steps: int) -> int:
    """Dimension of what is seen, by elimination modulo a prime; it could only be too small, and almost never is."""
    n = len(graph)
    weights = np.array(
        [[x.numerator * pow(x.denominator, -1, PRIME) % PRIME for x in row] for row in exact_weights(graph)]
    )
    block = list(np.eye(n, dtype=np.int64)[[observer, *graph.adj[observer]]])
    basis: list[tuple[int, np.ndarray]] = []
    for _ in range(steps):
        new = []
        for row in block:
            for pivot, other in basis:
                row = (row - row[pivot] * other) % PRIME
            if row.any():
                pivot = int(np.flatnonzero(row)[0])
                row = row * pow(int(row[pivot]), -1, PRIME) % PRIME
                basis.append((pivot, row))
                new.append(row)
        # Products are below 2⁶², so each is reduced before they are added.
        block = [(weights * row % PRIME).sum(axis=1) % PRIME for row in new]
    return len(basis)


def floats(matrix: Matrix) -> np.ndarray:
    return np.array([[float(x) for x in row] for row in matrix])


def plain(graph: nx.Graph) -> nx.Graph:
    return nx.convert_node_labels_to_integers(graph, ordering="sorted")


def seen(graph: nx.Graph, observer: int, steps: int) -> np.ndarray:
    return view(metropolis(links(graph)), [observer], steps).share


GRID = plain(nx.grid_2d_graph(3, 3))
THIRDS = [1, 1, 41 / 57, 1, 32 / 57, 0, 41 / 57, 0, 0]


@pytest.mark.parametrize("n", [4, 5, 9, 30])
@pytest.mark.parametrize("steps", [2, 3, 10])
def test_a_leaf_of_a_star_learns_one_part_in_n_minus_2_of_each_other_leaf(n: int, steps: int) -> None:
    share = seen(nx.star_graph(n - 1), 1, steps)
    np.testing.assert_allclose(share[2:], 1 / (n - 2), atol=1e-14)
    np.testing.assert_allclose(share[:2], 1, atol=1e-14)


def test_the_learner_of_a_star_is_its_last_node() -> None:
    weights = metropolis(star_links(5))
    np.testing.assert_allclose(view(weights, [0], 2).share, [1, 0.25, 0.25, 0.25, 0.25, 1], atol=1e-14)


@pytest.mark.parametrize("steps", [2, 3, 7])
def test_known_values(steps: int) -> None:
    petersen = nx.petersen_graph()
    apart = nx.single_source_shortest_path_length(petersen, 3)
    expected = [1 if apart[u] < 2 else 0.5 for u in range(10)]
    np.testing.assert_allclose(seen(petersen, 3, steps), expected, atol=1e-14)
    np.testing.assert_allclose(
        seen(nx.complete_bipartite_graph(3, 3), 0, steps), [1, 0.5, 0.5, 1, 1, 1], atol=1e-14
    )


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4, 5, 40])
def test_from_the_end_of_a_path_everybody_within_t_hops_is_seen(steps: int) -> None:
    expected = [float(u <= steps) for u in range(5)]
    np.testing.assert_allclose(seen(nx.path_graph(5), 0, steps), expected, atol=1e-13)


def test_a_grid_from_its_corner() -> None:
    np.testing.assert_allclose(seen(GRID, 0, 2), THIRDS, atol=1e-14)


@pytest.mark.parametrize("steps", [3, 6])
def test_the_barbell_from_its_far_end(steps: int) -> None:
    share = seen(nx.barbell_graph(3, 0), 0, steps)
    np.testing.assert_allclose(share, [1, 1, 1, 1, 0.5, 0.5], atol=1e-13)


@pytest.mark.parametrize(
    ("graph", "observer"),
    [
        (nx.barabasi_albert_graph(24, 1, seed=4), 5),
        (nx.barabasi_albert_graph(20, 2, seed=1), 19),
        (nx.balanced_tree(2, 3), 14),
        (plain(nx.grid_2d_graph(4, 4)), 5),
        (nx.random_regular_graph(3, 16, seed=1), 0),
        (nx.lollipop_graph(6, 6), 11),
        (nx.watts_strogatz_graph(18, 4, 0.2, seed=3), 0),
    ],
)
def test_fractions_agree_however_long_it_gossips(graph: nx.Graph, observer: int) -> None:
    weights = exact_weights(graph)
    for steps in (1, 2, 4, len(graph)):
        exact = exact_shares([weights] * steps, [observer])
        found = view(metropolis(links(graph)), [observer], steps)
        np.testing.assert_allclose(found.share, [float(x) for x in exact], atol=1e-9)
        assert not found.doubtful


@pytest.mark.parametrize(
    "graph",
    [
        nx.barabasi_albert_graph(80, 1, seed=1),
        nx.barabasi_albert_graph(120, 1, seed=4),
        nx.circulant_graph(60, [1, 3]),
        plain(nx.hypercube_graph(6)),
    ],
)
def test_rounding_makes_no_directions_where_a_graph_has_symmetries(graph: nx.Graph) -> None:
    n = len(graph)
    # Order matters to rounding alone; in the order of their making, the trees' symmetries survive it by luck.
    order = np.random.default_rng(0).permutation(n).tolist()
    mixed = nx.relabel_nodes(graph, dict(enumerate(order)))
    for observer in (0, n // 2):
        found = view(metropolis(links(mixed)), [observer], n)
        assert found.rank == exact_rank(mixed, observer, n) < n
        assert not found.doubtful


@st.composite
def graphs(draw: st.DrawFn) -> nx.Graph:
    """Connected graphs of 2 to 9 nodes."""
    n = draw(st.integers(2, 9))
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    for node in range(1, n):
        graph.add_edge(node, draw(st.integers(0, node - 1)))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda pair: pair[0] != pair[1])
    graph.add_edges_from(draw(st.lists(pairs, max_size=2 * n)))
    return graph


@settings(max_examples=60)
@given(graphs(), st.integers(1, 8), st.data())
def test_fractions_agree_on_any_graph_and_for_any_colluders(
    graph: nx.Graph, steps: int, data: st.DataObject
) -> None:
    group = data.draw(st.lists(st.integers(0, len(graph) - 1), min_size=1, max_size=3, unique=True))
    exact = exact_shares([exact_weights(graph)] * steps, group)
    found = view(metropolis(links(graph)), group, steps)
    np.testing.assert_allclose(found.share, [float(x) for x in exact], atol=1e-9)
    assert abs(sum(exact) - found.rank) == 0  # the trace of a projector is its rank
    np.testing.assert_allclose(
        view_of_many([metropolis(links(graph))] * steps, group).share, found.share, atol=1e-9
    )


@settings(max_examples=40)
@given(graphs(), st.integers(1, 6), st.data())
def test_what_must_hold(graph: nx.Graph, steps: int, data: st.DataObject) -> None:
    weights = metropolis(links(graph))
    n = len(graph)
    observer, other = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, n - 1))
    alone = view(weights, [observer], steps).share
    assert (alone >= 0).all()
    assert (alone <= 1).all()
    assert alone[observer] == pytest.approx(1, abs=1e-12)
    assert (view(weights, [observer], steps + 1).share >= alone - 1e-9).all()
    assert (view(weights, [observer, other], steps).share >= alone - 1e-9).all()
    order = np.array(data.draw(st.permutations(range(n))))
    renamed = nx.relabel_nodes(graph, dict(enumerate(order.tolist())))
    moved = view(metropolis(links(renamed)), [int(order[observer])], steps).share
    np.testing.assert_allclose(moved[order], alone, atol=1e-9)


@settings(max_examples=40)
@given(st.integers(2, 7), st.data())
def test_fractions_agree_for_pairs_that_meet_at_random(n: int, data: st.DataObject) -> None:
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda ends: ends[0] != ends[1])
    matrices = []
    for a, b in data.draw(st.lists(pair, min_size=1, max_size=12)):
        meeting = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
        for i in (a, b):
            meeting[i][a] = meeting[i][b] = Fraction(1, 2)
        matrices.append(meeting)
    group = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=2, unique=True))
    exact = exact_shares(matrices, group)
    found = view_of_many([floats(matrix) for matrix in matrices], group)
    np.testing.assert_allclose(found.share, [float(x) for x in exact], atol=1e-9)


def test_weights_need_not_be_symmetric() -> None:
    third, half = Fraction(1, 3), Fraction(1, 2)
    turning = [
        [half, half, Fraction(0), Fraction(0)],
        [Fraction(0), third, 2 * third, Fraction(0)],
        [Fraction(0), Fraction(0), third, 2 * third],
        [half, Fraction(1, 6), Fraction(0), third],
    ]
    for steps in (1, 2, 3):
        exact = exact_shares([turning] * steps, [0])
        np.testing.assert_allclose(
            view(floats(turning), [0], steps).share, [float(x) for x in exact], atol=1e-12
        )


def test_gossip_over_many_steps_does_not_lose_directions_to_convergence() -> None:
    # After 60 steps rows of W^t differ by less than 1e-16 here; formed as powers, they would have no rank left.
    rng = np.random.default_rng(1)
    graph = nx.random_regular_graph(4, 12, seed=2)
    matrices = []
    exact = []
    ends = list(graph.edges)
    for _ in range(60):
        a, b = ends[rng.integers(len(ends))]
        meeting = [[Fraction(int(i == j)) for j in range(12)] for i in range(12)]
        for i in (a, b):
            meeting[i][a] = meeting[i][b] = Fraction(1, 2)
        exact.append(meeting)
        matrices.append(floats(meeting))
    found = view_of_many(matrices, [0])
    np.testing.assert_allclose(found.share, [float(x) for x in exact_shares(exact, [0])], atol=1e-8)


def test_everybody_about_everybody_is_every_view() -> None:
    weights = metropolis(links(GRID))
    found = shares(weights, 3, colluders=[4])
    for v in range(9):
        np.testing.assert_array_equal(found.share[v], view(weights, [v, 4], 3).share)
    assert not found.doubtful.any()
    np.testing.assert_allclose(shares([weights] * 3, 3, colluders=[4]).share, found.share, atol=1e-12)


def test_distances() -> None:
    weights = metropolis(links(nx.petersen_graph()))
    rows = by_distance(shares(weights, 2).share, hop_distances(weights))
    assert [(row.hops, row.pairs) for row in rows] == [(1, 30), (2, 60)]
    for row, share in zip(rows, (1, 0.5), strict=True):
        np.testing.assert_allclose([row.mean, row.least, row.most], share, atol=1e-14)


def test_no_messages_tell_nothing() -> None:
    np.testing.assert_array_equal(view(metropolis(links(GRID)), [2, 3], 0).share, np.isin(range(9), [2, 3]))


def test_a_rank_that_rounding_may_have_made_is_doubtful() -> None:
    assert not View(np.ones(1), 1, 1e-3, 1e-15).doubtful
    assert View(np.ones(1), 1, 1e-9, 0.0).doubtful
    assert View(np.ones(1), 1, 1.0, 5e-11).doubtful


@settings(max_examples=40)
@given(graphs(), st.data())
def test_sums_over_cells_are_the_same_for_all_rows_of_a_cell(graph: nx.Graph, data: st.DataObject) -> None:
    weights = metropolis(links(graph))
    apart = np.array(data.draw(st.lists(st.integers(0, len(graph) - 1), max_size=2, unique=True)), np.int64)
    cells = equitable_cells(weights, apart)
    sums = weights.toarray() @ np.eye(cells.max() + 1)[cells]
    for cell in range(cells.max() + 1):
        assert np.ptp(sums[cells == cell], axis=0).max() < 1e-12
    assert all((cells == cells[node]).sum() == 1 for node in apart)


def test_cells_of_known_graphs() -> None:
    ring = metropolis(links(nx.cycle_graph(8)))
    assert np.unique(equitable_cells(ring, np.array([], np.int64))).size == 1
    assert np.unique(equitable_cells(ring, np.array([0]))).size == 5  # by distance from 0
    path = equitable_cells(metropolis(links(nx.path_graph(5))), np.array([], np.int64))
    assert path[0] == path[4] != path[2]
    assert path[1] == path[3]


def test_metropolis_weights_are_those_of_their_definition() -> None:
    for graph in (GRID, nx.star_graph(4), nx.barbell_graph(3, 0)):
        np.testing.assert_allclose(
            metropolis(links(graph)).toarray(), floats(exact_weights(graph)), atol=1e-15
        )


def test_adding_up_single_messages_would_tell_191_times_too_little() -> None:
    # From one end of a path of 5 to the other: why the sum over messages, as if their noise were fresh, is not offered.
    weights = exact_weights(nx.path_graph(5))
    power: Matrix = [[Fraction(int(i == j)) for j in range(5)] for i in range(5)]
    added = Fraction(0)
    for _ in range(4):
        added += power[1][4] ** 2 / sum((x * x for x in power[1]), Fraction(0))
        power = times(weights, power)
    assert added == Fraction(1, 191)
    assert exact_shares([weights] * 4, [0])[4] == 1
