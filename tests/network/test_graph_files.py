"""What a graph file says is what is read, to the last digit, whoever wrote it."""

from html import escape
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import quoteattr

import networkx as nx
import numpy as np
import pytest
import rustworkx as rx
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from network_cases import connected_graphs

from p2psim.core.errors import MeaningError
from p2psim.network.channels.draws import EdgeValue
from p2psim.network.graph import TopologyInputs
from p2psim.network.graph_formats import parse_gml, read_gml, read_graphml
from p2psim.network.spectrum import spectral_facts
from p2psim.network.topologies import FromFile, draw_links

FAULTS = Path(__file__).parents[1] / "faults"

#: Numbers of any size, as programs write them: with and without a dot, with and without an exponent.
numbers = (
    st.floats(1e-300, 1e300) | st.integers(1, 10**12).map(float) | st.sampled_from([1e-05, 1e20, 2.5e-05])
)


def read(path, labels=None, **keys):
    return draw_links(FromFile(path=str(path), **keys), TopologyInputs(labels=labels))


def plain_gml(graph, path, write=repr):
    """As igraph writes: a key and a value a line, exponents without a dot."""
    lines = ['Creator "a test"', "Version 1", "graph", "[", "  directed 0"]
    for node in graph:
        lines += ["  node", "  [", f"    id {node}", "  ]"]
    for a, b, table in graph.edges(data=True):
        lines += ["  edge", "  [", f"    source {a}", f"    target {b}"]
        lines += [f"    {name} {write(value)}" for name, value in table.items()] + ["  ]"]
    path.write_text("\n".join([*lines, "]"]) + "\n")


def short(value):
    """Shortest digits, and no dot where there is no fraction."""
    return repr(value).removesuffix(".0")


def loud(value):
    return repr(value).upper().replace("E+", "E")


def plain_graphml(graph, path, for_="edge"):
    """The most frequent value of each attribute is its default, and said nowhere else."""
    names = sorted({name for *_, table in graph.edges(data=True) for name in table})
    columns = {name: [table[name] for *_, table in graph.edges(data=True)] for name in names}
    usual = {name: max(set(column), key=column.count) for name, column in columns.items()}
    text = '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for name in names:
        text += f'<key id="d_{name}" for="{for_}" attr.name="{name}" attr.type="double">'
        text += f"<default>{usual[name]!r}</default></key>\n"
    text += '<graph edgedefault="undirected">\n' + "".join(f'<node id="{node}"/>' for node in graph)
    for a, b, table in graph.edges(data=True):
        given_ = [
            f'<data key="d_{name}">{value!r}</data>' for name, value in table.items() if value != usual[name]
        ]
        text += f'<edge source="{a}" target="{b}">{"".join(given_)}</edge>\n'
    path.write_text(text + "</graph></graphml>\n")


def by_rustworkx(graph, path):
    """It writes single precision."""
    made = rx.PyGraph()
    made.add_nodes_from([None] * graph.number_of_nodes())
    made.add_edges_from([(a, b, dict(table)) for a, b, table in graph.edges(data=True)])
    rx.write_graphml(made, str(path))


def matrix(graph, path):
    np.savetxt(path, nx.to_numpy_array(graph, nodelist=sorted(graph)), delimiter=",", fmt="%.17g")


def both_ways(graph, path):
    twice = nx.MultiGraph(graph)
    twice.add_edges_from([(b, a, dict(table)) for a, b, table in graph.edges(data=True)])
    plain_gml(twice, path, short)


