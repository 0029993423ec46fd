"""Parts of one's own may have any keys and choices: what p2psim knows a part by is never the name of a key."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pytest
import small_study as small
from own_parts import kept
from pydantic import Field

import p2psim
from p2psim.core.errors import InputError
from p2psim.network.graph import Graph, from_edges
from p2psim.scenario.model import Scenario
from p2psim.scenario.schema import catalogue

DRAWN = []


class Trail(p2psim.Topology):
    """Agents along a path."""

    kind: Literal["trail"] = "trail"
    path: int = Field(3, description="number of agents")
    nodes: int = Field(1, description="agents of each stop")

    @property
    def agents(self) -> int:
        return self.path * self.nodes

    def links(self, agents: int | None, random: np.random.Generator, *_: Any, **__: Any) -> Graph:
        DRAWN.append(self)
        return from_edges(self.agents, np.arange(self.agents - 1), np.arange(1, self.agents))


class Descent(p2psim.CoordinateDescent):
    """Steps of another kind.

    Choices
    -------
    smoothness: public
        as the almanac has it
    """

    kind: Literal["almanac"] = "almanac"  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def parts() -> Iterator[None]:
    """Have these parts registered."""
    with kept():
        p2psim.register(Trail)
        p2psim.register(Descent)
        yield


def tree(**changes: Any) -> dict[str, Any]:
    learning = {
        "algorithm": {"kind": "coordinate-descent", "mu": 0.1, "commits": 20},
        "loss": "squared",
        "regularizer": {"l2": 0.1},
    }
    network = {"topology": {"kind": "trail"}, "exchange": "broadcast", "clock": "poisson"}
    sections = {"record": {"metrics": ["objective_gap"]}, "privacy": {"mechanism": "none"}}
    return small.tree(network=network, learning=learning, sweep={}, **sections) | changes


def test_a_topology_with_a_key_called_path_is_no_file() -> None:
    assert not Trail().is_file
    assert p2psim.FromFile(path="a.edges").is_file
    with pytest.raises(InputError) as caught:
        Scenario.from_dict(tree(seed="five"))
    assert [fault.key for fault in caught.value.faults] == ["seed"]
    assert DRAWN == []


def test_a_topology_may_have_a_key_called_nodes() -> None:
    assert Trail(nodes=2).by_order() == Trail(nodes=2)
    # Names are judged by the agents, and not by nodes of a file.
    assert Scenario.from_dict(tree()).network.topology.size_and_names() == (3, None)
    wrong = tree()["network"] | {"availability": {"kind": "bernoulli", "drop": {"nobody": 0.5}}}
    with pytest.raises(InputError, match=r"called 'nobody'; there are 0, 1, 2$"):
        Scenario.from_dict(tree(network=wrong))


def test_the_catalogue_gives_each_part_its_own_explanation_of_a_choice() -> None:
    key = "learning.algorithm.smoothness"
    meanings = [entry.meaning for entry in catalogue() if (entry.key, entry.name) == (key, "public")]
    assert len(meanings) == 2
    assert "from public bounds" in meanings[0]
    assert meanings[1] == "as the almanac has it"
