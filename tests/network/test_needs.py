"""What cannot be in memory, or would not end, is refused by its key before anything of that size is made."""

import resource
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from children import forked
from hypothesis import given, settings
from hypothesis import strategies as st

import p2psim
from p2psim.cli.main import main
from p2psim.network.graph import Graph, TopologyInputs
from p2psim.network.simulation import simulate_events
from p2psim.network.topologies import draw_links
from p2psim.network.topologies.base import Topology
from p2psim.network.topologies.blocks import TwoCluster
from p2psim.network.topologies.random import ErdosRenyi, RandomRegular, ScaleFree, SmallWorld
from p2psim.network.topologies.regular import Complete, Ring
from p2psim.runs import system
from p2psim.runs.pilot import available_memory

STAR = """
name: star
network: {topology: {kind: star, agents: 3}, exchange: request}
data: {source: {kind: linear-regression, dimension: 3, points: 20}}
learning:
  algorithm: {kind: async-star, horizon: 20, rho: {h: .5}, theta_max: 3}
  loss: squared
  regularizer: {l2: 1.0e-3}
"""
GRAPH = """
name: graph
network: {topology: {kind: ring, agents: 4}, exchange: broadcast}
data: {source: {kind: linear-regression, dimension: 3, points: 20}}
learning:
  algorithm: {kind: coordinate-descent, updates_per_agent: 5, mu: .5}
  loss: squared
  regularizer: {l2: 1.0e-3}
"""
SWEPT = ("seed", "data.seed", "learning.algorithm.mu")
#: So much memory is left to the commands that are tried.
ROOM = 4_000_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a star and a graph."""
    made = tmp_path_factory.mktemp("needs")
    (made / "star.yaml").write_text(STAR)
    (made / "graph.yaml").write_text(GRAPH)
    return made


@pytest.mark.parametrize(
    ("file", "key", "value"),
    [
        ("star", "replicas", 9223372036854775807),
        ("star", "replicas", 2**31 - 1),
        ("star", "network.topology.agents", 9223372036854775807),
        ("star", "network.topology.agents", 10**9),
        ("star", "data.source.dimension", 10**6),
        ("graph", "network.topology.shape", "{kind: grid, shape: [2000, 2000]}"),
        ("star", "data.source.points", 10**9),
        ("star", "learning.algorithm.horizon", 9223372036854775807),
        ("graph", "network.topology.shape", "{kind: grid, shape: [1000000, 1000000]}"),
        ("graph", "network.topology.agents", "{kind: complete, agents: 10000}"),
        ("graph", "network.topology.agents", "{kind: erdos-renyi, agents: 1000000, probability: 0.5}"),
        ("graph", "network.topology.agents", "{kind: random-regular, agents: 100000, degree: 9999}"),
        (
            "graph",
            "network.topology.agents",
            "{kind: small-world, agents: 100000, neighbours: 9998, rewire: 0.1}",
        ),
        ("graph", "network.topology.agents", "{kind: scale-free, agents: 1000000, attach: 100}"),
        (
            "graph",
            "network.topology.agents",
            "{kind: two-cluster, agents: 100000, within: 0.5, between: 0.1}",
        ),
        ("graph", "data.source.dimension", 10**9),
        ("graph", "learning.algorithm.updates_per_agent", 1e300),
        ("graph", "sweep", "{" + ", ".join(f"{key}: {[*range(1, 1001)]}" for key in SWEPT) + "}"),
    ],
)
def test_sizes(folder: Path, tmp_path: Path, file: str, key: str, value: object) -> None:
    name = key.rsplit(".", 1)[0] if str(value).startswith("{kind") else key
    command = ["check", str(folder / f"{file}.yaml"), "--no-pilot", "--set", f"{name}={value}"]

    def with_little_memory() -> int:
        size = ROOM + int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        system.address_limit = lambda: ROOM  # what this process has already is the tests'
        return main(command)

    ran = forked(with_little_memory, tmp_path)
    assert ran.returncode == 2
    assert ran.stdout == ""
    (said,) = ran.stderr.splitlines()
    assert f"{key}: " in said
    assert any(word in said for word in ("--confirm-cells", "which is all that a column holds"))


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["agents", "dimension", "points", "replicas"]),
    st.floats(9, 300),
)
def test_no_number_is_too_large_to_be_estimated(folder: Path, key: str, power: float) -> None:
    name = {"agents": "network.topology.agents", "replicas": "replicas"}.get(key, f"data.source.{key}")
    assert main(["check", str(folder / "star.yaml"), "--no-pilot", "--set", f"{name}={int(10**power)}"]) == 2


def test_who_confirms_it_may_go_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["check", str(folder / "star.yaml"), "--no-pilot"]
    assert main(command) == 0
    monkeypatch.setattr("p2psim.runs.pilot.available_memory", lambda: 100.0)
    assert main(command) == 2
    assert main([*command, "--confirm-cells"]) == 0


def test_memory_that_is_free_is_no_more_than_there_is() -> None:
    assert 0 < available_memory() < 1e15


@pytest.mark.parametrize(
    "graph",
    [
        Complete(),
        ErdosRenyi(probability=0.2),
        RandomRegular(degree=8),
        Ring(),
        ScaleFree(attach=4),
        SmallWorld(neighbours=8, rewire=0.3),
        TwoCluster(within=0.3, between=0.1),
    ],
    ids=lambda graph: graph.kind,
)
def test_links_are_estimated(graph: Topology) -> None:
    drawn = graph.links(400, np.random.default_rng(1), TopologyInputs())
    assert len(drawn.indices) == pytest.approx(graph.link_ends(400), rel=0.1)


@pytest.mark.parametrize("samples", ["99", "10000001", "9223372036854775807"])
def test_samples_of_an_audit(folder: Path, samples: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(folder / "star.yaml"), "--samples", samples]) == 2
    assert "samples" in capsys.readouterr().err


@pytest.mark.parametrize("loss", [0.0, 0.25])
def test_a_chance_that_all_links_share_is_not_written_down_for_each(loss: float) -> None:
    """Of a complete graph that would be the largest array there is; an ideal run has it where messages can be lost."""
    small, large = (draw_links(Complete(), TopologyInputs(n)) for n in (3, 500))

    def start(links: Graph) -> None:
        network = p2psim.Network(links, p2psim.Gossip(), p2psim.Channel(loss=loss))
        if loss == 0:
            simulate_events(network, commits=1, engine="array")

    start(small)  # so that modules are there
    tracemalloc.start()
    try:
        start(large)
        assert tracemalloc.get_traced_memory()[1] < large.indices.size
    finally:
        tracemalloc.stop()