#: By name of the file; those after the bar write a weight and no other attribute.
WRITERS = {
    "networkx.gml": nx.write_gml,
    "igraph.gml": lambda graph, path: plain_gml(graph, path, short),
    "loud.gml": lambda graph, path: plain_gml(graph, path, loud),
    "both.gml": both_ways,
    "networkx.graphml": nx.write_graphml,
    "xml.graphml": nx.write_graphml_xml,
    "default.graphml": plain_graphml,
    "all.graphml": lambda graph, path: plain_graphml(graph, path, "all"),
    "rustworkx.graphml": by_rustworkx,
    "mapping.edgelist": nx.write_edgelist,
    "weights.txt": nx.write_weighted_edgelist,
    "matrix.csv": matrix,
}
EIGHTHS = st.integers(1, 8).map(lambda number: number / 8)
WEIGHTS_ONLY = ("weights.txt", "matrix.csv")


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(connected_graphs(8), st.data())
def test_every_number_of_every_link_comes_back(name, tmp_path, graph, data):
    for _, _, table in graph.edges(data=True):
        table["weight"] = data.draw(EIGHTHS if name.startswith("rustworkx") else numbers)
        if name not in WEIGHTS_ONLY:
            table["p"] = data.draw(EIGHTHS if name.startswith("rustworkx") else st.floats(0, 1))
    WRITERS[name](graph, tmp_path / name)
    found = read(tmp_path / name)
    for agent in graph:
        near = found.of(agent).tolist()
        assert near == sorted(graph[agent])
        assert found.weights_of(agent).tolist() == [graph[agent][other]["weight"] for other in near]
        if name not in WEIGHTS_ONLY:
            values = EdgeValue(edge="p").of_link(found, "network.channel.loss", 1.0)
            assert [values(agent, other) for other in near] == [graph[agent][other]["p"] for other in near]


names = st.lists(
    st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=8),
    min_size=2, max_size=6, unique=True,
)  # fmt: skip


def named_gml(labels, path, key="label"):
    nodes = "".join(f'node [ id {i} {key} "{escape(label)}" ]\n' for i, label in enumerate(labels))
    edges = "".join(f"edge [ source {i} target {i + 1} ]\n" for i in range(len(labels) - 1))
    path.write_text(f"graph [\n{nodes}{edges}]\n", encoding="utf-8")


def named_graphml(labels, path, key=""):
    """Names are ids, or an attribute beside ids that count."""
    text = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    text += f'<key id="v" for="node" attr.name="{key}" attr.type="string"/>' if key else ""
    text += '<graph edgedefault="undirected">'
    ids = [f"n{i}" for i in range(len(labels))] if key else labels
    for one, label in zip(ids, labels, strict=True):
        data = f'<data key="v">{escape(label)}</data>' if key else ""
        text += f"<node id={quoteattr(one)}>{data}</node>"
    for a, b in pairwise(ids):
        text += f"<edge source={quoteattr(a)} target={quoteattr(b)}/>"
    path.write_text(text + "</graph></graphml>", encoding="utf-8")


NAMED = {
    "label.gml": named_gml,
    "name.gml": lambda labels, path: named_gml(labels, path, "name"),
    "id.graphml": named_graphml,
    "name.graphml": lambda labels, path: named_graphml(labels, path, "name"),
    "label.graphml": lambda labels, path: named_graphml(labels, path, "label"),
    "networkx.gml": lambda labels, path: nx.write_gml(nx.path_graph(labels), path),
    "networkx.graphml": lambda labels, path: nx.write_graphml(nx.path_graph(labels), path),
    "networkx.edgelist": lambda labels, path: nx.write_edgelist(nx.path_graph(labels), path),
}


@pytest.mark.parametrize("name", NAMED)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(labels=names, data=st.data())
@example(labels=["clinic_02", "clinic_01", "clinic_03"], data=None)
@example(labels=["007", "7", "07"], data=None)
def test_nodes_are_the_owners_of_their_names(name, tmp_path, labels, data):
    assume(not all(map(str.isdecimal, labels)) or data is None)  # those are indices as well
    if name == "networkx.edgelist":
        labels = [label for label in labels if "#" not in label]
        if len(labels) < 2:
            return
    NAMED[name](labels, tmp_path / name)
    owners = sorted(labels) if data is None else data.draw(st.permutations(labels))
    found = read(tmp_path / name, owners)
    expected = nx.path_graph(labels)
    for agent, label in enumerate(owners):
        assert {owners[other] for other in found.of(agent)} == set(expected[label])
    # By position, nodes and owners of the same names must have them in the same order.
    if list(owners) == labels:
        assert read(tmp_path / name, owners, nodes="order").of(0).tolist() == [1]
    else:
        with pytest.raises(MeaningError, match="order pairs nodes and owners that have different names"):
            read(tmp_path / name, owners, nodes="order")
    strangers = [*owners[1:], "nobody at all"]
    with pytest.raises(
        MeaningError, match=r"have different names: only the graph has .* only the data has nobody"
    ):
        read(tmp_path / name, strangers)
    assert read(tmp_path / name, strangers, nodes="order").of(0).tolist() == [1]


