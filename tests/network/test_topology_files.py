import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from network_cases import connected_graphs
from topology_cases import assert_same, assert_sound

from p2psim.core.errors import MeaningError, MissingSourceError
from p2psim.network.graph import TopologyInputs, links
from p2psim.network.topologies import FromFile, draw_links


def write_matrix(graph, path):
    np.savetxt(path, nx.to_numpy_array(graph, nodelist=sorted(graph)), delimiter=",", fmt="%.17g")


WRITERS = {
    "graph.graphml": nx.write_graphml,
    "graph.gml": nx.write_gml,
    "graph.csv": write_matrix,
    "graph.edgelist": nx.write_edgelist,  # with a mapping of attributes
    "graph.txt": nx.write_weighted_edgelist,
}


def read(path, agents=None, **keys):
    return draw_links(FromFile(path=str(path), **keys), TopologyInputs(agents))


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(connected_graphs(12), st.data())
def test_round_trip(name, tmp_path, graph, data):
    for _, _, edge in graph.edges(data=True):
        edge["weight"] = data.draw(st.floats(1e-3, 1e3))
    path = tmp_path / name
    WRITERS[name](graph, path)
    found = read(path, graph.number_of_nodes())
    assert_sound(found)
    assert_same(found, links(graph))


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "graph.txt"])
def test_without_weights_they_are_one(name, tmp_path):
    graph = nx.path_graph(5)
    WRITERS[name](graph, tmp_path / name)
    assert_same(read(tmp_path / name), links(graph))


@pytest.mark.parametrize("form", ["graphml", "gml"])
def test_another_attribute_of_links(form, tmp_path):
    graph = nx.path_graph(3)
    graph[0][1]["trust"], graph[1][2]["trust"] = 0.25, 4
    WRITERS[f"graph.{form}"](graph, tmp_path / "graph")
    found = read(tmp_path / "graph", format=form, weight="trust")
    assert found.weights.tolist() == [0.25, 0.25, 4.0, 4.0]
    with pytest.raises(MeaningError, match=r"no link of .* has the attribute trsut; they have trust"):
        read(tmp_path / "graph", format=form, weight="trsut")


BLANKS = ["0 1 2.5\n1 2 1\n", "# a, b\n0\t1\t2.5\n1 2 1\n", "0 1 {'weight': 2.5, 'since': 3}\n1 2 1\n"]


@pytest.mark.parametrize(
    ("name", "text"),
    [("g.csv", "0,1,2.5\n1, 2, 1\n"), *((name, text) for name in ("g.csv", "g.txt") for text in BLANKS)],
)
def test_links_of_a_table_are_separated_by_what_its_first_line_has(name, text, tmp_path):
    (tmp_path / name).write_text(text)
    found = read(tmp_path / name, format="edge-list")
    assert found.indptr.tolist() == [0, 1, 3, 4]
    assert found.indices.tolist() == [1, 0, 2, 1]
    assert found.weights.tolist() == [2.5, 2.5, 1.0, 1.0]


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "graph.csv"])
def test_names_are_numbered_as_they_occur(name, tmp_path):
    graph = nx.Graph()
    graph.add_weighted_edges_from([("zoe", "adam", 2.0), ("adam", "mia", 3.0)])
    WRITERS[name](graph, tmp_path / name)
    with pytest.raises(MeaningError, match="nodes must be named 0 … 2, got 'zoe'; nodes: order"):
        read(tmp_path / name)
    found = read(tmp_path / name, nodes="order")
    assert found.of(1).tolist() == [0, 2]
    assert found.weights_of(1).tolist() == [2.0, 3.0]


def test_gml_without_labels(tmp_path):
    (tmp_path / "g.gml").write_text(
        "graph [ node [ id 1 ] node [ id 0 ] edge [ source 0 target 1 weight 2.5 ] ]\n"
    )
    assert read(tmp_path / "g.gml").weights.tolist() == [2.5, 2.5]


