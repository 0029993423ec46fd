"""Studies whose agents act in rounds, or in pairs, are recomputed from what they recorded."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import p2psim
from p2psim.core.errors import InputError
from p2psim.runs.checking import assess_cells
from p2psim.runs.verification import _by_run, broken_invariant, stream_of, verify_result
from p2psim.scenario.cells import cells
from p2psim.simulation.workspace import Workspace

TREE: dict[str, Any] = {
    "name": "rounds",
    "seed": 3,
    "network": {"topology": {"kind": "ring", "agents": 5}, "exchange": "synchronous"},
    "data": {"source": {"kind": "linear-classification", "dimension": 3, "points": 20}},
    "learning": {
        "algorithm": {
            "kind": "decentralised-sgd",
            "step": 0.5,
            "order": "gradient-then-gossip",
            "commits": 60,
        },
        "loss": "logistic",
        "regularizer": {"l2": 0.01},
    },
    "privacy": {
        "mechanism": "laplace",
        "epsilon": 20.0,
        "sensitivity": {"kind": "clip", "bound": 1.0},
        "allocation": {"kind": "cap", "releases": 20},
    },
    "record": {
        "metrics": [
            "objective",
            "consensus_distance",
            "epsilon_spent",
            "releases_wasted",
            "staleness",
            "updates_gini",
        ],
        "every": 7,
        "events": True,
        "noise": True,
        "models": True,
    },
}
LATE = {"kind": "synchronous", "interval": 0.5, "deadline": 0.75}
PAIRS = {"kind": "gossip", "mode": "push-pull"}
BAD = {
    "channel": {"latency": {"exponential": 0.3}, "loss": 0.2},
    "availability": {"kind": "renewal", "up": 5.0, "down": 1.0},
}
ORDERS = ("gradient-then-gossip", "gossip-then-gradient", "together")


def study(exchange: Any, order: str, **network: Any) -> p2psim.Scenario:
    tree = {**TREE, "network": {**TREE["network"], "exchange": exchange, **network}}
    algorithm = {**TREE["learning"]["algorithm"], "order": order}
    return p2psim.Scenario.from_dict({**tree, "learning": {**TREE["learning"], "algorithm": algorithm}})


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("exchange", ["synchronous", LATE, PAIRS], ids=["rounds", "late", "pairs"])
@pytest.mark.parametrize("network", [{}, BAD, BAD | {"compute": {"time": 0.3}}], ids=["ideal", "bad", "slow"])
def test_runs_are_recomputed(exchange: Any, order: str, network: dict[str, Any], tmp_path: Path) -> None:
    made = study(exchange, order, **network)
    result = p2psim.run(made, tmp_path / "run", progress=False, check_events=True)
    assert [one.verdict for one in verify_result(result)] == ["right"]
    commits = result.events[result.events["kind"] == "commit"]
    assert len(commits) == 60
    # What each agent released is in the ledger.
    released = result.events[(result.events["release"] >= 0) & result.events["kind"].isin(["send", "commit"])]
    counts = released.groupby("agent")["release"].max() + 1
    ledger = result.ledger.set_index("agent")["releases"]
    assert ledger[counts.index].tolist() == counts.tolist()
    if exchange is PAIRS:
        assert (commits["release"] < 0).sum() in range(25, 36)
    # Its events are right also for who does not know the algorithm.
    stream, tree = stream_of(_by_run(result.events)[0, 0]), json.loads(json.dumps(result.scenario.resolved()))
    assert broken_invariant(stream, 5, tree, result.described.cells[0]) == ""
    stream["release"][np.flatnonzero(stream["release"] >= 0)[20]] += 1
    assert broken_invariant(stream, 5, tree, result.described.cells[0])


def test_a_changed_number_is_found(tmp_path: Path) -> None:
    result = p2psim.run(study("synchronous", "together"), tmp_path / "run", progress=False)
    table = pd.read_parquet(result.path / "metrics.parquet")
    table.loc[table.index[-1], "value"] += 1e-3
    table.to_parquet(result.path / "metrics.parquet", index=False)
    assert [one.verdict for one in verify_result(p2psim.Result.load(result.path))] == ["wrong"]


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ({"commits": 200}, "expected to end at commit 100 of 200"),
        ({"time": 30.0}, "expected to end at time 20 of 30"),
        ({"commits": 100}, ""),
        ({"time": 20.0}, ""),
    ],
)
def test_early_ends_are_foreseen(end: dict[str, Any], said: str, tmp_path: Path) -> None:
    """Five agents may make 20 releases each: rounds end with the twentieth, which also a run says that has ended so."""
    algorithm = {name: value for name, value in TREE["learning"]["algorithm"].items() if name != "commits"}
    made = p2psim.Scenario.from_dict({**TREE, "learning": {**TREE["learning"], "algorithm": algorithm | end}})
    (facts,) = assess_cells(made, cells(made), Workspace(tmp_path))
    warned = [warning for warning in facts.warnings if "expected to end" in warning]
    assert len(warned) == bool(said)
    assert said in " ".join(warned)
    result = p2psim.run(made, tmp_path / "run", progress=False)
    assert (result.events["kind"] == "commit").sum() == 100


def test_a_clock_means_nothing(tmp_path: Path) -> None:
    said = "agents have no clock under synchronous: rounds wake them; remove clock"
    with pytest.raises(InputError, match=said):
        p2psim.run(study("synchronous", "together", clock={"rate": 2.0}), tmp_path / "run", progress=False)
