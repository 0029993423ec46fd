"""p2psim: discrete-event simulation of machine learning among parties who do not share their data."""

from __future__ import annotations

from p2psim.core.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from p2psim.core.figures import Figure
    from p2psim.core.parts import load_parts
    from p2psim.core.registry import register
    from p2psim.data.features.maps import Feature
    from p2psim.data.partitions.base import Partition
    from p2psim.data.sources.base import DataSource
    from p2psim.learning.graph.metrics import GraphMetric
    from p2psim.learning.losses.protocol import Loss
    from p2psim.learning.metrics import StarMetric
    from p2psim.network.metrics import NetworkMetric
    from p2psim.network.topologies.base import Topology
    from p2psim.privacy.accounting.accountant import Accountant
    from p2psim.privacy.allocations import Allocation
    from p2psim.privacy.mechanisms.protocol import Mechanism
    from p2psim.runs.result import Result
    from p2psim.runs.runner import run
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.assembly import assemble

__all__ = [
    "Accountant",
    "Allocation",
    "DataSource",
    "Feature",
    "Figure",
    "GraphMetric",
    "Loss",
    "Mechanism",
    "NetworkMetric",
    "Partition",
    "Result",
    "Scenario",
    "StarMetric",
    "Topology",
    "__version__",
    "assemble",
    "load_parts",
    "register",
    "run",
]

# Loaded when first used: importing the package must not wait for the libraries that a run needs.
_HOMES = {
    "Accountant": "p2psim.privacy.accounting.accountant",
    "Allocation": "p2psim.privacy.allocations",
    "DataSource": "p2psim.data.sources.base",
    "Feature": "p2psim.data.features.maps",
    "Figure": "p2psim.core.figures",
    "GraphMetric": "p2psim.learning.graph.metrics",
    "Loss": "p2psim.learning.losses.protocol",
    "Mechanism": "p2psim.privacy.mechanisms.protocol",
    "NetworkMetric": "p2psim.network.metrics",
    "Partition": "p2psim.data.partitions.base",
    "Result": "p2psim.runs.result",
    "Scenario": "p2psim.scenario.model",
    "StarMetric": "p2psim.learning.metrics",
    "Topology": "p2psim.network.topologies.base",
    "assemble": "p2psim.simulation.assembly",
    "load_parts": "p2psim.core.parts",
    "register": "p2psim.core.registry",
    "run": "p2psim.runs.runner",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
