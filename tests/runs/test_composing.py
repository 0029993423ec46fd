"""What people compose in Python, by short names of the package."""

import ast
import doctest
import importlib
import subprocess
import sys
import typing
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_study import scenario as small

import p2psim
from p2psim.core.errors import InputError, MeaningError
from p2psim.core.registry import KINDS, parts
from p2psim.privacy.section import Sensitivity

#: Parts that are no classes that a user makes: their names stand in scenarios.
NAMED = ("metric", "accountant", "figure")
UNION = typing.get_args(Sensitivity)[0]


def test_every_part_that_a_scenario_can_hold_has_a_short_name():
    classes = [part for kind in KINDS if kind not in NAMED for part in parts(kind).values()]
    classes += typing.get_args(UNION)
    shipped = [part for part in classes if part.__module__.startswith("p2psim.")]
    assert len(shipped) > 50
    assert [part for part in shipped if getattr(p2psim, part.__name__, None) is not part] == []


def test_names_for_people_and_for_type_checkers_are_the_same():
    stub = ast.parse(Path(p2psim.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    assert sorted(alias.asname for node in imports for alias in node.names) == sorted(p2psim.__all__)
    for node in imports:
        for alias in node.names:
            assert getattr(p2psim, alias.name) is getattr(importlib.import_module(node.module), alias.name)
    assert set(p2psim.__all__) <= set(dir(p2psim))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Squard'"):
        p2psim.Squard  # noqa: B018


def test_importing_the_package_loads_nothing_else():
    code = "import p2psim, sys; print(sorted(name for name in sys.modules if name.startswith('p2psim')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(["p2psim", "p2psim.core"])


@pytest.mark.parametrize(
    "module",
    ["network.section", "network.simulation", "runs.in_memory", "scenario.model", "simulation.assembly"],
)
def test_examples_of_docstrings(module):
    found = doctest.testmod(importlib.import_module(f"p2psim.{module}"))
    assert found.attempted > 0
    assert found.failed == 0


# One replica in memory.


def test_a_simulation_in_memory_is_that_of_a_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = small()
    run = p2psim.run(study, tmp_path / "run", progress=False)
    before = set(tmp_path.rglob("*"))
    for cell, replica in ((0, 0), (1, 2)):
        one = p2psim.simulate(study, replica, cell)
        assert (one.cell, one.replica, one.swept) == (cell, replica, {"privacy.epsilon": [1, 100][cell]})
        for name in ("metrics", "ledger", "agents", "events"):
            whole = getattr(run, name)
            part = whole[(whole["cell"] == cell) & (whole["replica"] == replica)].reset_index(drop=True)
            pd.testing.assert_frame_equal(
                getattr(one, name), part, check_dtype=False, check_categorical=False, check_exact=True
            )
        assert np.array_equal(one.noise, run.noise[cell, replica])
        assert one.models is not None
        assert np.isfinite(one.models).all()
        assert one.ended == "commits"
    assert set(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cell": 2}, "cell: there are 2 cells, 0 to 1; got 2"),
        ({"cell": -1}, "cell: must be"),
        ({"replica": -1}, "replica: must be"),
        ({"replica": 1.5}, "replica: must be"),
    ],
)
def test_cells_and_replicas_that_there_are_not(arguments, message):
    with pytest.raises(InputError, match=message):
        p2psim.simulate(small(), **arguments)


def test_a_simulation_shows_itself():
    one = p2psim.simulate(small())
    assert repr(one).startswith("Simulation('small', cell 0, replica 0: ")
    assert "relative_fitness" in one._repr_html_()


# Scenarios from objects.

RECORDS = {name: (np.eye(2) * size, np.ones(2)) for size, name in enumerate(("c", "a", "d", "b"), 1)}


def on_graph(graph, **sections):
    return p2psim.Scenario(
        name="graph",
        network={"topology": graph, "exchange": p2psim.Gossip()},
        data={"source": p2psim.LinearRegression(dimension=2, points=12)},
        learning=p2psim.LearningSection(
            algorithm=p2psim.CoordinateDescent(mu=0.5, commits=40),
            loss=p2psim.Squared(),
            regularizer=p2psim.Regularizer(l2=0.1),
        ),
        **sections,
    )


def test_keyword_arguments_mean_what_dictionaries_mean():
    made = on_graph(p2psim.Ring(agents=4), record=p2psim.RecordSection(every=2))
    tree = {
        "name": "graph",
        "network": {"topology": {"kind": "ring", "agents": 4}, "exchange": "gossip"},
        "data": {"source": {"kind": "linear-regression", "dimension": 2, "points": 12}},
        "learning": {
            "algorithm": {"kind": "coordinate-descent", "mu": 0.5, "commits": 40},
            "loss": "squared",
            "regularizer": {"l2": 0.1},
        },
        "record": {"every": 2},
    }
    assert made == p2psim.Scenario.from_dict(tree)
    # What was left out is left to the scenario: of agents on a graph other metrics than of a star.
    assert made.record.metrics == ["objective_gap"]
    assert made == p2psim.Scenario.parse(made.to_yaml())
    assert "<pre>" in made._repr_html_()
    assert "ring" in made._repr_html_()


def test_keyword_arguments_are_checked_as_files_are():
    with pytest.raises(InputError) as caught:
        p2psim.Scenario(name="x", network={"topology": p2psim.Ring(agents=4)}, dat={})
    keys = {fault.key for fault in caught.value.faults}
    assert {"dat", "learning", "network.exchange"} <= keys
    made = on_graph(p2psim.Ring(agents=4), sweep={"network.topology": [p2psim.Ring(agents=4), "complete"]})
    assert len(made.sweep["network.topology"]) == 2


# Graphs of NetworkX.


@given(st.permutations(["a", "b", "c", "d"]), st.permutations(["a", "b", "c", "d"]))
@settings(max_examples=20, deadline=None)
def test_nodes_and_owners_are_joined_by_name_in_whatever_order(nodes, owners):
    path = [("a", "b"), ("b", "c"), ("c", "d")]
    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(path)
    topology = p2psim.FromGraph(graph=graph)
    found = topology.read(owners)
    links = {frozenset((owners[i], owners[int(j)])) for i in range(4) for j in found.of(i)}
    assert links == {frozenset(pair) for pair in path}
    alone = topology.read()
    names = topology.size_and_names()[1]
    assert {frozenset((names[i], names[int(j)])) for i in range(4) for j in alone.of(i)} == links


def test_owners_without_names_take_those_of_the_nodes():
    graph = nx.cycle_graph(["north", "east", "south"])
    assert p2psim.simulate(on_graph(graph)).agents["label"].tolist() == ["north", "east", "south"]
    assert p2psim.simulate(on_graph(nx.cycle_graph(3))).agents["label"].tolist() == ["0", "1", "2"]


def test_an_assembled_graph_gives_records_to_their_nodes():
    graph = nx.path_graph(["a", "b", "c", "d"])
    graph.nodes["c"]["rate"] = 3.0
    algorithm = p2psim.CoordinateDescent(mu=1.0, commits=60)
    scenario = p2psim.assemble(graph, RECORDS, algorithm, p2psim.Squared(), 0.1, exchange=p2psim.Broadcast())
    agents = p2psim.simulate(scenario).agents.set_index("label")
    assert agents["degree"].to_dict() == {"a": 1, "b": 2, "c": 2, "d": 1}
    assert scenario.network.clock.rate == {"a": 1.0, "b": 1.0, "c": 3.0, "d": 1.0}
    with pytest.raises(InputError, match="exchange: a graph without a learner needs one"):
        p2psim.assemble(graph, RECORDS, algorithm, p2psim.Squared(), 0.1)


def test_owners_that_the_graph_does_not_have_are_named():
    graph = nx.path_graph(["a", "b", "c", "x"])
    with pytest.raises(InputError, match="only the graph has x, only the mapping of records has d"):
        p2psim.assemble(
            graph,
            RECORDS,
            p2psim.CoordinateDescent(mu=1.0, commits=6),
            p2psim.Squared(),
            0.1,
            exchange=p2psim.Gossip(),
        )


def with_attribute(name, value):
    graph = nx.path_graph(3)
    graph.nodes[0][name] = value
    return graph


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (nx.star_graph([-1, 0, 1]), "has a learner"),
        (nx.path_graph([1, "1", 2]), "two nodes of the graph are called 1"),
        (with_attribute("rate", 2.0), "nodes have rates"),
        ("networkx", "must be a networkx.Graph, from Python"),
        ({"kind": "networkx", "graph": "0f"}, "only its hash is written here"),
    ],
)
def test_graphs_that_are_no_topology(graph, message):
    with pytest.raises(InputError, match=message):
        on_graph(graph)


