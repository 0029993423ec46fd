"""A run on a graph is recomputed from its folder to 1e-12, and what was changed in it is found."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from graph_cases import graph_scenario

import p2psim
from p2psim.core.errors import SimulationError
from p2psim.runs.verification import prepared_data, stream_of, verify_result
from p2psim.simulation.algorithms import adapter_of
from p2psim.simulation.workspace import write_archive

CASES = {
    "private": {
        "replicas": 2,
        "learning.baselines": ["local", "global"],
        "record.metrics": [
            "vectors_sent",
            "lambda2",
            "effective_neighbours_90",
            "objective",
            "objective_gap",
            "test_accuracy",
            "worst_decile_accuracy",
        ],
        "record.per_agent": ["test_accuracy"],
        "record.by": "group",
        "sweep": {"privacy.when_spent": ["coast", "anchored"]},
    },
    "private start, lossy": {
        "replicas": 2,
        "data.redraw": "never",
        "learning.algorithm.start": {"kind": "private", "epsilon": 2.0},
        "network.channel": {"latency": {"exponential": 1.0}, "loss": 0.3},
        "network.exchange": {"kind": "gossip", "mode": "push-pull"},
        "record.every": {"time": 1.0},
    },
    "averaging": {
        "learning.algorithm": {"kind": "averaging", "commits": 40},
        "network.exchange": "gossip",
        "privacy": {"mechanism": "none"},
    },
    "links that wake": {
        "learning.algorithm": {"kind": "gossip-admm", "mu": 0.5, "rho": 1.0, "inner": 1, "commits": 40},
        "network.exchange": {"kind": "gossip", "mode": "edge"},
    },
    "nothing but models": {"record.metrics": []},
    # Models change between commits, and are recorded there.
    "links that wake, late, by time": {
        "learning.algorithm": {"kind": "gossip-admm", "mu": 0.5, "rho": 1.0, "inner": 1, "time": 8.0},
        "network.exchange": {"kind": "gossip", "mode": "edge"},
        "network.channel": {"latency": {"uniform": [0.2, 0.9]}},
        "record.every": {"time": 0.3},
    },
    **{
        f"agents that come back, {rejoin}": {
            "learning.algorithm": {"kind": "coordinate-descent", "mu": 0.5, "time": 8.0},
            "network.availability": {"kind": "renewal", "up": 2.0, "down": 2.0, "rejoin": rejoin},
            "record.every": {"time": 0.3},
        }
        for rejoin in ("reset", "fetch")
    },
}


def run(folder: Path, changes: dict) -> p2psim.Result:
    return p2psim.run(graph_scenario(changes), folder, progress=False)


def rewrite(path: Path, arrays: dict[str, np.ndarray]) -> None:
    with path.open("wb") as stream:
        write_archive(stream, arrays.items())


@pytest.mark.parametrize("case", CASES)
def test_recomputed_to_rounding(case, tmp_path):
    result = run(tmp_path / "run", CASES[case])
    checked = verify_result(result)
    assert checked
    assert not any(one.fault for one in checked)
    assert max(one.largest for one in checked) < 1e-12


@pytest.mark.parametrize(
    "metric",
    ["objective", "objective_gap", "test_accuracy", "worst_decile_accuracy", "test_accuracy[small]", "agent"],
)
def test_a_changed_metric_is_found(metric, tmp_path):
    result = run(tmp_path / "run", CASES["private"])
    table = pd.read_parquet(result.path / "metrics.parquet")
    mine = (table["metric"] == ("test_accuracy" if metric == "agent" else metric)) & (
        table["model"] == "main"
    )
    mine &= table["agent"].notna() if metric == "agent" else table["agent"].isna()
    place = table.index[mine & (table["replica"] == 1) & (table["step"] > 0)][0]
    table.loc[place, "value"] += 1e-6
    table.to_parquet(result.path / "metrics.parquet")
    checked = verify_result(p2psim.Result.load(result.path))
    assert max(one.largest for one in checked) > 1e-8
    assert [one.largest < 1e-12 for one in checked].count(False) == 1


@pytest.mark.parametrize(
    ("metric", "model"),
    [
        ("vectors_sent", "main"),
        ("lambda2", "main"),
        ("effective_neighbours_90", "main"),
        ("objective", "local"),
        ("test_accuracy[small]", "global"),
    ],
)
def test_what_does_not_follow_from_the_path_is_checked_too(metric, model, tmp_path):
    result = run(tmp_path / "run", CASES["private"])
    table = pd.read_parquet(result.path / "metrics.parquet")
    mine = (table["metric"] == metric) & (table["model"] == model) & (table["replica"] == 1)
    place = table.index[mine][-1]
    table.loc[place, "value"] += 1e-6 * max(1.0, abs(table.loc[place, "value"]))
    table.to_parquet(result.path / "metrics.parquet")
    checked = verify_result(p2psim.Result.load(result.path))
    assert [one.largest < 1e-12 for one in checked].count(False) == 1
    assert max(one.largest for one in checked) > 1e-8


@pytest.mark.parametrize("every", [7, {"time": 0.8}])
@pytest.mark.parametrize("case", ["private start, lossy", "averaging", "links that wake"])
def test_vectors_sent_are_recounted(case, every, tmp_path):
    changes = {**CASES[case], "record.metrics": ["vectors_sent"], "record.every": every}
    result = run(tmp_path / "run", changes)
    assert max(one.largest for one in verify_result(result)) < 1e-12


def test_more_releases_than_allowed_are_found(tmp_path):
    """A run whose scenario allows fewer than were made."""
    result = run(tmp_path / "run", {"privacy.allocation": {"kind": "cap", "releases": 4}})
    stream, case = stream_of(result.events), prepared_data(result, result.scenario, (0, 0))
    staged = adapter_of(result.scenario).cell(result.scenario, case, 0)
    staged.setup.checker().check(stream)
    fewer = graph_scenario({"privacy.allocation": {"kind": "cap", "releases": 3}})
    staged = adapter_of(fewer).cell(fewer, case, 0)
    with pytest.raises(SimulationError, match="more than 3 releases"):
        staged.setup.checker().check(stream)


def test_a_shift_of_all_gaps_is_found(tmp_path):
    result = run(tmp_path / "run", {"record.metrics": ["objective_gap"]})
    table = pd.read_parquet(result.path / "metrics.parquet")
    table["value"] += 1e-6
    table.to_parquet(result.path / "metrics.parquet")
    assert max(one.largest for one in verify_result(p2psim.Result.load(result.path))) > 1e-8


@pytest.mark.parametrize("case", ["private", "nothing but models"])
def test_a_changed_model_is_found(case, tmp_path):
    result = run(tmp_path / "run", CASES[case])
    with np.load(result.path / "models.npz") as archive:
        models = {name: archive[name].copy() for name in archive.files}
    name = next(name for name in models if models[name].ndim == 3)
    models[name][3, 4, 1] += 1e-6
    rewrite(result.path / "models.npz", models)
    checked = verify_result(p2psim.Result.load(result.path))
    assert max(one.largest for one in checked) > 1e-8


def test_changed_noise_is_found(tmp_path):
    result = run(tmp_path / "run", {})
    with np.load(result.path / "noise.npz") as archive:
        noise = {name: archive[name].copy() for name in archive.files}
    noise[next(iter(noise))][2, 0] += 1e-4
    rewrite(result.path / "noise.npz", noise)
    assert max(one.largest for one in verify_result(p2psim.Result.load(result.path))) > 1e-8


def test_the_command_says_so(tmp_path, capsys):
    from p2psim.cli.main import main

    result = run(tmp_path / "run", {})
    assert main(["verify", str(result.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
