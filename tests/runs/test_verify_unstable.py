"""Where a step amplifies rounding, verify says so instead of blaming the run, and still finds what was changed."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import p2psim
from p2psim.cli.main import main
from p2psim.runs.verification import ReplicaCheck, verify_result
from p2psim.scenario.notices import Compared, drift
from p2psim.simulation.check import NUDGE, SLACK, TOLERANCE

SCENARIO = Path(__file__).parents[2] / "scenarios" / "three_banks.yaml"


def run(folder: Path, rho: float) -> p2psim.Result:
    """Three banks of 3,000 records; they are stable up to ρ = 4,032 (h = 3.17)."""
    overrides = ["sweep={}", "privacy.epsilon=1000", "replicas=1", f"learning.algorithm.rho={rho}"]
    return p2psim.run(p2psim.Scenario.load(SCENARIO, overrides), folder, progress=False)


def change(folder: Path, by: float) -> None:
    table = pd.read_parquet(folder / "metrics.parquet")
    place = table.index[table["metric"] == "relative_fitness"][0]
    table.loc[place, "value"] += by
    table.to_parquet(folder / "metrics.parquet")


def test_an_amplified_replica_is_told_and_is_no_failure(tmp_path, capsys):
    run(tmp_path / "run", rho=8000)
    assert main(["verify", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().out
    assert "not comparable: an unstable step amplifies rounding" in printed
    assert "1 simulations recomputed, 1 of them not comparable" in printed
    assert main(["show", str(tmp_path / "run")]) == 0
    assert "none is comparable, since rounding is amplified" in " ".join(capsys.readouterr().out.split())
    assert main(["verify", str(tmp_path / "run"), "--json"]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert (tree["wrong"], tree["not_comparable"]) == (0, 1)
    (row,) = tree["checked"]
    # What one nudge became, and no more than a replay can differ: both models lie in the box.
    assert row["rounding amplified"] * NUDGE * SLACK >= row["largest"] > TOLERANCE


def test_a_stable_replica_is_held_to_the_tolerance(tmp_path):
    result = run(tmp_path / "run", rho=43)
    (checked,) = verify_result(result)
    assert (checked.verdict, checked.drift) == ("right", 0.0)
    for by in (1e-3, 1e-8):
        change(result.path, by)
        (checked,) = verify_result(p2psim.Result.load(result.path))
        # Plain replays part by no more than rounding here, so nothing is excused.
        assert checked.verdict == "wrong"
        assert checked.drift < 1e-12


@pytest.mark.parametrize(
    ("largest", "drifted", "fault", "verdict"),
    [
        (TOLERANCE, 0.0, "", "right"),
        (1e-6, 1e-6, "", "not comparable"),
        (1e-6, 1e-6 / SLACK / 2, "", "wrong"),
        (np.inf, np.inf, "time goes back", "wrong"),
        (np.inf, 1.0, "", "wrong"),
    ],
)
def test_verdicts(largest, drifted, fault, verdict):
    assert ReplicaCheck(0, 0, 10, largest, drifted, fault).verdict == verdict


def test_differences_are_relative_and_undefined_ones_are_infinite():
    one = Compared(np.array([1.0, 4.0]), np.array([1.5, 4.0]), np.array([2.0, 1.0]))
    assert one.difference == 0.25
    assert Compared(np.array([np.inf, 1.0]), np.array([np.inf, 1.0]), 1.0).difference == 0
    assert Compared(np.array([np.nan]), np.array([1.0]), 1.0).difference == np.inf
    assert Compared(np.zeros(2), np.zeros(3), 1.0).difference == np.inf
    assert Compared(np.zeros(0), np.zeros(0), 1.0).difference == 0
    other = Compared(np.array([9.0, 9.0]), np.array([1.0, 7.0]), np.array([1.0, 1.0]))
    assert drift([one], [other]) == 3.0
