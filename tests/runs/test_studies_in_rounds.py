"""Studies whose agents act in rounds, or in pairs, are recomputed from what they recorded."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pairs import few

import p2psim
from p2psim.core.errors import InputError
from p2psim.runs.checking import assess_cells
from p2psim.runs.verification import broken_invariant, by_run, stream_of, verify_result
from p2psim.scenario.cells import cells, display
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


@pytest.mark.parametrize(
    ("exchange", "order", "network"),
    few(product(["synchronous", LATE, PAIRS], ORDERS, [{}, BAD, BAD | {"compute": {"time": 0.3}}]), 10),
)
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
    stream, tree = stream_of(by_run(result.events)[0, 0]), json.loads(json.dumps(result.scenario.resolved()))
    cell = result.described.cells[0]
    assert broken_invariant(stream, 5, tree, cell) == ""
    # Also where the exchange is known from what is swept alone.
    swept = replace(cell, swept={"network.exchange": display(made.network.exchange)})
    tree["network"]["exchange"] = {"kind": "broadcast"}
    assert broken_invariant(stream, 5, tree, swept) == ""
    assert broken_invariant(stream, 5, tree, cell)
    stream["release"][np.flatnonzero(stream["release"] >= 0)[20]] += 1
    assert broken_invariant(stream, 5, tree, swept)


@pytest.mark.parametrize(
    ("exchange", "order"), [("synchronous", "gradient-then-gossip"), (PAIRS, "gossip-then-gradient")]
)
def test_models_that_change_between_commits_are_recomputed(exchange: Any, order: str, tmp_path: Path) -> None:
    """Agents step before they send, or mix when work begins: a moment of recording may be before the commit."""
    made = study(exchange, order, **BAD, compute={"time": 0.3})
    tree = made.resolved() | {"record": {**TREE["record"], "every": {"time": 0.4}}}
    result = p2psim.run(p2psim.Scenario.from_dict(tree), tmp_path / "run", progress=False)
    assert [one.verdict for one in verify_result(result)] == ["right"]
    steps = result.metrics.query("metric == 'objective'")["step"].to_numpy()
    changed = (np.diff(result.models[0, 0], axis=0) != 0).any(axis=(1, 2))
    assert (changed & (np.diff(steps) == 0)).any()


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


def test_a_run_whose_agents_have_left_for_good_says_so(tmp_path: Path) -> None:
    """Rounds of agents begin at 1, 2, …, and all five leave before the third."""
    made = study("synchronous", "together", availability={"kind": "leave", "after": 2.5})
    result = p2psim.run(made, tmp_path / "run", progress=False)
    assert [line for line in result.warnings if line.startswith("the run ended")] == [
        "the run ended at commit 10 of 60: nobody could act any more, as where all agents have left for good"
    ]
