"""Stochastic block models: sizes, chances, and what is refused."""

from typing import Any

import numpy as np
import pytest
from topology_cases import assert_same, assert_sound, matrix

from p2psim.core.errors import InputError, MeaningError
from p2psim.network.graph import TopologyInputs
from p2psim.network.topologies import StochasticBlock, TwoCluster, draw_links


def drawn(topology: StochasticBlock, agents: int | None = None, seed: int = 0) -> np.ndarray:
    return matrix(draw_links(topology, TopologyInputs(agents), seed=seed, replica=0))


def test_certain_chances_make_the_graph_of_blocks() -> None:
    """Blocks 0 and 2 are whole, block 1 is empty inside, and only blocks 0 – 1 and 1 – 2 are joined."""
    topology = StochasticBlock(sizes=(3, 2, 4), chances=((1.0, 1.0, 0.0), (1.0, 0.0, 1.0), (0.0, 1.0, 1.0)))
    block = np.repeat([0, 1, 2], [3, 2, 4])
    chances = np.array(topology.chances)
    W = drawn(topology)
    for i in range(9):
        for j in range(9):
            assert W[i, j] == (i != j and chances[block[i], block[j]])


@pytest.mark.parametrize(("agents", "sizes"), [(12, (4, 4, 4)), (13, (5, 4, 4)), (14, (5, 5, 4))])
def test_equal_blocks(agents: int, sizes: tuple[int, ...]) -> None:
    apart = StochasticBlock(blocks=3, within=1.0, between=0.0, allow_disconnected=True)
    written = StochasticBlock(sizes=sizes, within=1.0, between=0.0, allow_disconnected=True)
    assert_same(
        draw_links(apart, TopologyInputs(agents), replica=0),
        draw_links(written, TopologyInputs(agents), replica=0),
    )
    assert sorted(drawn(apart, agents).sum(axis=1)) == sorted(size - 1 for size in sizes for _ in range(size))


def test_pairs_are_linked_as_often_as_is_asked() -> None:
    chances = np.array([[0.7, 0.2, 0.4], [0.2, 0.5, 0.3], [0.4, 0.3, 0.6]])
    sizes = (40, 30, 50)
    topology = StochasticBlock(sizes=sizes, chances=tuple(map(tuple, chances.tolist())))
    block, draws = np.repeat([0, 1, 2], sizes), 20
    total = sum(
        assert_sound(draw_links(topology, TopologyInputs(), seed=seed, replica=0)) for seed in range(draws)
    )
    for a in range(3):
        for b in range(a, 3):
            pairs = sizes[a] * (sizes[a] - 1) // 2 if a == b else sizes[a] * sizes[b]
            inside = np.triu(np.ones_like(total), 1) * (block[:, None] == a) * (block[None, :] == b)
            expected, count = chances[a, b] * pairs * draws, float((total * inside).sum())
            deviation = np.sqrt(pairs * draws * chances[a, b] * (1 - chances[a, b]))
            assert abs(count - expected) < 5 * deviation


def test_two_blocks_have_the_law_of_two_clusters() -> None:
    """The same draws in another order: block, across, block; so the numbers of links agree in law only."""
    sums = {}
    for name, topology in {
        "blocks": StochasticBlock(blocks=2, within=0.5, between=0.1),
        "clusters": TwoCluster(within=0.5, between=0.1),
    }.items():
        sums[name] = np.mean(
            [
                draw_links(topology, TopologyInputs(41), seed=seed, replica=0).indices.size
                for seed in range(60)
            ]
        )
    within, across = 21 * 20 / 2 + 20 * 19 / 2, 21 * 20
    expected = 2 * (within * 0.5 + across * 0.1)
    deviation = 2 * np.sqrt((within * 0.25 + across * 0.09) / 60)
    for value in sums.values():
        assert abs(value - expected) < 5 * deviation


def test_ends_of_links_are_expected() -> None:
    topology = StochasticBlock(sizes=(3, 5), within=0.5, between=0.25)
    assert topology.link_ends(8) == pytest.approx(2 * (0.5 * (3 + 10) + 0.25 * 15))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"within": 0.5, "between": 0.1}, "exactly one of blocks, a number, and sizes"),
        ({"blocks": 2, "sizes": (3, 3), "within": 0.5, "between": 0.1}, "exactly one of blocks"),
        ({"blocks": 2, "within": 0.5}, "within and between, or chances alone"),
        ({"blocks": 2}, "within and between, or chances alone"),
        ({"blocks": 1, "within": 0.5, "between": 0.1, "chances": ((0.5,),)}, "or chances alone"),
        ({"blocks": 2, "chances": ((0.5, 0.1), (0.2, 0.5))}, "symmetric"),
        ({"blocks": 3, "chances": ((0.5, 0.1), (0.1, 0.5))}, "3 rows of 3 numbers"),
        ({"sizes": (2, 2), "chances": ((0.5, 0.1), (0.1,))}, "2 rows of 2 numbers"),
        ({"sizes": (2, 2), "agents": 5, "within": 0.5, "between": 0.1}, "agents is 5, but sizes sum to 4"),
        ({"sizes": (0, 2), "within": 0.5, "between": 0.1}, "sizes.0: must be a whole number of at least 1"),
        ({"blocks": 2, "chances": ((0.5, 1.1), (1.1, 0.5))}, "from 0 to 1, got 1.1"),
        (
            {"blocks": 2, "within": float("nan"), "between": 0.1},
            "within: must be a number from 0 to 1, got .nan",
        ),
    ],
)
def test_what_is_no_model(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        StochasticBlock(**keys)
    assert message in str(error.value)


def test_what_cannot_be_drawn() -> None:
    with pytest.raises(MeaningError, match="sizes: is 7, but the data gives 9 agents"):
        drawn(StochasticBlock(sizes=(3, 4), within=0.5, between=0.1), 9)
    with pytest.raises(MeaningError, match="takes at least 5 agents, got 4"):
        drawn(StochasticBlock(blocks=5, within=0.5, between=0.1), 4)
    with pytest.raises(MeaningError, match="larger chances would help"):
        drawn(StochasticBlock(blocks=2, within=1.0, between=0.0), 6)
