"""Parts of one's own that lack a method: refused before anything runs, with the part and what is missing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import small_study as small
from own_losses import Huber
from ruamel.yaml import YAML

import p2psim
from p2psim.cli.main import main
from p2psim.core import registry
from p2psim.core.errors import InputError
from p2psim.core.figures import Figure
from p2psim.core.options import Options
from p2psim.learning.graph.metrics import GraphMetric
from p2psim.learning.losses.compiled import ForKernel, compiled_form
from p2psim.learning.metrics import StarMetric
from p2psim.network.metrics import NetworkMetric
from p2psim.network.topologies.base import Topology
from p2psim.privacy.accounting.accountant import Accountant
from p2psim.privacy.allocations import Allocation
from p2psim.privacy.mechanisms import Mechanism

BASES = {
    p2psim.Loss: "for_kernel",
    StarMetric: "measure",
    GraphMetric: "measure",
    NetworkMetric: "measure",
    Figure: "draw",
    Topology: "links",
    Allocation: "weights",
    Mechanism: "fill_unit",
    Accountant: "epsilon",
}


@pytest.mark.parametrize("base", BASES)
def test_no_kind_of_part_is_registered_without_its_methods(base: type) -> None:
    named: dict[str, Any] = {"kind": "lacking", "__annotations__": {"kind": Literal["lacking"]}}
    if not issubclass(base, Options):
        named = {"name": "lacking", "meaning": "nothing"}
    part: Any = type("Lacking", (base,), {**named, "__module__": __name__})
    with pytest.raises(InputError, match=f"'lacking' of {__name__} lacks .*{BASES[base]}"):
        p2psim.register(part)
    assert "lacking" not in registry.parts(part.part_kind)


def _unknown(z: float, y: float, parameters: np.ndarray) -> float:
    return float(str(parameters)[z])  # type: ignore[index]


class Broken(Huber):
    """A compiled form that cannot be compiled."""

    kind: Literal["broken"] = "broken"  # type: ignore[assignment]

    def for_kernel(self) -> ForKernel:
        return compiled_form(_unknown, _unknown)


class Seer(Allocation):
    """Clairvoyant, and does not say what it sees."""

    kind: Literal["seer"] = "seer"
    clairvoyant = True

    def limit(self, horizon: int, share: float, expected: float) -> int:
        return 5

    def weights(self, *_: Any) -> np.ndarray:
        return np.full(5, 0.2)


@pytest.fixture(params=[(Broken, "learning.loss", "broken"), (Seer, "privacy.allocation", "seer")])
def lacking(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    part, key, name = request.param
    p2psim.register(part)
    yield key, name
    registry.forget(part.part_kind, name)


def test_what_only_a_scenario_needs_is_refused_by_check_and_run(
    lacking: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (section, key), name = lacking[0].split("."), lacking[1]
    tree = small.tree(replicas=2)
    tree[section] = tree[section] | {key: {"kind": name}}
    if key == "loss":
        tree["learning"]["algorithm"]["rho"] = 0.1
    path, out = tmp_path / "s.yaml", tmp_path / "out"
    with open(path, "w") as stream:
        YAML(typ="safe").dump(tree, stream)
    for command in (["check", str(path)], ["run", str(path), "--out", str(out)]):
        assert main(command) == 2
        said = capsys.readouterr().err
        assert f"{section}.{key}: {name}" in said
        assert "Traceback" not in said
    assert not out.exists()
