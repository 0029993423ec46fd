"""Agents are called by name wherever they are named: nodes of a graph, owners of a table, budgets, spans."""

import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from p2psim import assemble
from p2psim.core.errors import InputError
from p2psim.learning.losses import Squared
from p2psim.learning.star.algorithms import AsyncStar
from p2psim.runs.checking import check_scenario
from p2psim.scenario.model import Scenario
from p2psim.simulation.algorithms import adapter_of
from p2psim.simulation.workspace import Workspace

CLINICS = [f"clinic_{i:02}" for i in range(1, 6)]
HUB = "clinic_04"


def hub_first(path, nodes=(HUB, *(name for name in CLINICS if name != HUB))):
    """A star of links whose hub comes first, with weights that tell the others apart."""
    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_weighted_edges_from((HUB, name, 1 + CLINICS.index(name)) for name in CLINICS if name != HUB)
    nx.write_gml(graph, path)


def records(path, owners=CLINICS):
    """Six records of each owner, which it can be known by."""
    lines = ["x,y,clinic"] + [f"{i}.{j},{-i}.{j},{name}" for j in range(6) for i, name in enumerate(owners)]
    path.write_text("\n".join(lines) + "\n")


def tree(folder, generated=False, **topology):
    data = (
        {"source": {"kind": "linear-regression", "dimension": 2, "points": 6}}
        if generated
        else {
            "source": {"kind": "csv", "path": str(folder / "records.csv"), "y": "y"},
            "partition": {"kind": "column", "column": "clinic"},
        }
    )
    return {
        "name": "names",
        "network": {
            "topology": {"kind": "file", "path": str(folder / "links.gml"), **topology},
            "exchange": "gossip",
        },
        "data": data,
        "learning": {
            "algorithm": {"kind": "coordinate-descent", "mu": 1.0, "updates_per_agent": 2},
            "loss": "squared",
            "regularizer": {"l2": 0.1},
        },
        "privacy": {
            "mechanism": "laplace",
            "epsilon": 1.0,
            "sensitivity": {"kind": "clip", "bound": 1.0},
            "allocation": {"kind": "cap", "releases": 3},
        },
    }


def cell_of(scenario, folder):
    case = Workspace(folder / "workspace").case(scenario, 0)
    return case, adapter_of(scenario).cell(scenario, case, 0)


def made(folder, change=lambda tree: None, **keys):
    asked = tree(folder, **keys)
    change(asked)
    return cell_of(Scenario.from_dict(asked), folder)


def test_nodes_and_owners_are_joined_by_name(tmp_path):
    hub_first(tmp_path / "links.gml")
    records(tmp_path / "records.csv")
    case, cell = made(tmp_path)
    assert list(case.labels) == CLINICS
    hub = CLINICS.index(HUB)
    assert np.diff(cell.links.indptr).tolist() == [4 if i == hub else 1 for i in range(5)]
    assert cell.links.weights_of(hub).tolist() == [1 + i for i in cell.links.of(hub)]


def test_by_position_the_same_names_must_stand_in_the_same_order(tmp_path):
    hub_first(tmp_path / "links.gml")
    records(tmp_path / "records.csv")
    with pytest.raises(
        InputError, match=r"network\.topology\.nodes: order pairs nodes and owners .* leave nodes out"
    ):
        made(tmp_path, nodes="order")
    hub_first(tmp_path / "links.gml", CLINICS)
    _, cell = made(tmp_path, nodes="order")
    assert np.diff(cell.links.indptr).argmax() == CLINICS.index(HUB)
    # Other names say nothing: by position they are paired as they stand.
    records(tmp_path / "records.csv", [f"owner_{i}" for i in range(5)])
    _, cell = made(tmp_path, nodes="order")
    assert np.diff(cell.links.indptr).argmax() == CLINICS.index(HUB)


def test_names_that_do_not_agree_are_refused_both_named(tmp_path):
    hub_first(tmp_path / "links.gml")
    records(tmp_path / "records.csv", [*CLINICS[:4], "clinic_5"])
    with pytest.raises(InputError, match=r"only the graph has clinic_05, only the data has clinic_5;"):
        made(tmp_path)


@pytest.mark.parametrize("nodes", ["names", "order"])
@pytest.mark.parametrize("owners", [CLINICS[:3], [*CLINICS, "clinic_9"], [*CLINICS[1:], "x", "y", "z"]])
def test_numbers_that_do_not_agree_are_told_by_the_names_of_one_side_alone(tmp_path, owners, nodes):
    hub_first(tmp_path / "links.gml")
    records(tmp_path / "records.csv", owners)
    with pytest.raises(InputError) as caught:
        made(tmp_path, nodes=nodes)
    (fault,) = caught.value.faults
    assert fault.key == "network.topology.path"
    assert f"has 5 nodes, but the data has {len(owners)} owners: " in fault.message
    for whose, names in (("graph", set(CLINICS) - set(owners)), ("data", set(owners) - set(CLINICS))):
        said = f"only the {whose} has {', '.join(sorted(names))}"
        assert (said in fault.message) == bool(names)


