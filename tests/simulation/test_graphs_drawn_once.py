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


def test_cells_of_different_graphs_get_each_their_own(tmp_path: Path) -> None:
    run(tmp_path / "run", **{"network.topology.reach": [1, 2]})
    assert sorted(Counted.made) == [1, 1, 2, 2]
