"""Adapters of algorithms: each turns a scenario into numbers, and replays events.

An adapter is the class of an algorithm's cells, `p2psim.simulation.algorithms.cell.PreparedCell`.
"""

from importlib import import_module

from p2psim.scenario.model import Scenario
from p2psim.simulation.algorithms.cell import PreparedCell


def adapter_of(scenario: Scenario) -> type[PreparedCell]:
    """Adapter of a scenario's algorithm: of the module ``star`` the class ``StarCell``."""
    name = scenario.learning.algorithm.adapter
    adapter: type[PreparedCell] = getattr(
        import_module(f"p2psim.simulation.algorithms.{name}"), f"{name.title()}Cell"
    )
    return adapter