@pytest.mark.parametrize(
    ("topology", "key"),
    [
        ({"kind": "complete", "agents": 4}, "network.topology.agents"),
        ({"kind": "grid", "shape": [2, 2]}, "network.topology"),
    ],
)
def test_a_topology_of_another_number_of_agents_than_the_records_have_owners(tmp_path, topology, key):
    records(tmp_path / "records.csv")
    with pytest.raises(InputError) as caught:
        made(tmp_path, lambda tree: tree["network"].update(topology=topology))
    (fault,) = caught.value.faults
    assert fault.key == key
    assert fault.message == f"asks for 4 agents, but the data has 5 owners: {', '.join(CLINICS)}"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"privacy.epsilon": {**dict.fromkeys(CLINICS, 1.0), "east": 1.0}},
            f"no agent or group is called 'east'; there are {', '.join(CLINICS)}",
        ),
        ({"privacy.epsilon": dict.fromkeys(CLINICS[1:], 1.0)}, f"agent {CLINICS[0]} has no value"),
        (
            {"privacy.epsilon": {**dict.fromkeys(CLINICS, 1.0), "0": 1.0}},
            f"agent {CLINICS[0]} is named twice, as '{CLINICS[0]}' and as '0'",
        ),
        (
            {"learning.algorithm.batch": {"kind": "fixed", "size": 7}},
            f"6 records for agent {CLINICS[0]}, got 7",
        ),
        (
            {"privacy.epsilon": dict.fromkeys(CLINICS, 5e-324)},
            f"the noise of release 0 of agent {CLINICS[0]} overflows",
        ),
    ],
)
def test_messages_call_agents_by_their_labels(tmp_path, change, said):
    hub_first(tmp_path / "links.gml")
    records(tmp_path / "records.csv")
    asked = tree(tmp_path)
    for key, value in change.items():
        *sections, last = key.split(".")
        inner = asked
        for section in sections:
            inner = inner[section]
        inner[last] = value
    with pytest.raises(InputError) as caught:
        check_scenario(Scenario.from_dict(asked), "names")
    assert said in str(caught.value)
    assert not re.search(r"agent \d|\b0, 1, 2\b", str(caught.value))


def test_one_of_several_reasons_for_absence_names_agents_at_its_key(tmp_path):
    asked = tree(tmp_path, generated=True)
    asked["network"]["topology"] = {"kind": "ring", "agents": 3}
    drop = {"kind": "bernoulli", "drop": {"0": 0.1, "1": 0.1, "2": 0.1, "east": 0.5}}
    parts = [{"kind": "renewal", "up": 1.0, "down": 1.0}, drop]
    asked["network"]["availability"] = {"kind": "all-of", "parts": parts}
    with pytest.raises(InputError) as caught:
        check_scenario(Scenario.from_dict(asked), "names")
    (fault,) = caught.value.faults
    assert fault.key == "network.availability.parts.1.drop"
    assert fault.message == "no agent or group is called 'east'; there are 0, 1, 2"


class TestGeneratedData:
    """Its owners have no names, so that they take those of the nodes that number them."""

    def test_budgets_and_records_by_name(self, tmp_path):
        hub_first(tmp_path / "links.gml")

        def change(tree):
            tree["privacy"]["epsilon"] = {name: 1.0 + i for i, name in enumerate(CLINICS)}
            tree["data"]["source"]["points"] = {name: 3 + i for i, name in enumerate(CLINICS)}

        case, cell = made(tmp_path, change, generated=True, nodes="order")
        order = [HUB, *(name for name in CLINICS if name != HUB)]
        assert list(case.labels) == order
        assert cell.setup.plan.budget.tolist() == [1.0 + CLINICS.index(name) for name in order]
        assert cell.problem.records.tolist() == [3 + CLINICS.index(name) for name in order]
        assert cell.agents["label"].tolist() == order

    def test_names_change_no_draw(self, tmp_path):
        hub_first(tmp_path / "links.gml")
        _, named = made(tmp_path, generated=True, nodes="order")
        nx.write_gml(
            nx.relabel_nodes(nx.read_gml(tmp_path / "links.gml"), lambda name: f"x{name}"),
            tmp_path / "links.gml",
        )
        _, other = made(tmp_path, generated=True, nodes="order")
        assert np.array_equal(named.problem.X, other.problem.X)

    def test_the_file_says_how_many_there_are(self, tmp_path):
        (tmp_path / "links.gml").write_text(
            "graph [ node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 ] ]"
        )
        case, _ = made(tmp_path, generated=True)
        assert case.labels == ("0", "1")


def star_of(names, **rates):
    graph = nx.Graph()
    for name in names:
        graph.add_node(name, **({"rate": rates[name]} if name in rates else {}))
        graph.add_edge(-1, name)
    return graph


def assembled(graph, records):
    return assemble(graph, records, AsyncStar(horizon=10, rho=0.1, theta_max=2.0), Squared(), 0.1)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.permutations(["b", "a", "d", "c"]), st.permutations(["b", "a", "d", "c"]))