class TestNumberedNodes:
    """Nodes that are called 0 … n − 1 have no other names: they are agents by index."""

    def test_named_owners_are_taken_by_index(self, tmp_path):
        nx.write_edgelist(nx.path_graph(3), tmp_path / "g.txt", data=False)
        for nodes in ("names", "numbers", "order"):
            assert read(tmp_path / "g.txt", ("c", "b", "a"), nodes=nodes).of(0).tolist() == [1]

    def test_an_index_that_is_the_label_of_another_owner_is_refused(self, tmp_path):
        nx.write_edgelist(nx.path_graph(3), tmp_path / "g.txt", data=False)
        with pytest.raises(MeaningError, match="'1' is the label of agent 0"):
            read(tmp_path / "g.txt", ("1", "2", "3"))
        assert read(tmp_path / "g.txt", ("1", "2", "3"), nodes="numbers").of(0).tolist() == [1]

    def test_labels_that_are_a_permutation_of_the_indices_are_labels(self, tmp_path):
        (tmp_path / "g.txt").write_text("0 1\n1 2\n")
        assert read(tmp_path / "g.txt", ("2", "0", "1")).of(0).tolist() == [
            2
        ]  # owner 2 and its neighbour, owner 1
        with pytest.raises(MeaningError, match="numbers pairs nodes and owners that have different names"):
            read(tmp_path / "g.txt", ("2", "0", "1"), nodes="numbers")


class TestKnownAnswers:
    def test_igraph(self):
        a, b = 1e-05, 2.5e-05
        expected = a + b - np.sqrt(a * a + b * b - a * b)
        assert spectral_facts(read(FAULTS / "igraph.gml"))["lambda2"] == pytest.approx(expected, rel=1e-9)

    def test_default(self):
        found = read(FAULTS / "default.graphml")
        assert found.weights.tolist() == [0.5, 0.5, 2.5, 2.5]
        a, b = 0.5, 2.5
        assert spectral_facts(found)["lambda2"] == pytest.approx(a + b - np.sqrt(a * a + b * b - a * b))

    def test_both_directions(self):
        assert read(FAULTS / "both.gml").weights.tolist() == [1.0, 1.0, 2.0, 2.0]

    def test_node_attributes_have_defaults_and_exponents(self, tmp_path):
        (tmp_path / "g.graphml").write_text(
            '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="a" for="node" attr.name="name" '
            'attr.type="string"/><key id="u" for="node" attr.name="u" attr.type="boolean"><default>0</default></key>'
            '<graph><node id="n0"><data key="a">x</data></node><node id="n1"><data key="a">y</data></node>'
            '<edge source="n0" target="n1"/></graph></graphml>'
        )
        assert read_graphml(tmp_path / "g.graphml").names[0] == ["x", "y"]
        assert parse_gml("a 1e-05 b -1E+20 c .5 d 5. e 007 f +INF", Path())[:5] == [
            ("a", 1e-05), ("b", -1e20), ("c", 0.5), ("d", 5.0), ("e", 7),
        ]  # fmt: skip


@settings(max_examples=50)
@given(st.floats(1e-300, 1e300), st.integers(-3, 3))
def test_directions_that_differ_by_rounding_are_one(tmp_path_factory, value, steps):
    """Both directions are often computed apart; further apart, every digit is shown."""
    other = value
    for _ in range(abs(steps)):
        other = np.nextafter(other, np.inf if steps > 0 else 0)
    path = tmp_path_factory.mktemp("g") / "g.csv"
    path.write_text(f"0,{value!r}\n{float(other)!r},0\n")
    assert read(path).weights.tolist() == [value, value]
    path.write_text(f"0,{value!r}\n{value * (1 + 1e-14)!r},0\n")
    with pytest.raises(MeaningError) as caught:
        read(path)
    assert repr(value).removesuffix(".0") in str(caught.value)
    assert repr(value * (1 + 1e-14)).removesuffix(".0") in str(caught.value)


