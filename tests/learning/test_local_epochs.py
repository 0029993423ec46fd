"""Owners that pass over their records so many times before they answer: more records, more steps."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2psim
from p2psim.core.errors import InputError, MeaningError
from p2psim.runs.verification import verify_result
from p2psim.scenario.model import Scenario
from p2psim.simulation.simulate import check, simulate
from p2psim.simulation.workspace import Workspace

#: Records of each owner, all alike: x, y and how many.
OWNERS = [(1.0, 2.0, 2), (0.5, -1.0, 4), (-1.5, 1.0, 7)]
ETA, L2, EPOCHS, ROUNDS = 0.07, 0.1, 3, 12


def table(folder: Path) -> Path:
    path = folder / "records.csv"
    rows = [f"{i},{x},{y}" for i, (x, y, count) in enumerate(OWNERS) for _ in range(count)]
    path.write_text("\n".join(["owner,x,y", *rows]) + "\n")
    return path


def tree(folder: Path, batch: Any, algorithm: dict[str, Any] | None = None, **privacy: Any) -> dict[str, Any]:
    keys = {"kind": "fedavg", "step": ETA, "local_epochs": EPOCHS, "batch": batch, "commits": ROUNDS}
    return {
        "name": "epochs",
        "network": {"topology": {"kind": "star"}, "exchange": "round"},
        "data": {
            "source": {"kind": "csv", "path": str(table(folder)), "y": "y"},
            "partition": {"kind": "column", "column": "owner"},
        },
        "learning": {"algorithm": keys | (algorithm or {}), "loss": "squared", "regularizer": {"l2": L2}},
        "privacy": privacy or {"mechanism": "none"},
        "record": {"metrics": ["objective"], "every": 1, "events": True, "models": True},
    }


def models(folder: Path, given: dict[str, Any]) -> np.ndarray:
    outcome = simulate(Scenario.from_dict(given), 0, Workspace(folder))
    assert outcome.models is not None
    return outcome.models.reshape(-1)


@pytest.mark.parametrize(
    ("batch", "steps"),
    [
        ("whole", [1, 1, 1]),
        ({"kind": "epochs", "size": 2}, [1, 2, 3]),  # of seven records, three pairs
        ({"kind": "fixed", "size": 2}, [1, 2, 4]),
    ],
    ids=["whole", "epochs", "fixed"],
)
def test_every_owner_takes_the_steps_of_its_epochs(batch: Any, steps: list[int], tmp_path: Path) -> None:
    """Records of an owner are alike, so that K steps leave (1 − 2η(x² + l2))ᴷ of the distance to its own θ*."""
    theta, expected = 0.0, [0.0]
    for _ in range(ROUNDS):
        answers = []
        for (x, y, _), k in zip(OWNERS, steps, strict=True):
            own = x * y / (x * x + L2)
            answers.append(own + (1 - 2 * ETA * (x * x + L2)) ** (EPOCHS * k) * (theta - own))
        counts = np.array([count for *_, count in OWNERS])
        theta = float(counts @ answers / counts.sum())
        expected.append(theta)
    np.testing.assert_allclose(models(tmp_path, tree(tmp_path, batch)), expected, rtol=1e-12)


@pytest.mark.parametrize("algorithm", ["fedavg", "fedasync", "fedbuff"])
def test_the_plain_replay_agrees(algorithm: str, tmp_path: Path) -> None:
    """Owners of 5 to 30 records, batches that differ, momentum and answers that are late."""
    given = tree(tmp_path, {"kind": "poisson", "rate": 0.3}, {"kind": algorithm, "momentum": 0.5})
    given["data"] = {"source": {"kind": "linear-regression", "dimension": 3, "points": {"uniform": [5, 30]}}}
    given["network"] |= {
        "topology": {"kind": "star", "agents": 4},
        "channel": {"latency": {"uniform": [0, 1]}},
    }
    if algorithm != "fedavg":
        given["network"]["exchange"] = "request"
    if algorithm == "fedbuff":
        given["learning"]["algorithm"]["buffer"] = 3
    given["learning"]["algorithm"]["batch"] = {"kind": "epochs", "size": 4}
    result = p2psim.run(Scenario.from_dict(given | {"replicas": 2}), tmp_path / "run", progress=False)
    assert {one.verdict for one in verify_result(result)} == {"right"}


def test_equal_owners_with_noise_do_what_local_steps_do(tmp_path: Path) -> None:
    """Two epochs of three batches of four records are six steps, with the same noise and the same ledger."""
    privacy = {"mechanism": "laplace", "epsilon": 2, "sensitivity": {"kind": "clip", "bound": 1.0}}
    given = tree(tmp_path, {"kind": "epochs", "size": 4}, {"local_epochs": 2}, **privacy)
    given["data"] = {"source": {"kind": "linear-regression", "dimension": 3, "points": 12}}
    given["network"]["topology"] = {"kind": "star", "agents": 4}
    steps = Scenario.from_dict(given).resolved()
    steps["learning"]["algorithm"] |= {"local_steps": 6, "local_epochs": None}
    both = [simulate(Scenario.from_dict(one), 0, Workspace(tmp_path)) for one in (given, steps)]
    assert both[0].models is not None
    assert both[1].models is not None
    assert both[0].models.tobytes() == both[1].models.tobytes()
    assert (both[0].ledger["releases"] == 6 * ROUNDS).all()
    assert (both[0].ledger["epsilon_basic"] == both[1].ledger["epsilon_basic"]).all()


def test_noise_wants_as_many_steps_of_all(tmp_path: Path) -> None:
    privacy = {"mechanism": "laplace", "epsilon": 2, "sensitivity": {"kind": "clip", "bound": 1.0}}
    given = tree(tmp_path, {"kind": "epochs", "size": 2}, **privacy)
    with pytest.raises(MeaningError, match=r"take more steps, 3 to 9; .*give local_steps"):
        check(Scenario.from_dict(given), Workspace(tmp_path))


def test_steps_and_epochs_are_not_given_both(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"give local_steps or local_epochs; got 5 and 3"):
        Scenario.from_dict(tree(tmp_path, "whole", {"local_steps": 5}))
