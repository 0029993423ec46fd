"""What a run says of bounds that its data broke."""

import pyarrow as pa
from star_cases import scenario

import p2psim
from p2psim.runs.summary import broken_bounds


def test_one_line_a_cell_names_who_broke_the_bound_most():
    ledger = pa.table(
        {
            "cell": [0, 0, 1, 1, 1, 1, 2],
            "replica": [0, 0, 0, 0, 1, 1, 0],
            "agent": [0, 1, 0, 1, 0, 1, 0],
            "violation_step": [-1, -1, 7, -1, 3, 12, 0],
            "violation_size": [0.0, 0.0, 1.5, 0.0, 2.5, 1.2, 1.01],
        }
    )
    assert broken_bounds(ledger) == [
        "cell 1: the claimed bound was broken by 2 agents in 2 replicas; most by agent 0 of replica 1, "
        "2.5 times the bound, first at step 3",
        "cell 2: the claimed bound was broken by 1 agent in 1 replica; most by agent 0 of replica 0, "
        "1.01 times the bound, first at step 0",
    ]


def test_rows_of_earlier_versions_say_nothing():
    assert broken_bounds(pa.table({"cell": [0], "agent": [0], "bound_violated": [True]})) == []
    some = {"cell": [0], "replica": [0], "agent": [0], "violation_step": [None], "violation_size": [None]}
    kinds = pa.schema({name: pa.float64() if name == "violation_size" else pa.int64() for name in some})
    assert broken_bounds(pa.table(some, kinds)) == []


def test_a_run_says_it(tmp_path, capsys):
    from p2psim.cli.main import main

    one = scenario({"privacy.sensitivity": {"kind": "declared", "bound": 1e-3}, "replicas": 2})
    path = tmp_path / "small.yaml"
    path.write_text(one.to_yaml())
    assert main(["run", str(path), "--out", str(tmp_path / "run"), "--jobs", "1"]) == 0
    said = capsys.readouterr().out
    worst = p2psim.Result.load(tmp_path / "run").ledger.sort_values("violation_size").iloc[-1]
    assert "note: cell 0: the claimed bound was broken by 3 agents in 2 replicas" in said
    assert f"most by agent {int(worst['agent'])} of replica {int(worst['replica'])}, " in said
    assert (
        f"{worst['violation_size']:.3g} times the bound, first at step {int(worst['violation_step'])}" in said
    )
