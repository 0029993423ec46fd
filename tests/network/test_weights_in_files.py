"""Weights of graph files are what the file says: none is made up, none is rounded unsaid, and faults have a line."""

import re

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from network_cases import connected_graphs

from p2psim.core.errors import MeaningError
from p2psim.network.graph import TopologyInputs
from p2psim.network.topologies import FromFile, draw_links

quick = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(path, **keys):
    return draw_links(FromFile(path=str(path), **keys), TopologyInputs())


def plain_edges(graph, path):
    lines = [f"{a} {b} {table.get('weight', '')}" for a, b, table in graph.edges(data=True)]
    path.write_text("\n".join(lines) + "\n")


def plain_gml(graph, path):
    """As igraph writes; NetworkX puts whole numbers beyond 32 bits in quotation marks."""
    nodes = "".join(f"node [ id {node} ]\n" for node in graph)
    edges = "".join(
        f"edge [ source {a} target {b} {''.join(f'weight {value}' for value in table.values())} ]\n"
        for a, b, table in graph.edges(data=True)
    )
    path.write_text(f"graph [\n{nodes}{edges}]\n")


def graphml(graph, path, default="", kind="double"):
    nodes = "".join(f'<node id="{node}"/>' for node in graph)
    edges = "".join(
        f'<edge source="{a}" target="{b}">'
        + "".join(f'<data key="d">{value}</data>' for value in table.values())
        + "</edge>"
        for a, b, table in graph.edges(data=True)
    )
    path.write_text(
        f'<graphml><key id="d" for="edge" attr.name="weight" attr.type="{kind}">{default}</key>'
        f'<graph edgedefault="undirected">{nodes}{edges}</graph></graphml>'
    )


def matrix(graph, path):
    table = nx.to_dict_of_dicts(graph)
    rows = [[table[a].get(b, {"weight": 0})["weight"] for b in sorted(graph)] for a in sorted(graph)]
    path.write_text("# weights\n\n" + "\n".join(",".join(map(str, row)) for row in rows) + "\n")


WRITERS = {
    "g.gml": plain_gml,
    "networkx.gml": nx.write_gml,
    "g.graphml": nx.write_graphml,
    "plain.graphml": graphml,
    "g.edgelist": nx.write_edgelist,
    "g.txt": plain_edges,
}


@pytest.mark.parametrize("name", WRITERS)
@quick
@given(graph=connected_graphs(7), data=st.data())
def test_all_links_have_a_weight_or_none(name, tmp_path, graph, data):
    links = list(graph.edges)
    having = data.draw(st.lists(st.sampled_from(links), unique=True))
    for a, b in having:
        graph[a][b]["weight"] = 2.5
    WRITERS[name](graph, tmp_path / name)
    if len(having) in (0, len(links)):
        assert set(read(tmp_path / name).weights) == {2.5 if having else 1.0}
        return
    with pytest.raises(MeaningError) as caught:
        read(tmp_path / name)
    said = re.fullmatch(
        r"network.topology.path: the weight of the link (\d) – (\d) is not given, but (\d+) of (\d+) links have one; "
        "give all links one, or none",
        str(caught.value),
    )
    assert said, caught.value
    assert "weight" not in graph[int(said[1])][int(said[2])]
    assert (int(said[3]), int(said[4])) == (len(having), len(links))
    if name == "plain.graphml":
        graphml(graph, tmp_path / name, "<default>0.5</default>")
        assert set(read(tmp_path / name).weights) == {2.5, 0.5}


@pytest.mark.parametrize(
    "name", [*(name for name in WRITERS if name != "networkx.gml"), "long.graphml", "g.csv"]
)
@quick
@given(value=st.integers(1, 2**54 + 9) | st.integers(2**53 - 2, 2**66))
def test_no_whole_number_is_rounded(name, tmp_path, value):
    graph = nx.Graph([(0, 1, {"weight": value}), (1, 2, {"weight": 1})])
    writers = {**WRITERS, "long.graphml": lambda *given: graphml(*given, kind="long"), "g.csv": matrix}
    writers[name](graph, tmp_path / name)
    if float(value) == value:
        assert read(tmp_path / name).weights_of(0).tolist() == [value]
    else:
        with pytest.raises(MeaningError, match=f"{value}, which no floating-point number equals"):
            read(tmp_path / name)


