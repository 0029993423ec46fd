"""An algorithm from outside p2psim, used from a scenario file by every way in."""

import json
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from plugin_cases import PARTS, PLUGINS, p2psim, run_alone, started, within


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_alone(PLUGINS / "gossip_sgd.yaml", tmp_path_factory)


@pytest.fixture(scope="module")
def finished(alone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("gossip") / "run"
    done = p2psim("run", str(PLUGINS / "gossip_sgd.yaml"), "--out", str(out), "--jobs", "2", *PARTS)
    assert done.returncode == 0, done.stderr
    return out


def test_it_is_verified_accounted_for_and_kept_in_the_manifest(finished: Path) -> None:
    assert within("verify", str(finished), *PARTS).returncode == 0
    (origin,) = json.loads((finished / "manifest.json").read_text())["made_by"]["parts"].values()
    assert origin["used"] == ["p2psim_example_parts.gossip_sgd:GossipSgd"]
    ledger = pd.read_parquet(finished / "ledger.parquet")
    assert (ledger["releases"] <= 5).all()
    assert (ledger["epsilon_basic"] <= 50 * (1 + 1e-9)).all()
    assert not ledger["not_private"].any()


def test_the_same_bytes_with_one_worker(finished: Path, alone: Path) -> None:
    for name in ("metrics.parquet", "ledger.parquet", "events.parquet", "scenario.yaml"):
        assert (alone / name).read_bytes() == (finished / name).read_bytes()


@pytest.mark.verification
def test_the_same_bytes_from_workers_of_dask(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    scenario = str(PLUGINS / "gossip_sgd.yaml")
    done = started("run", scenario, "--out", str(out), "--executor", "dask", "--jobs", "2", *PARTS)
    assert done.returncode == 0, done.stderr
    for name in ("metrics.parquet", "ledger.parquet", "events.parquet", "scenario.yaml"):
        assert (out / name).read_bytes() == (finished / name).read_bytes()
    assert within("verify", str(out), *PARTS).returncode == 0


def test_list_and_schema_know_it() -> None:
    listed = json.loads(within("list", "--json", *PARTS).stdout)
    assert ("learning.algorithm", "gossip-sgd") in {(part["key"], part["name"]) for part in listed}
    schema = json.loads(within("schema", *PARTS).stdout)
    assert {"learning_rate", "decay"} < set(schema["$defs"]["GossipSgd"]["properties"])
    assert "GossipSgd" not in json.loads(within("schema").stdout)["$defs"]


def test_a_changed_number_is_found(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    subprocess.run(["cp", "-r", str(finished), str(out)], check=True)
    table = pd.read_parquet(out / "metrics.parquet")
    table.loc[table.index[table["metric"] == "objective"][2], "value"] += 1e-6
    table.to_parquet(out / "metrics.parquet", index=False)
    assert within("verify", str(out), *PARTS).returncode == 1


@pytest.mark.parametrize(
    ("command", "changes", "said"),
    [
        (
            "forecast",
            (),
            "forecasts on graphs cover coordinate-descent, averaging, decentralised-sgd; got gossip-sgd",
        ),
        ("audit", (), "releases of gossip-sgd were not audited"),
        (
            "check",
            ("network.exchange=broadcast",),
            "gossip-sgd needs gossip: it updates a model when it hears another",
        ),
        ("check", ("privacy.when_spent=anchored",), "gossip-sgd has no anchor; give silent or coast"),
        ("check", ("learning.algorithm.learning_rate=-1",), "learning_rate"),
    ],
)
def test_what_does_not_know_it_refuses_in_one_message(
    command: str, changes: tuple[str, ...], said: str
) -> None:
    settings = [word for change in changes for word in ("--set", change)]
    done = within(command, str(PLUGINS / "gossip_sgd.yaml"), *settings, *PARTS)
    assert said in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode in ((2,) if command != "audit" else (0, 1, 2))
