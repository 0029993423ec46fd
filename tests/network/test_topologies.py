import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from registered import registered
from topology_cases import assert_same, assert_sound, matrix

from p2psim.core.errors import InputError, MeaningError
from p2psim.core.events import LEARNER
from p2psim.network.changes import graph_at
from p2psim.network.graph import TopologyInputs, links
from p2psim.network.topologies import (
    AnyTopology,
    Complete,
    ErdosRenyi,
    Grid,
    RandomRegular,
    Ring,
    ScaleFree,
    SmallWorld,
    Star,
    TwoCluster,
    draw_links,
    is_redrawn,
)

ALL = registered("topology")
RANDOM = [topology for topology in ALL if topology.is_random]
FIXED = [topology for topology in ALL if not topology.is_random]


def given_to(topology, agents=40):
    """What a topology may need of the data, for the number of agents that it says, else this one."""
    agents = topology.size_and_names()[0] or agents
    if topology.kind in ("hypercube", "one-peer-exponential"):
        agents = 1 << (agents.bit_length() - 1)
    likeness = np.random.default_rng(agents).normal(size=(agents, 3))
    return TopologyInputs(agents, likeness, likeness)


def kind(topology):
    return topology.kind


@given(st.integers(1, 50))
def test_a_star_with_a_learner(owners):
    found = draw_links(Star(), TopologyInputs(owners), learner=True)
    assert found.star
    assert found.agents == owners
    assert [found.of(i).tolist() for i in range(owners)] == [[LEARNER]] * owners
    assert found.weights.tolist() == [1.0] * owners


@given(st.integers(2, 50))
def test_a_star_without_a_learner(agents):
    W = assert_sound(draw_links(Star(), TopologyInputs(agents)))
    assert W[0].tolist() == [0.0] + [1.0] * (agents - 1)
    assert not W[1:, 1:].any()


@given(st.integers(2, 40))
def test_complete(agents):
    W = assert_sound(draw_links(Complete(), TopologyInputs(agents)))
    assert np.array_equal(W, 1 - np.eye(agents))


@given(st.integers(3, 60))
def test_ring(agents):
    W = assert_sound(draw_links(Ring(), TopologyInputs(agents)))
    assert all(W[i, (i + 1) % agents] and W[i, (i - 1) % agents] for i in range(agents))
    assert W.sum() == 2 * agents


@given(st.integers(1, 9), st.integers(2, 9), st.booleans())
def test_grid(rows, columns, turned):
    shape = (columns, rows) if turned else (rows, columns)
    W = assert_sound(draw_links(Grid(shape=shape), TopologyInputs()))
    for i in range(shape[0] * shape[1]):
        for j in range(shape[0] * shape[1]):
            (r, c), (s, d) = divmod(i, shape[1]), divmod(j, shape[1])
            assert W[i, j] == (abs(r - s) + abs(c - d) == 1)


@settings(deadline=None)
@given(st.data(), st.integers(2, 40), st.integers(0, 2**32))
def test_random_regular(data, agents, seed):
    degree = data.draw(st.integers(1, agents - 1).filter(lambda d: agents * d % 2 == 0))
    joined = degree >= 3 or agents == degree + 1
    W = assert_sound(
        draw_links(
            RandomRegular(degree=degree, allow_disconnected=not joined), TopologyInputs(agents), seed=seed
        ),
        joined,
    )
    assert (W.sum(axis=1) == degree).all()


@settings(deadline=None)
@given(st.integers(3, 40), st.integers(1, 8), st.floats(0, 1), st.integers(0, 2**32))
def test_small_world(agents, half, rewire, seed):
    half = min(half, (agents - 1) // 2)
    topology = SmallWorld(neighbours=2 * half, rewire=rewire, allow_disconnected=half < 3)
    W = assert_sound(draw_links(topology, TopologyInputs(agents), seed=seed), half >= 3)
    assert W.sum() == 2 * agents * half
    assert (W.sum(axis=1) >= half).all(), "every link keeps its first end"


def test_small_world_without_rewiring_is_a_ring_of_near_ones():
    W = matrix(draw_links(SmallWorld(neighbours=4, rewire=0), TopologyInputs(12)))
    assert W[0].nonzero()[0].tolist() == [1, 2, 10, 11]
    assert (W.sum(axis=1) == 4).all()


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(1, 60), st.integers(0, 2**32))
def test_scale_free(attach, more, seed):
    agents = attach + more
    W = assert_sound(draw_links(ScaleFree(attach=attach), TopologyInputs(agents), seed=seed))
    assert W.sum() == 2 * (attach + attach * (agents - attach - 1))
    for newcomer in range(attach + 1, agents):
        assert W[newcomer, :newcomer].sum() == attach


