"""A mechanism, an allocation and an accountant from outside p2psim, used from a scenario file by every way in."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from plugin_cases import PARTS, PLUGINS, p2psim, within


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("private") / "run"
    done = p2psim("run", str(PLUGINS / "private.yaml"), "--out", str(out), "--jobs", "2", *PARTS)
    assert done.returncode == 0, done.stderr
    return out


def test_the_ledger_has_a_column_of_the_accountant(finished: Path) -> None:
    ledger = pd.read_parquet(finished / "ledger.parquet")
    gaussian = ledger[ledger["cell"] == 0]
    np.testing.assert_allclose(gaussian["epsilon_gdp"], gaussian["epsilon_gaussian"], rtol=1e-6)
    assert (gaussian["delta_gdp"] == 1e-6).all()
    assert ledger.loc[ledger["cell"] == 1, "epsilon_gdp"].isna().all()
    # Six releases of shares ½ … 1/32, 1/32 of ε = 10; who makes all of them spends it all.
    staircase = ledger[ledger["cell"] == 1]
    wanted = 10 * np.where(staircase["releases"] == 6, 1.0, 1 - 0.5 ** staircase["releases"])
    np.testing.assert_allclose(staircase["epsilon_basic"], wanted, rtol=1e-9)


def test_the_parts_are_verified_recounted_and_kept_in_the_manifest(finished: Path) -> None:
    done = within("verify", str(finished), *PARTS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert within("account", "run", str(finished), "--delta", "1e-5", *PARTS).returncode == 0
    (origin,) = json.loads((finished / "manifest.json").read_text())["made_by"]["parts"].values()
    used = ("gdp:GaussianDP", "halving:Halving", "staircase:Staircase")
    assert origin["used"] == [f"p2psim_example_parts.{name}" for name in used]


@pytest.mark.parametrize("command", [("verify",), ("account", "run")], ids=lambda words: "-".join(words))
def test_readers_without_them_say_which_are_missing(command: tuple[str, ...], finished: Path) -> None:
    done = within(*command, str(finished))
    assert done.returncode == 1
    assert "unknown kind 'halving'; known: horizon, cap, " in done.stderr
    assert "unknown accountant 'gdp'; known: basic, advanced, " in done.stderr
    assert "--parts p2psim_example_parts" in done.stderr
    assert "the hashes of its" in done.stderr


def test_the_calculator_takes_the_accountant() -> None:
    words = (
        "account releases --noise gaussian --loss 0.3x20 --delta 1e-5 --accountant gdp --accountant gaussian"
    )
    found = within(*words.split(), "--json", *PARTS)
    assert found.returncode == 0, found.stderr
    told = json.loads(found.stdout)
    assert {row["accountant"] for row in told["accountants"]} == {"gdp", "gaussian"}
    unknown = within(*words.split())
    assert unknown.returncode == 2
    assert "--accountant: unknown accountant 'gdp'; known: basic, advanced, " in unknown.stderr
    refused = within(*words.replace("gaussian --loss", "laplace --loss").split(), *PARTS)
    assert refused.returncode == 2
    assert "gdp cannot account for laplace releases" in refused.stderr