def test_assemble_takes_named_nodes(tmp_path, nodes, order):
    def pair(name):
        return np.full((3, 1), 0.1 * ord(name)), np.arange(3.0)

    scenario = assembled(star_of(nodes, b=2.0), {name: pair(name) for name in order})
    case, cell = cell_of(scenario, tmp_path)
    assert list(case.labels) == nodes
    assert cell.problem.X[::3, 0].tolist() == [0.1 * ord(name) for name in nodes]
    assert cell.setup.network.rates.tolist() == [2.0 if name == "b" else 1.0 for name in nodes]
    in_order = assembled(star_of(nodes, b=2.0), [pair(name) for name in nodes])
    assert in_order.resolved() == scenario.resolved()


def test_assemble_refuses_records_of_others():
    pair = np.ones((3, 1)), np.arange(3.0)
    with pytest.raises(InputError, match="only the graph has b, only the mapping of records has c"):
        assembled(star_of("ab"), {"a": pair, "c": pair})
    with pytest.raises(InputError, match="two nodes of the graph are called 1"):
        assembled(star_of([1, "1"]), [pair, pair])
    with pytest.raises(InputError, match="must be a star"):
        assembled(nx.path_graph(["a", "b"]), [pair, pair])
    with pytest.raises(InputError, match="2 owners, but there are records of 1"):
        assembled(star_of("ab"), [pair])


@pytest.mark.parametrize("records", [None, 7, [1, 2], [(1, 2, 3), (1, 2)], {"a": None, "b": ()}])
def test_assemble_refuses_what_are_no_records(records):
    with pytest.raises(InputError, match="records of"):
        assembled(star_of("ab"), records)
    with pytest.raises(InputError, match=r"must be a networkx\.Graph"):
        assembled(records, [])


def test_assemble_takes_numbers_by_number():
    pairs = [(np.full((3, 1), float(i)), np.arange(3.0)) for i in range(3)]
    one, other = assembled(star_of([2, 0, 1]), pairs), assembled(star_of([0, 1, 2]), pairs)
    assert one.resolved() == other.resolved()


class TestFaultsOfTheNumberOfAgents:
    """A file of links knows how many agents there are, so that what depends on it is reported with the rest."""

    def test_all_at_once(self, tmp_path):
        hub_first(tmp_path / "links.gml")
        asked = tree(tmp_path, generated=True, nodes="order")
        asked["data"]["source"]["agents"] = 7
        asked["privacy"]["epsilon"] = dict.fromkeys([*CLINICS[1:], "clinic_1"], 1.0)
        asked["network"]["clock"] = {"rate": dict.fromkeys(CLINICS[1:], 1.0)}
        asked["network"]["availability"] = {
            "kind": "scripted",
            "intervals": [{"agent": name, "begin": 0, "end": 1} for name in (HUB, "0")],
        }
        asked["record"] = {"metrics": ["no_such_metric"]}
        with pytest.raises(InputError) as caught:
            Scenario.from_dict(asked)
        assert {fault.key: fault.message for fault in caught.value.faults}.keys() == {
            "data.source.agents",
            "privacy.epsilon",
            "network.clock.rate",
            "network.availability.intervals",
            "record.metrics.0",
        }
        assert "gives 7 owners, but network.topology asks for 5" in str(caught.value)

    @pytest.mark.parametrize("owners", [CLINICS, [*CLINICS[:4], "clinic_5"]])
    def test_names_are_compared_although_other_parts_are_wrong(self, tmp_path, owners):
        hub_first(tmp_path / "links.gml")
        records(tmp_path / "records.csv", owners)
        asked = tree(tmp_path) | {"record": {"metrics": ["no_such_metric"]}}
        with pytest.raises(InputError) as caught:
            Scenario.from_dict(asked)
        assert "record.metrics.0" in str(caught.value)
        assert ("only the data has clinic_5" in str(caught.value)) == (owners != CLINICS)
        assert "must be named 0" not in str(caught.value)

    def test_a_file_that_is_no_graph_is_reported_with_the_rest(self, tmp_path):
        (tmp_path / "links.gml").write_text("graph [ node [")
        asked = tree(tmp_path, generated=True) | {"record": {"metrics": ["no_such_metric"]}}
        with pytest.raises(InputError) as caught:
            Scenario.from_dict(asked)
        assert {fault.key for fault in caught.value.faults} == {"network.topology.path", "record.metrics.0"}

    @pytest.mark.parametrize(
        ("data", "key"),
        [
            ({"partition": {"kind": "equal", "agents": 3}}, "data.partition.agents"),
            ({"partition": {"kind": "contiguous", "sizes": [3, 3]}}, "data.partition.sizes"),
            ({"groups": {"cut": [5], "names": ["s", "l"], "merge": True}}, "data.groups.merge"),
        ],
    )
    def test_every_place_that_gives_a_number(self, tmp_path, data, key):
        hub_first(tmp_path / "links.gml")
        records(tmp_path / "records.csv")
        asked = tree(tmp_path)
        asked["data"] |= data
        with pytest.raises(InputError, match=r"owners, but network\.topology asks for 5") as caught:
            Scenario.from_dict(asked)
        assert [fault.key for fault in caught.value.faults] == [key]
