"""A part that ends the process is a failure of its simulations, and no success."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from small_study import tree

import p2psim
from p2psim.core import registry
from p2psim.core.errors import SimulationError

PRIVACY = {"mechanism": "leaving", "epsilon": 1, "sensitivity": {"kind": "clip", "bound": 1}}


class Leaving(p2psim.Laplace):
    """Noise that ends the process."""

    kind: Literal["leaving"] = "leaving"  # type: ignore[assignment]

    def draw(self, *_: Any, **__: Any) -> np.ndarray:
        """Leave."""
        raise SystemExit(0)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    registry.register_all([Leaving])
    yield
    registry.forget("mechanism", "leaving")


def test_it_is_reported(tmp_path: Path) -> None:
    scenario = p2psim.Scenario.from_dict(tree(privacy=PRIVACY, sweep={}))
    with pytest.raises(SimulationError, match="SystemExit"):
        p2psim.run(scenario, tmp_path / "run", jobs=1, progress=False)
