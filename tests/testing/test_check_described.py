"""`check_part` passes every metric and figure that is registered, and says what is wrong with bad ones."""

from collections.abc import Iterator
from typing import Any

import pytest
import registered  # noqa: F401  the example package's are among them

import p2psim
from p2psim.core import registry
from p2psim.core.errors import InputError
from p2psim.learning.graph.metrics import GraphMetric, Snapshot
from p2psim.learning.metrics import StarMetric
from p2psim.network.metrics import NetworkMetric
from p2psim.testing import PartError, check_part

MEASURED = (StarMetric, GraphMetric, NetworkMetric)
METRICS = [metric for metric in registry.parts("metric").values() if issubclass(metric, MEASURED)]


@pytest.mark.parametrize("part", [*METRICS, *registry.parts("figure").values()], ids=lambda part: part.name)
def test_good_parts_pass(part: type) -> None:
    check_part(part)


class Lacks(p2psim.GraphMetric):
    """No method."""

    name = "lacks"
    meaning = "nothing"


class NotStatic(p2psim.GraphMetric):
    """An ordinary method."""

    name = "not_static"
    meaning = "nothing"

    def measure(self: Snapshot) -> float:  # type: ignore[override]
        """Not static."""
        return 0.0


class Mute(p2psim.Figure):
    """No words."""

    name = "mute"

    @staticmethod
    def draw(source: Any) -> dict[str, Any]:
        """Nothing."""
        return {}


BAD = [(NotStatic, "measure must be a static method"), (Mute, "meaning")]


@pytest.fixture(autouse=True, scope="module")
def bad() -> Iterator[None]:
    registry.register_all(part for part, _ in BAD)
    yield
    for part, _ in BAD:
        registry.forget(registry.kind_of(part), registry.name_of(part))


def test_a_part_without_its_method_is_not_registered() -> None:
    with pytest.raises(InputError, match="lacks measure"):
        registry.register(Lacks)


@pytest.mark.parametrize(("part", "said"), BAD, ids=lambda value: getattr(value, "__name__", ""))
def test_what_is_wrong_is_said(part: type, said: str) -> None:
    with pytest.raises(PartError, match=said):
        check_part(part)
    with pytest.raises(PartError, match="register and check the class"):
        check_part(part())
