"""``p2psim account run``: what a run's releases cost, by accountants that the run did not name."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from p2psim.cli.account.releases import ranges
from p2psim.cli.main import main
from p2psim.runs import manifest
from p2psim.runs.result import Result
from p2psim.runs.runner import run
from p2psim.runs.seals import print_of
from p2psim.scenario.model import Scenario

STAR = {
    "name": "small",
    "seed": 5,
    "replicas": 2,
    "network": {"topology": {"kind": "star", "agents": 3}, "exchange": "request"},
    "data": {"source": {"kind": "linear-regression", "dimension": 3, "points": 20}, "redraw": "never"},
    "learning": {
        "algorithm": {"kind": "async-star", "horizon": 40, "rho": {"h": 0.5}, "theta_max": 3},
        "loss": "squared",
        "regularizer": {"l2": 1e-3},
    },
    "privacy": {
        "mechanism": "laplace",
        "epsilon": 10,
        "delta": 1e-5,
        "sensitivity": {"kind": "clip", "norm": "l1", "bound": 1.0},
        "accountant": ["basic", "kov"],
    },
    "record": {"metrics": ["relative_fitness"], "every": 40},
}


def made(folder: Path, **changes: Any) -> Result:
    privacy = {**STAR["privacy"], **changes.pop("privacy", {})}
    return run(Scenario.from_dict({**STAR, "privacy": privacy, **changes}), folder, jobs=1, progress=False)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["account", "run", *arguments, "--json"]) == 0
    tree: dict[str, Any] = json.loads(capsys.readouterr().out)
    return tree


def column(tree: dict[str, Any], name: str) -> list[float]:
    return [float(str(row[name]).replace(".inf", "inf")) for row in tree["agents"]]


def test_it_says_what_the_ledger_says_and_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = made(tmp_path / "run", sweep={"privacy.epsilon": [1, 10], "privacy.scale_records": [1, 3]})
    tree = told(capsys, str(tmp_path / "run"))
    assert tree["delta"] == 1e-5
    ledger = result.ledger.sort_values(["cell", "replica", "agent"])
    for name in ("basic", "kov"):
        np.testing.assert_allclose(column(tree, f"epsilon_{name}"), ledger[f"epsilon_{name}"], rtol=1e-12)
    np.testing.assert_array_equal(column(tree, "releases"), ledger["releases"])
    assert (np.array(column(tree, "epsilon_pld")) <= np.array(column(tree, "epsilon_kov")) * (1 + 1e-9)).all()
    scaled = [row["flags"] for row in tree["agents"] if row["cell"] in (1, 3)]
    assert all("scaled_records" in flags for flags in scaled)
    one = told(capsys, str(tmp_path / "run"), "--cell", "2", "--epsilon", "1e9", "--accountant", "basic")
    assert [row["cell"] for row in one["agents"]] == [2] * 6
    assert column(one, "delta_basic") == [0.0] * 6


def test_gaussian_releases_of_a_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = {
        "network": {"topology": {"kind": "ring", "agents": 4}, "exchange": "broadcast"},
        "data": {
            "source": {"kind": "linear-classification", "dimension": 3, "points": 10},
            "redraw": "never",
        },
        "learning": {
            "algorithm": {"kind": "coordinate-descent", "mu": 1.0, "updates_per_agent": 8},
            "loss": "logistic",
            "regularizer": {"l2": "inverse-size"},
        },
        "record": {"metrics": ["objective_gap"], "every": 30},
    }
    result = made(
        tmp_path / "run",
        privacy={
            "mechanism": "gaussian",
            "sensitivity": {"kind": "clip", "norm": "l2", "bound": 1.0},
            "allocation": {"kind": "cap", "releases": 5},
            "accountant": "gaussian",
        },
        **graph,
    )
    tree = told(capsys, str(tmp_path / "run"))
    ledger = result.ledger.sort_values(["cell", "replica", "agent"])
    np.testing.assert_allclose(column(tree, "epsilon_gaussian"), ledger["epsilon_gaussian"], rtol=1e-12)
    assert "basic" in tree["not_able"]


def test_what_guarantees_nothing_costs_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    declared = {"sensitivity": {"kind": "declared", "bound": 1e-3}}
    result = made(tmp_path / "run", privacy=declared)
    assert result.ledger["bound_violated"].all()
    tree = told(capsys, str(tmp_path / "run"))
    assert set(column(tree, "epsilon_basic")) == {np.inf}
    assert set(column(tree, "epsilon_pld")) == {np.inf}
    assert all("bound_violated" in row["flags"] for row in tree["agents"])


def test_a_table_of_agents_who_are_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path / "run")
    assert main(["account", "run", str(tmp_path / "run"), "--accountant", "basic"]) == 0
    printed = capsys.readouterr().out
    assert "ε of agents' real records at δ = 1e-05; the most over replicas" in printed
    assert "ε basic" in printed
    assert "data_dependent_step" in printed


def test_agents_that_spent_the_same_share_a_row_and_each_part_of_a_table_names_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = made(tmp_path / "run", privacy={"epsilon": np.inf})
    made_by = result.ledger.groupby("agent")["releases"].max()
    assert made_by.nunique() > 1
    assert main(["account", "run", str(tmp_path / "run"), "--delta", "1e-5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    heads = [line for line in lines if line.startswith("cell ") and ("ε " in line or "flags" in line)]
    rows = [line for line in lines if f"{made_by.min()}–{made_by.max()}" in line]
    assert len(rows) == 1, lines
    assert len(heads) == 2
    assert all(head.startswith("cell  agents  ") for head in heads), lines


def test_numbers_in_few_words() -> None:
    assert ranges([0, 1, 2, 5, 7, 8]) == "0–2, 5, 7–8"
    assert ranges([4]) == "4"
    assert ranges(range(0, 40, 2)) == "0, 2, 4, 6, 8, … (20 in all)"


def test_bad_input_ends_in_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path / "run", privacy={"delta": None, "accountant": "basic"})
    for arguments, message in (
        ([str(tmp_path / "nowhere")], "there is no such run folder"),
        ([str(tmp_path / "run")], "give --delta or --epsilon, since the run has no δ"),
        ([str(tmp_path / "run"), "--delta", "2"], "--delta: must be"),
        (
            [str(tmp_path / "run"), "--delta", "1e-5", "--cell", "1"],
            "cell: must be from 0 to 0, got 1",
        ),
        (
            [str(tmp_path / "run"), "--delta", "1e-5", "--accountant", "gaussian"],
            "gaussian cannot account for",
        ),
    ):
        assert main(["account", "run", *arguments]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert message in captured.err


def test_a_run_whose_data_changed_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pandas as pd

    result = made(tmp_path / "run", privacy={"accountant": "basic"})
    ledger = result.ledger.copy()
    ledger.loc[0, "releases"] += 1
    path = tmp_path / "run" / "ledger.parquet"
    pd.DataFrame(ledger).to_parquet(path)
    assert main(["account", "run", str(tmp_path / "run")]) == 2
    assert "ledger.parquet: damaged, or changed by another program" in capsys.readouterr().err
    described = manifest.read(tmp_path / "run")
    files = described.files | {"ledger.parquet": print_of(path)}
    manifest.write(tmp_path / "run", replace(described, files=files))
    assert main(["account", "run", str(tmp_path / "run")]) == 2
    assert "are not those of the ledger" in capsys.readouterr().err
