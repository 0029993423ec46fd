"""Weights of links by rule, weights normalised, and other names of topologies."""

import re
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from registered import registered
from topology_cases import assert_same, assert_sound, matrix

from p2psim.core.errors import InputError
from p2psim.network.graph import Graph, TopologyInputs
from p2psim.network.mixing import mixing_matrix
from p2psim.network.topologies import (
    ChangingTopology,
    Complete,
    ErdosRenyi,
    FromFile,
    Ring,
    Similarity,
    StarOfAgents,
    Topology,
    draw_links,
)
from p2psim.scenario.fields import explicit
from p2psim.scenario.schema import catalogue, matching

RULES = {
    "metropolis": lambda a, b, most: 1 / (1 + max(a, b)),
    "uniform": lambda a, b, most: 1 / (1 + most),
    "degree": lambda a, b, most: 1 / max(a, b),
}
HERE = Path(__file__).parent
WEIGHTED = [part for part in registered("topology") if "weights" in type(part).model_fields]
NORMALISED = [part for part in registered("topology") if "normalise" in type(part).model_fields]


def of(topology: Topology, **keys: object) -> Graph:
    changed = type(topology).model_validate({**dict(topology), **keys})
    agents = topology.size_and_names()[0] or 16
    likeness = np.random.default_rng(agents).normal(size=(agents, 3))
    return draw_links(changed, TopologyInputs(agents, likeness, likeness), replica=0)


def kind(topology: Topology) -> str:
    return str(topology.kind)


def test_all_but_those_with_weights_of_a_meaning_can_have_weights() -> None:
    without = {kind(part) for part in registered("topology")} - {kind(part) for part in WEIGHTED}
    # Weights of a graph that changes would be those of all time.
    changing = {kind(part) for part in registered("topology") if isinstance(part, ChangingTopology)}
    assert without == {"star", "similarity", "caveman"} | changing
    assert {kind(part) for part in NORMALISED} - {kind(part) for part in WEIGHTED} == {"similarity"}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("topology", WEIGHTED, ids=kind)
def test_weights_follow_from_numbers_of_neighbours(topology: Topology, rule: str) -> None:
    plain, found = of(topology), of(topology, weights=rule)
    assert found.indices.tobytes() == plain.indices.tobytes()
    W, degrees = assert_sound(found, connected=False), np.diff(plain.indptr)
    for i in range(plain.agents):
        for j in plain.of(i):
            assert W[i, j] == pytest.approx(RULES[rule](degrees[i], degrees[j], degrees.max()), rel=1e-15)


@pytest.mark.parametrize("topology", NORMALISED, ids=kind)
def test_normalised_weights_have_a_mean_sum_of_one(topology: Topology) -> None:
    plain, found = of(topology), of(topology, normalise=True)
    assert found.degrees().mean() == pytest.approx(1, rel=1e-14)
    ratio = found.weights / plain.weights
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-14)
    assert_same(of(topology, normalise=False), plain)


def test_graphs_that_all_agents_see_alike_have_weights_of_one_over_their_degree() -> None:
    for topology, degree in ((Ring(agents=8), 2), (Complete(agents=8), 7)):
        np.testing.assert_allclose(of(topology, normalise=True).weights, 1 / degree)


def test_weights_by_rule_are_normalised_after_that() -> None:
    star = matrix(of(StarOfAgents(agents=5), weights="metropolis", normalise=True))
    # Each link has 1/5, which over all agents is a mean sum of 8/25.
    np.testing.assert_allclose(star[0, 1:], (1 / 5) / (8 / 25))


def test_weights_of_a_file_give_way_to_a_rule() -> None:
    file = FromFile(path=str(HERE / "twelve.edges"))
    assert set(of(file, weights="uniform").weights) == {1 / (1 + np.diff(of(file).indptr).max())}


@pytest.mark.parametrize("rule", ["metropolis", "uniform"])
def test_weights_of_links_are_those_that_models_are_mixed_by(rule: str) -> None:
    topology = ErdosRenyi(probability=0.3, agents=16, seed=4)
    found = mixing_matrix(of(topology, weights=rule), "links").toarray()
    np.testing.assert_array_equal(found, mixing_matrix(of(topology), rule).toarray())  # type: ignore[arg-type]


def test_what_is_left_out_is_not_written_down() -> None:
    assert explicit(Ring(agents=3)) == {"kind": "ring", "agents": 3}
    written = explicit(Ring(agents=3, weights="uniform", normalise=False))
    assert written == {"kind": "ring", "agents": 3, "weights": "uniform", "normalise": False}
    assert "weights" not in explicit(Similarity())


SYNONYMS = {
    "barabasi-albert": ("scale-free", "attach: 2"),
    "watts-strogatz": ("small-world", "neighbours: 4, rewire: 0.2"),
    "planted-partition": ("two-cluster", "within: 0.5, between: 0.1"),
}


@pytest.mark.parametrize("name", SYNONYMS)
def test_synonyms_are_the_same_topology(name: str, tmp_path: Path) -> None:
    from p2psim.scenario.model import Scenario

    canonical, keys = SYNONYMS[name]
    shipped = (HERE.parents[1] / "scenarios" / "push_sum.yaml").read_text(encoding="utf-8")
    scenarios = []
    for called in (name, canonical):
        path = tmp_path / f"{called}.yaml"
        topology = f"topology: {{kind: {called}, agents: 60, {keys}}}"
        text, changed = re.subn(r"topology: \{kind: random-regular.*\}", topology, shipped)
        assert changed == 1
        path.write_text(text, encoding="utf-8")
        scenarios.append(Scenario.load(path))
    assert scenarios[0].network.topology.kind == canonical
    assert scenarios[0].resolved() == scenarios[1].resolved()


@pytest.mark.parametrize("name", SYNONYMS)
def test_the_list_has_both_names(name: str) -> None:
    first = matching(catalogue(), name)[0]
    assert (first.key, first.name) == ("network.topology", name)
    assert first.meaning.startswith(f"the same as {SYNONYMS[name][0]}: ")
    assert len([entry for entry in catalogue() if entry.name == SYNONYMS[name][0]]) == 1


def test_nothing_else_has_other_names() -> None:
    """A figure takes many kinds, which are no other names of each other."""
    others = {entry.name for entry in catalogue() if entry.meaning.startswith("the same as ")}
    assert others == set(SYNONYMS)


@pytest.mark.parametrize("name", SYNONYMS)
def test_what_else_is_wrong_with_a_synonym_is_said_of_its_topology(name: str) -> None:
    from p2psim.network.section import NetworkSection

    with pytest.raises(InputError) as error:
        NetworkSection(topology={"kind": name, "size": 3}, exchange="broadcast")  # type: ignore[arg-type]
    assert "topology.size: unknown key" in str(error.value)


def test_a_synonym_is_found_by_a_name_that_is_nearly_right() -> None:
    from p2psim.network.section import NetworkSection

    with pytest.raises(InputError, match=r"did you mean barabasi-albert\?"):
        NetworkSection(topology={"kind": "barabasi", "attach": 3}, exchange="broadcast")  # type: ignore[arg-type]


def test_networkx_graphs_may_have_rules() -> None:
    from p2psim.network.topologies import FromGraph

    graph = nx.star_graph(4)
    found = draw_links(FromGraph(graph=graph, weights="degree"), TopologyInputs())  # type: ignore[arg-type]
    np.testing.assert_allclose(found.weights, 1 / 4)