@pytest.mark.parametrize("graph", [nx.DiGraph([(0, 1), (1, 2)]), nx.Graph([(0, 1), (2, 3)])])
def test_graphs_that_no_network_can_have(graph):
    with pytest.raises(MeaningError) as caught:
        p2psim.simulate(on_graph(graph))
    assert caught.value.faults[0].key == "network.topology"


def test_the_graph_is_copied_and_compared_by_what_it_holds():
    graph = nx.path_graph(3)
    one = p2psim.FromGraph(graph=graph)
    assert one == p2psim.FromGraph(graph=nx.path_graph(3))
    graph.add_edge(0, 2)
    assert one == p2psim.FromGraph(graph=nx.path_graph(3)) != p2psim.FromGraph(graph=graph)


# Networks alone.


def test_a_network_of_named_nodes_runs_as_one_of_numbered_nodes():
    names = ["w", "z", "x", "y"]
    numbered = nx.cycle_graph(4)
    numbered.nodes[2]["rate"] = 2.0
    named = nx.relabel_nodes(numbered, dict(enumerate(names)))
    of = {}
    for key, graph in (("numbered", numbered), ("named", named)):
        network = p2psim.Network.of_graph(graph, p2psim.Gossip(), p2psim.Channel(loss=0.3))
        of[key] = p2psim.simulate_events(network, seed=3, time=20.0).to_frame()
    pd.testing.assert_frame_equal(of["numbered"], of["named"])
    assert list(network.members.labels) == names
    outage = p2psim.Bernoulli(drop={"w": 0.5, "z": 0.0, "x": 0.0, "y": 0.0})
    partly = p2psim.Network.of_graph(named, p2psim.Gossip(), availability=outage)
    events = p2psim.simulate_events(partly, seed=3, time=20.0).to_frame()
    wakes, all_wakes = (
        frame.query("kind == 'wake' and agent == 0 and outcome == 'ok'") for frame in (events, of["named"])
    )
    assert 0 < len(wakes) < len(all_wakes)


@pytest.mark.parametrize("topology", [p2psim.Ring(agents=6), p2psim.ErdosRenyi(agents=9, probability=0.5)])
def test_a_network_of_a_topology(topology):
    network = p2psim.Network.of_graph(topology, p2psim.Gossip(), seed=4)
    assert network.links.agents == topology.agents
    again = p2psim.Network.of_graph(topology, p2psim.Gossip(), seed=4)
    assert np.array_equal(network.links.indices, again.links.indices)
    star = p2psim.Network.of_graph(p2psim.Star(agents=3), p2psim.Request())
    assert p2psim.simulate_events(star, commits=9).read()["kind"].size > 9
