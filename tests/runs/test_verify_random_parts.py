"""A part that is not deterministic cannot be verified, and that is not put down to rounding."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import p2psim
from p2psim.cli.main import main
from p2psim.core import registry


class Moody(p2psim.StarTraining):
    """An algorithm that draws random numbers which nobody can repeat."""

    kind: Literal["moody"] = "moody"

    def train(self, model: np.ndarray, gradient: Any, version: int, memory: dict[str, Any]) -> np.ndarray:
        return model - 0.1 * gradient(model) + np.random.default_rng().normal(size=model.size)

    def use(self, model: np.ndarray, answers: Sequence[Any], memory: dict[str, Any]) -> np.ndarray:
        return np.mean([answer.model for answer in answers], axis=0)


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    registry.register(Moody)
    yield
    registry.forget("algorithm", "moody")


def test_it_is_wrong_and_said_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = {
        "name": "moods",
        "network": {"topology": {"kind": "star", "agents": 3}, "exchange": "round"},
        "data": {"source": {"kind": "linear-regression", "dimension": 2, "points": 9}},
        "learning": {
            "algorithm": {"kind": "moody", "commits": 4}, "loss": "squared", "regularizer": {"l2": 0.1},
        },
        "record": {"metrics": ["objective"], "every": 1, "events": True},
    }  # fmt: skip
    p2psim.run(p2psim.Scenario.from_dict(tree), tmp_path / "run", jobs=1, progress=False)
    assert main(["verify", str(tmp_path / "run")]) == 1
    assert "a part is not deterministic" in " ".join(capsys.readouterr().out.split())
