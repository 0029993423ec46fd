"""A training algorithm from outside p2psim, used from a scenario file."""

import json
from pathlib import Path

import pandas as pd
import pytest
from plugin_cases import PARTS, PLUGINS, p2psim, within

SCENARIO = str(PLUGINS / "server_momentum.yaml")


def test_it_is_run_by_two_workers_verified_and_accounted_for(tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = p2psim("run", SCENARIO, "--out", str(out), "--jobs", "2", *PARTS)
    assert done.returncode == 0, done.stderr
    assert within("verify", str(out), *PARTS).returncode == 0
    (origin,) = json.loads((out / "manifest.json").read_text())["made_by"]["parts"].values()
    assert origin["used"] == ["p2psim_example_parts.server_momentum:ServerMomentum"]
    ledger = pd.read_parquet(out / "ledger.parquet")
    # Two gradients an answer, which are as many queries; no more than the cap.
    assert (ledger["releases"] % 2 == 0).all()
    assert (ledger["releases"] > 0).all()
    assert (ledger["releases"] <= 20).all()
    assert (ledger["epsilon_basic"] <= 50 * (1 + 1e-9)).all()
    assert not ledger["not_private"].any()


@pytest.mark.parametrize(
    ("command", "changes", "said"),
    [
        ("audit", (), "releases of server-momentum were not audited"),
        ("check", ("network.exchange=poll",), "server-momentum needs round, got poll"),
        ("check", ("network.topology=ring",), "server-momentum needs a star, got ring"),
        ("check", ("learning.algorithm.step=-1",), "learning.algorithm.step: "),
    ],
)
def test_what_does_not_know_it_refuses_in_one_message(
    command: str, changes: tuple[str, ...], said: str
) -> None:
    settings = [word for change in changes for word in ("--set", change)]
    done = within(command, SCENARIO, *settings, *PARTS)
    assert said in done.stdout + done.stderr
    assert command == "audit" or done.returncode == 2
    assert "Traceback" not in done.stderr
