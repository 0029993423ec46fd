"""Adapters of algorithms: each turns a scenario into numbers, and replays events.

An adapter is a module with the functions of `AlgorithmAdapter`; an algorithm names its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    import numpy as np

    from p2psim.data.prepare import Prepared
    from p2psim.network.graph import Graph
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.algorithms.replay import PreparedCell
    from p2psim.simulation.prepared import PreparedData


class AlgorithmAdapter(Protocol):
    """What an adapter's module offers."""

    def identify(self, scenario: Scenario) -> dict[str, Any]:
        """Return what determines the arrays of a case, beside the data section."""

    def arrays(self, scenario: Scenario, prepared: Prepared) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
        """Make the arrays of a case, and warnings."""

    def cell(self, scenario: Scenario, case: PreparedData, replica: int) -> PreparedCell:
        """Turn a scenario (without a sweep) and its case into what can be simulated."""

    def links_of(self, scenario: Scenario, arrays: Mapping[str, np.ndarray], replica: int) -> Graph:
        """Return who is linked with whom in a replica."""


def adapter_of(scenario: Scenario) -> AlgorithmAdapter:
    """Adapter of a scenario's algorithm."""
    name = scenario.learning.algorithm.adapter
    return cast(AlgorithmAdapter, import_module(f"p2psim.simulation.algorithms.{name}"))
