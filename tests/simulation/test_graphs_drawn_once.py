"""Cells of a replica that have the same graph share it, and those that have others do not."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from graph_cases import graph_scenario

import p2psim
from p2psim.core import registry
from p2psim.network.graph import Graph, TopologyInputs
from p2psim.simulation.algorithms.graph import GraphCell
from p2psim.simulation.prepared import DrawnGraphs


class Counted(p2psim.Topology):
    """A ring that remembers by which reach it was made."""

    kind: Literal["counted"] = "counted"
    reach: int = 1
    is_random: ClassVar[bool] = True
    made: ClassVar[list[int]] = []

    def links(
        self, agents: int | None, random: np.random.Generator, given: TopologyInputs, learner: bool = False
    ) -> Graph:
        """Links of the ring."""
        self.made.append(self.reach)
        return p2psim.Ring(agents=given.agents).links(None, random, given)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    registry.register_all([Counted])
    yield
    registry.forget("topology", "counted")
    Counted.made.clear()


def run(folder: Path, **sweep: Any) -> None:
    changes = {
        "network.topology": {"kind": "counted"},
        "data.source.agents": 5,
        "replicas": 2,
        "sweep": sweep,
    }
    scenario = graph_scenario(changes)
    p2psim.run(scenario, folder, jobs=1, progress=False)


def test_cells_that_differ_in_budgets_share_the_graph_of_a_replica(tmp_path: Path) -> None:
    run(tmp_path / "run", **{"privacy.epsilon": [1.0, 2.0, 3.0]})
    assert Counted.made == [1, 1]


def test_a_cell_is_made_once_for_its_checks_and_its_simulations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    make = GraphCell.cell.__func__  # type: ignore[attr-defined]

    def counted(cls: type[GraphCell], scenario: Any, case: Any, replica: int) -> GraphCell:
        made.append(replica)
        return make(cls, scenario, case, replica)

    monkeypatch.setattr(GraphCell, "cell", classmethod(counted))
    run(tmp_path / "run", **{"privacy.epsilon": [1.0]})
    assert made == [0, 1]


def test_cells_of_different_graphs_get_each_their_own(tmp_path: Path) -> None:
    run(tmp_path / "run", **{"network.topology.reach": [1, 2]})
    assert sorted(Counted.made) == [1, 1, 2, 2]


def test_a_case_keeps_no_more_graphs_than_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last ones stay: by their number, and by the neighbours in all of them."""
    monkeypatch.setattr("p2psim.simulation.prepared.MOST_GRAPHS", 3)
    monkeypatch.setattr("p2psim.simulation.prepared.MOST_NEIGHBOURS", 100)
    graphs, drawn = DrawnGraphs(), []

    def get(number: int, links: int = 10) -> Graph:
        def draw() -> Graph:
            drawn.append(number)
            return Graph(np.array([0, links]), np.zeros(links, np.int32), False, np.ones(links))

        return graphs.get((number,), draw)

    first = get(0)
    assert get(0) is first
    for number in (1, 2, 3):
        get(number)
    assert get(3) is not first
    assert drawn == [0, 1, 2, 3]
    get(1)
    get(0)
    assert drawn == [0, 1, 2, 3, 0]
    get(4, links=90)  # beside one other
    get(0)
    get(3)
    assert drawn == [0, 1, 2, 3, 0, 4, 3]
    assert get(5, links=101).indices.size == 101
    get(5, links=101)
    assert drawn[-2:] == [5, 5]