@settings(deadline=None, max_examples=10)
@pytest.mark.parametrize("topology", ALL, ids=kind)
@given(agents=st.integers(12, 60).map(lambda n: n - n % 2), seed=st.integers(0, 2**32))
def test_all_graphs_are_sound(topology, agents, seed):
    given = given_to(topology, agents)
    links = draw_links(topology, given, seed=seed, replica=3)
    assert_sound(links)
    assert links.agents == given.agents


@pytest.mark.parametrize("topology", ALL, ids=kind)
def test_all_topologies_refuse_another_number_of_agents(topology):
    given = given_to(topology)
    with pytest.raises(MeaningError, match=r"network\.topology"):
        topology.links(given.agents + 1, np.random.default_rng(0), given)


@pytest.mark.parametrize("topology", RANDOM, ids=kind)
def test_a_graph_follows_from_its_address(topology):
    def draw(part=topology, **address):
        return draw_links(part, given_to(topology), **address)

    assert is_redrawn(topology)
    assert_same(draw(seed=1, replica=2), draw(seed=1, replica=2))
    others = [draw(seed=2, replica=2), draw(seed=1, replica=3), draw(seed=1, replica=2, variant="x")]
    for other in others:
        # Of a graph that changes, by the links after some time.
        one, other = graph_at(draw(seed=1, replica=2), 4.0), graph_at(other, 4.0)
        assert other.indices.tobytes() != one.indices.tobytes()
    if "seed" in type(topology).model_fields:
        fixed = topology.model_copy(update={"seed": 7})
        assert not is_redrawn(fixed)
        assert_same(draw(fixed, seed=1, replica=2), draw(fixed, seed=5, replica=6, variant="x"))


@pytest.mark.parametrize("topology", FIXED, ids=kind)
def test_what_is_not_random_is_the_same_in_every_replica(topology):
    assert not is_redrawn(topology)
    given = given_to(topology)
    assert_same(draw_links(topology, given, seed=1, replica=1), draw_links(topology, given, seed=2))


@pytest.mark.parametrize("topology", [one for one in ALL if one.kind != "star"], ids=kind)
def test_a_learner_needs_a_star(topology):
    with pytest.raises(MeaningError, match=r"network\.topology: a central learner needs a star, got"):
        draw_links(topology, given_to(topology), learner=True)


