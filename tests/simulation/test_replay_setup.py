"""What tells apart the stages on which events play."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from graph_cases import graph_scenario

from p2psim.core.randomness import Streams
from p2psim.network.channels.channel import Channel
from p2psim.network.channels.draws import EdgeValue
from p2psim.network.graph import Graph, links
from p2psim.network.simulation import simulate_events
from p2psim.simulation.algorithms import adapter_of
from p2psim.simulation.algorithms.replay import ReplaySetup, replay_setup
from p2psim.simulation.workspace import Workspace

FADING = Channel(loss=EdgeValue(edge="fading"))


def ring(name: str, values: list[float]) -> Graph:
    graph: nx.Graph[int] = nx.cycle_graph(len(values))
    for (a, b), value in zip(graph.edges, values, strict=True):
        graph.edges[a, b][name] = value
    return links(graph)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ReplaySetup:
    scenario = graph_scenario()
    workspace = Workspace(tmp_path_factory.mktemp("setup"))
    return adapter_of(scenario).cell(scenario, workspace.case(scenario, 0), 0).setup


def key(made: ReplaySetup, where: Graph) -> str:
    scenario, network = graph_scenario(), replace(made.network, links=where)
    case = Workspace(None).case(scenario, 0)
    return replay_setup(scenario, case, network, made.plan, made.commits, made.time, made.dimension).key


def test_numbers_of_links_make_another_stage(made: ReplaySetup) -> None:
    """Where only a link's loss differs the events do, and so the stages must."""
    n = made.network.links.agents
    where = [ring("fading", [loss] + [0.0] * (n - 1)) for loss in (0.1, 0.9)]
    played = [
        simulate_events(replace(made.network, links=one, channel=FADING), Streams(), commits=200).read()
        for one in where
    ]
    assert played[0].tobytes() != played[1].tobytes()
    assert len({key(made, one) for one in where}) == 2
    assert key(made, where[0]) == key(made, ring("fading", [0.1] + [0.0] * (n - 1)))


def test_names_of_numbers_count(made: ReplaySetup) -> None:
    n = made.network.links.agents
    assert np.array_equal(ring("fading", [0.1] * n).weights, ring("delay", [0.1] * n).weights)
    assert key(made, ring("fading", [0.1] * n)) != key(made, ring("delay", [0.1] * n))