def test_a_matrix_that_is_symmetric_but_for_rounding():
    assert read(FAULTS / "round.csv").weights_of(0).tolist() == [0.30000000000000004, 1.0]


PAIR = "graph [\n node [ id 0 ] node [ id 1 ]\n edge [ source 0 target 1 {} ] ]"

BAD = [
    ("g.gml", "graph [\n" + "a [\n" * 5000 + "]" * 5001, r"g\.gml:51:3: .* nested more than 50 deep"),
    ("g.gml", PAIR.format("weight 1e-05x"), r":3:34: .*'1e-05x"),
    ("g.gml", "graph [ node [ id 0 ] node [ id 0 ] ]", "two nodes have the id 0"),
    ("g.gml", 'graph [ node [ id 0 label "a" ] node [ id 1 label "a" ] ]', "two nodes have the same label"),
    ("g.gml", "graph [ node [ id 0 ] node [ id 1 ] edge [ source 0 target 2 ] ]", "ends at 2, which is the id of no"),
    ("g.gml", "graph [ node [ ] ]", "a node has no id"),
    ("g.gml", "graph [ ] graph [ ]", "there must be one graph, got 2"),
    ("g.gml", PAIR.format("weight 1 weight 2"), r"got \(1, 2\)"),
    ("g.gml", PAIR.format("weight 1" + "0" * 10_000), "is too large for a number"),
    ("g.gml", PAIR.format("weight 1" + "0" * 400), r"got 10+\.\.\."),
    ("g.gml", "graph [ ] ]", r"g\.gml:1:11: .*unexpected \]"),
    ("g.gml", "graph [ id id ]", "expected the value of id, got 'id'"),
    ("g.txt", "0 1 {'weight': " + "[" * 5000 + "]" * 5000 + "}", r"g\.txt:1: attributes must be a mapping"),
    ("g.graphml", '<graphml><key id="w" for="edge" attr.name="weight" attr.type="double"/><graph><node id="0"/>'
     '<node id="1"/><edge source="0" target="1"><data key="w">1,5</data></edge></graph></graphml>',
     r"weight of the link 0 – 1 must be a number \(double\), got '1,5'"),
    ("g.graphml", '<graphml><graph><node id="0"/><node id="1"/><edge source="0" target="1" directed="true"/></graph>'
     "</graphml>", "the graph is directed"),
    ("g.graphml", "<graphml><graph><node/></graph></graphml>", "a node has no id"),
    ("g.graphml", '<graphml><graph><node id="0"/><node id="1"/><edge source="0" target="1"><data key="k">1</data>'
     "</edge></graph></graphml>", "the key k of the link 0 – 1 is not declared"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "message"), BAD)
def test_what_is_no_graph_is_refused_in_one_message(name, text, message, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(MeaningError, match=message) as caught:
        read(tmp_path / name)
    assert len(caught.value.faults) == 1
    assert caught.value.faults[0].key == "network.topology.path"


@pytest.mark.parametrize("name", ["g.gml", "g.txt", "g.csv"])
def test_what_is_not_utf8_is_refused_with_its_line(name, tmp_path):
    (tmp_path / name).write_bytes(b"0 1\n# caf\xe9\n")
    with pytest.raises(MeaningError, match=rf"{name}:2: byte 0xe9 is not UTF-8") as caught:
        read(tmp_path / name)
    assert "codec" not in str(caught.value)


def test_gml_in_words_of_others(tmp_path):
    """Comments, text over lines, entities, a mark in front, and an attribute called as infinity is."""
    (tmp_path / "g.gml").write_text(
        '﻿# a comment\ngraph [ comment "over\ntwo lines [" node [ id 5 label "R&amp;D" ] node [ id 7 label "x" ]\n'
        'edge [ source 5 target 7 key "k" inf 3 weight 2e0 ] edge [ source 7 target 5 key "k" inf 3 weight 2 ] ]',
        encoding="utf-8",
    )
    assert read_gml(tmp_path / "g.gml").names[0] == ["R&D", "x"]
    assert read(tmp_path / "g.gml", ("x", "R&D")).attributes["inf"].tolist() == [3.0, 3.0]