@pytest.mark.parametrize(
    ("topology", "agents", "message"),
    [
        (Ring(agents=5), 6, r"topology\.agents: is 5, but the data gives 6 agents"),
        (Star(agents=5), 6, r"topology\.agents: is 5, but the data gives 6 agents"),
        (Grid(shape=(2, 3)), 7, r"topology\.shape: is 6, but the data gives 7 agents"),
        (Ring(), None, r"topology\.agents: say how many agents there are, here or in the data"),
        (Ring(), 2, "takes at least 3 agents, got 2"),
        (Complete(), 1, "takes at least 2 agents, got 1"),
        (Complete(), 20_000, "at most 10,000 agents, got 20,000"),
        (Grid(shape=(1, 1)), None, r"topology\.shape: this graph takes at least 2 agents, got 1"),
        (ScaleFree(attach=3), 3, "takes at least 4 agents, got 3"),
        (RandomRegular(degree=3), 5, r"topology\.degree: 5 agents of degree 3 have an odd number of half-links"),
        (RandomRegular(degree=6), 6, r"topology\.degree: must be less than the number of agents, 6; got 6"),
        (SmallWorld(neighbours=3, rewire=0.1), 9, r"neighbours: must be even and less than .* 9; got 3"),
        (SmallWorld(neighbours=4, rewire=0.1), 4, r"neighbours: must be even and less than .* 4; got 4"),
        (RandomRegular(degree=1), 6, "none of 100 graphs drawn was connected; a degree of 3 or more would help"),
        (ErdosRenyi(probability=0.001), 50, r"none of 100 graphs drawn was connected; a probability well above"),
        (ErdosRenyi(probability=0.001, allow_disconnected=True), 50, "graphs drawn left nobody alone"),
        (TwoCluster(within=1, between=0), 8, "none of 100 graphs drawn was connected; larger chances"),
        (TwoCluster(within=0, between=0), 8, "none of 100 graphs drawn was connected"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn(topology, agents, message):
    with pytest.raises(MeaningError, match=message):
        draw_links(topology, TopologyInputs(agents))


def test_the_caller_and_the_data_must_agree():
    with pytest.raises(MeaningError, match="4 agents are asked for, but the data gives 5"):
        Ring().links(4, np.random.default_rng(0), TopologyInputs(5))


def test_two_clusters_apart_where_that_is_allowed():
    W = assert_sound(
        draw_links(TwoCluster(within=1, between=0, allow_disconnected=True), TopologyInputs(9)),
        connected=False,
    )
    assert np.array_equal(W[:5, :5], 1 - np.eye(5))
    assert np.array_equal(W[5:, 5:], 1 - np.eye(4))
    assert not W[:5, 5:].any()


@pytest.mark.parametrize(
    "tree",
    [
        {"kind": "grid", "shape": [6]},
        {"kind": "grid", "shape": [6, 0]},
        {"kind": "grid", "shape": [2, 3, 4]},
        {"kind": "grid", "shape": [2, 3], "agents": 6},
        {"kind": "erdos-renyi", "probability": 0.0},
        {"kind": "erdos-renyi", "probability": 1.1},
        {"kind": "two-cluster", "within": 0.5, "between": -0.1},
        {"kind": "random-regular"},
        {"kind": "ring", "seed": 3},
        {"kind": "knn", "neighbours": 0},
        {"kind": "knn", "neighbours": 3, "metric": "angular"},
        {"kind": "similarity", "gamma": 0.0},
        {"kind": "similarity", "keep_connected": -1.0},
        {"kind": "file", "path": ""},
    ],
    ids=str,
)
def test_what_a_scenario_cannot_say(tree):
    with pytest.raises(ValidationError):
        TypeAdapter(AnyTopology).validate_python(tree)


@settings(deadline=None)
@given(st.data(), st.integers(2, 12))
def test_a_graph_becomes_its_arrays(data, agents):
    graph = nx.path_graph(agents)
    ends = st.tuples(st.integers(0, agents - 1), st.integers(0, agents - 1)).filter(lambda e: e[0] != e[1])
    graph.add_edges_from(data.draw(st.lists(ends)))
    if data.draw(st.booleans()):
        for a, b in graph.edges:
            graph[a][b]["weight"] = data.draw(st.floats(1e-6, 1e6))
    W = assert_sound(links(graph))
    expected = nx.to_numpy_array(graph, nodelist=range(agents), weight="weight")
    assert np.array_equal(W, expected)


def test_a_star_as_a_graph_keeps_its_weights():
    graph = nx.Graph()
    graph.add_weighted_edges_from([(1, -1, 3.0), (-1, 0, 2.0), (2, -1, 0.5)])
    found = links(graph)
    assert found.star
    assert found.indices.tolist() == [LEARNER] * 3
    assert found.weights.tolist() == [2.0, 3.0, 0.5]


def with_weight(value):
    graph = nx.path_graph(3)
    graph[0][1]["weight"] = value
    return graph


def doubled(weight):
    graph = nx.MultiGraph()
    graph.add_weighted_edges_from([(0, 1, 1), (1, 2, 1), (1, 0, weight)])
    return graph


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (nx.DiGraph([(0, 1), (1, 0)]), "the graph is directed; links must go both ways"),
        (nx.Graph([(0, 1), (1, 1)]), "agent 1 is linked with itself"),
        (nx.Graph([(-1, 0), (-1, -1)]), "the learner is linked with itself"),
        (
            nx.Graph([(-1, 0), (-1, 1), (0, 1)]),
            r"agent 0 must be linked with it and nobody else; got \[-1, 1\]",
        ),
        (nx.empty_graph(2), "agent 0 .and 1 others. has no link"),
        (nx.Graph([(0, 1), (2, 3)]), "the graph falls into 2 parts that no link joins"),
        (nx.Graph([(1, 2)]), "nodes must be 0 … 1"),
        (nx.Graph([("a", "b")]), "nodes must be 0 … 1"),
        (nx.Graph(), "nodes must be 0"),
        (with_weight(-1.0), "the weight of the link 0 – 1 must be a positive number, got -1.0"),
        (with_weight(0), "must be a positive number, got 0"),
        (with_weight(float("nan")), "must be a positive number, got nan"),
        (with_weight(float("inf")), "must be a positive number, got inf"),
        (with_weight("heavy"), "must be a positive number, got 'heavy'"),
        (with_weight(True), "must be a positive number, got True"),
        (with_weight(None), "must be a positive number, got None"),
        (doubled(2.0), "the link 0 – 1 is given twice, with weights 1 and 2"),
    ],
)
def test_bad_graphs(graph, message):
    with pytest.raises(InputError, match=message):
        links(graph)


def test_a_link_given_twice_alike_is_one():
    W = assert_sound(links(doubled(1)))
    assert W.sum() == 4


def test_parts_where_they_are_allowed():
    W = assert_sound(links(nx.Graph([(0, 1), (2, 3)]), allow_disconnected=True), connected=False)
    assert W.sum() == 4
