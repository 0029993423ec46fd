"""What metrics and figures must be: classes that are never instantiated."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from p2psim.figures import Figure
from p2psim.learning.graph_metrics import GraphMetric
from p2psim.learning.metrics import StarMetric
from p2psim.network.metrics import NetworkMetric

#: Classes whose methods are to be written.
BASES = (StarMetric, GraphMetric, NetworkMetric, Figure)


def check_metric(part: Any) -> Iterator[str]:
    """Yield what is wrong with the class of a metric."""
    yield from _faults(part, "measure")


def check_figure(part: Any) -> Iterator[str]:
    """Yield what is wrong with the class of a figure."""
    yield from _faults(part, "draw")


def _faults(part: Any, method: str) -> Iterator[str]:
    if not isinstance(part, type):
        yield "its class is the part: register and check the class, not an instance"
        return
    if not str(getattr(part, "meaning", "")).strip():
        yield 'it does not say what it is: meaning = "..."'
    owner = next((base for base in part.__mro__ if method in vars(base)), None)
    if owner is None or owner in BASES:
        yield f"it lacks {method}"
    elif not isinstance(inspect.getattr_static(part, method), staticmethod):
        yield f"{method} must be a static method: put @staticmethod above it"