@pytest.mark.parametrize(
    ("default", "kind", "message"),
    [
        ("<default></default>", "double", "the <default> of weight must be a number .double., got nothing"),
        ("<default/>", "long", "the <default> of weight must be a whole number .long., got nothing"),
        (
            "<default>x</default>",
            "boolean",
            "the <default> of weight must be true or false .boolean., got 'x'",
        ),
        ("<default>1_0</default>", "double", "got '1_0'"),
        ("<default>1.5</default>", "int", "got '1.5'"),
        ("<default>1</default>", "decimal", "weight has the unknown type 'decimal'; known: boolean, int"),
    ],
)
def test_a_default_is_of_its_type(default, kind, message, tmp_path):
    graphml(nx.path_graph(3), tmp_path / "g.graphml", default, kind)
    with pytest.raises(MeaningError, match=message):
        read(tmp_path / "g.graphml")


#: Words of libraries, which say nothing to who wrote a file.
FOREIGN = re.compile(
    r"Failed to convert|float64|usecols|data_keys|<class|keywords|at row|literal|malformed|NoneType|Traceback"
)
BAD_LINES = st.sampled_from(
    ["0", "0,1", "0 1 x", "0 1 2 3", "0 1 nan", "0 1 1_0", "0 1 {'weight'", "0 1 {1: 2}", "0 1 {1, 2}", "0 1 [2]",
     "0 1 {'a': 1} b", "0 1 weight=2", r"0 1 {'a': '\d'", "0 1 {[]: 1}", "0 1 {**{}}", "0 1 {'a': 1" + "0" * 5000 + "}"]
)  # fmt: skip


@quick
@given(
    bad=BAD_LINES,
    before=st.lists(st.sampled_from(["", "# a", "0 1 2", "1 2 {'weight': 2}", " 2 0 2.0 # b"]), max_size=4),
    ends=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_a_line_of_an_edge_list_is_refused_by_its_number(tmp_path, bad, before, ends):
    (tmp_path / "g.txt").write_bytes(ends.join([*before, bad, "5 6"]).encode())
    with pytest.raises(MeaningError) as caught:
        read(tmp_path / "g.txt")
    assert f"g.txt:{len(before) + 1}: " in str(caught.value)
    assert not FOREIGN.search(str(caught.value))
    assert len(str(caught.value)) < 300 + len(str(tmp_path))


@quick
@given(
    bad=st.sampled_from(
        [
            "1,0",
            "1",
            "1,0,1,0",
            "a,0,1",
            "1,,1",
            "1;0;1",
            "1,0x1,1",
            "1,nan,1",
            "1,-1,1",
            "1,inf,1",
            '1,"x",1',
        ]
    ),
    before=st.lists(st.sampled_from(["", "# a", "  "]), max_size=3),
)
def test_a_row_of_a_matrix_is_refused_by_its_line(tmp_path, bad, before):
    (tmp_path / "g.csv").write_text("\n".join([*before, "0,1,1 # first", *before, bad, "1,1,0"]))
    with pytest.raises(MeaningError) as caught:
        read(tmp_path / "g.csv")
    assert f"g.csv:{2 * len(before) + 2}: " in str(caught.value)
    assert not FOREIGN.search(str(caught.value))


def test_a_matrix_in_quotation_marks_is_read(tmp_path):
    (tmp_path / "g.csv").write_text('"0","2"\n"2","0"\n')
    assert read(tmp_path / "g.csv").weights.tolist() == [2.0, 2.0]
    (tmp_path / "g.csv").write_text("# nothing\n")
    with pytest.raises(MeaningError, match="is empty"):
        read(tmp_path / "g.csv")