def test_a_table_program_may_have_written_it(tmp_path):
    (tmp_path / "g.csv").write_bytes(b"\xef\xbb\xbf0,2\r\n2,0\r\n")
    assert read(tmp_path / "g.csv").weights.tolist() == [2.0, 2.0]
    (tmp_path / "g.txt").write_text("# who with whom\n\n0 1 2.0\n1 0 2.0 # the same again\n")
    assert read(tmp_path / "g.txt").weights.tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("g.csv", "0,1\n2,0\n", r"row 0, column 1 \(from 0\) is 1, but row 1, column 0 is 2"),
        ("g.csv", "0,nan\nnan,0\n", r"row 0, column 1 \(from 0\) is nan, which must be a positive number"),
        ("g.csv", "0,inf\ninf,0\n", "is inf, which must be a positive number, or 0 for no link"),
        ("g.csv", "0,-1\n-1,0\n", "is -1, which must be a positive number"),
        ("g.csv", "0,1\n1,3\n", r"row 1, column 1 \(from 0\) is 3, which would link an agent with itself"),
        ("g.csv", "0,1,0\n1,0,0\n0,0,0\n", "agent 2 has no link"),
        ("g.csv", "0,1,0,0\n1,0,0,0\n0,0,0,1\n0,0,1,0\n", "the graph falls into 2 parts"),
        ("g.csv", "0,1,1\n1,0,1\n", "must be a square matrix, got 2 × 3"),
        ("g.csv", "0,1\n1\n", r"g\.csv:2: must have 2 fields, got 1"),
        ("g.csv", "a,b\n0,1\n", r"g\.csv:1: 'a' is not a number; expected the matrix W"),
        ("g.csv", " \n", "is empty"),
        ("g.txt", "# nothing\n", "is empty"),
        ("g.txt", "0 1\n2\n", r"g\.txt:2: must hold two nodes"),
        ("g.txt", "0 1 heavy\n", r"g\.txt:1: the weight must be a number, got 'heavy'"),
        ("g.txt", "0 1\n\n0 1 2 3\n", r"g\.txt:3: the weight must be a number, got '2 3'"),
        ("g.txt", "0 1 {'weight': \n", r"g\.txt:1: attributes must be a mapping"),
        ("g.txt", "0 1 -2\n", "the weight of the link 0 – 1 must be a positive number, got -2"),
        ("g.txt", "0 1 nan\n", r"g\.txt:1: the weight must be a number, got 'nan'"),
        ("g.txt", "0 1 0\n", "must be a positive number, got 0"),
        ("g.txt", "0 1 {'weight': 'x'}\n", "must be a positive number, got 'x'"),
        ("g.txt", "0 1 1\n1 0 2\n", "the link 0 – 1 is given twice, with weights"),
        ("g.txt", "0 1\n1 1\n", "agent 1 is linked with itself"),
        ("g.txt", "0 1\n2 3\n", "falls into 2 parts that no link joins; allow_disconnected: true"),
        ("g.txt", "1 2\n2 3\n", "nodes must be named 0 … 2, got '3'"),
        ("g.txt", "-1 0\n-1 1\n", "nodes must be named 0 … 2, got '-1'"),
        ("g.graphml", "\n<graphml", r"g\.graphml:2:1: cannot be read as GraphML"),
        ("g.graphml", "<html/>", "cannot be read as GraphML"),
        ("g.gml", "graph [ node [", "cannot be read as GML"),
        ("g.gml", "graph [ ]", "has no nodes"),
        ("g.gml", "graph [ directed 1 node [ id 0 label 0 ] node [ id 1 label 1 ] edge [ source 0 target 1 ] ]",
         "the graph is directed; links must go both ways"),
        ("g.gml", "graph [ node [ id 0 label 0 ] node [ id 1 label 1 ] node [ id 2 label 2 ] "
         "edge [ source 0 target 1 ] ]", "agent 2 has no link"),
        ("g.dat", "0 1\n", r"network\.topology\.format: cannot be told from the name g\.dat; say edge-list"),
    ],
)  # fmt: skip
def test_bad_files(name, text, message, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(MeaningError, match=message) as caught:
        read(tmp_path / name)
    assert caught.value.faults[0].key.startswith("network.topology.")


def test_a_file_that_is_not_text(tmp_path):
    for name in WRITERS:
        (tmp_path / name).write_bytes(bytes(range(128, 256)))
        with pytest.raises(MeaningError):
            read(tmp_path / name)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(MissingSourceError, match=r"no such file: .*nowhere\.csv; name another with --set"):
        read(tmp_path / "nowhere.csv")
    with pytest.raises(MeaningError, match="is a folder, not a file"):
        read(tmp_path)


def test_numbers_of_agents_must_agree(tmp_path):
    (tmp_path / "g.txt").write_text("0 1\n1 2\n")
    with pytest.raises(MeaningError, match=r"topology\.path: is 3, but the data gives 4 agents"):
        read(tmp_path / "g.txt", 4)
    with pytest.raises(MeaningError, match=r"topology\.agents: is 4, but"):
        draw_links(FromFile(path=str(tmp_path / "g.txt"), agents=4), TopologyInputs())


def test_parts_where_they_are_allowed(tmp_path):
    (tmp_path / "g.txt").write_text("0 1\n2 3\n")
    assert_sound(read(tmp_path / "g.txt", allow_disconnected=True), connected=False)
    (tmp_path / "g.csv").write_text("0,1,0,0\n1,0,0,0\n0,0,0,1\n0,0,1,0\n")
    assert_sound(read(tmp_path / "g.csv", allow_disconnected=True), connected=False)


class TestAttributes:
    """Numbers of links beside their weights: a channel takes delays and losses from them."""

    @pytest.mark.parametrize("name", ["graph.graphml", "graph.gml", "graph.edgelist"])
    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(connected_graphs(12), st.data())
    def test_come_with_their_links(self, name, tmp_path, graph, data):
        for _, _, edge in graph.edges(data=True):
            edge["delay"] = data.draw(st.floats(0, 1e3))
            edge["name"] = "x"
        WRITERS[name](graph, tmp_path / name)
        found = read(tmp_path / name)
        assert set(found.attributes) == {"delay"}
        for agent in graph:
            near = found.of(agent).tolist()
            delays = found.attributes["delay"][found.indptr[agent] : found.indptr[agent + 1]]
            assert delays.tolist() == [graph[agent][other]["delay"] for other in near]

    def test_of_a_star_are_ordered_by_owner(self):
        graph = nx.Graph()
        for owner in (2, 0, 1):
            graph.add_edge(-1, owner, delay=float(owner), p=0.5)
        found = links(graph)
        assert found.attributes["delay"].tolist() == [0.0, 1.0, 2.0]

    def test_those_that_some_link_lacks_or_contradicts_are_left_out(self):
        graph = nx.MultiGraph([(0, 1, {"a": 1.0, "b": 1.0, "c": 2}), (1, 0, {"a": 1.0, "b": 3.0, "c": 2})])
        graph.add_edge(1, 2, a=0.5, b=1.0)
        assert {name: column.tolist() for name, column in links(graph).attributes.items()} == {
            "a": [1.0, 1.0, 0.5, 0.5]
        }

    @pytest.mark.parametrize("value", [np.nan, np.inf, "1", True, None])
    def test_what_is_no_number_is_left_out(self, value):
        graph = nx.Graph([(0, 1, {"a": 1.0, "b": value})])
        assert set(links(graph).attributes) == {"a"}

    def test_a_channel_refuses_what_is_no_probability(self):
        from network_cases import Channel, Gossip, Network

        from p2psim.network.channels.draws import EdgeValue

        where = links(nx.Graph([(0, 1, {"p": 1.5, "delay": -1.0})]))
        for keys, message in (
            ({"loss": EdgeValue(edge="p")}, "'p' must be between 0 and 1 on every link, got 1.5"),
            ({"latency": EdgeValue(edge="delay")}, "'delay' must be 0 or more on every link, got -1"),
            ({"loss": EdgeValue(edge="q")}, "attributes that all have: delay, p"),
        ):
            with pytest.raises(MeaningError, match=message):
                Network(where, Gossip(), Channel(**keys))
