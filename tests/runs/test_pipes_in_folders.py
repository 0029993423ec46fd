"""A pipe in the place of a file of a run folder is refused at once: nobody would ever write into it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import small_study as small

import p2psim

FILES = (
    "events.parquet",
    "ledger.parquet",
    "metrics.parquet",
    "agents.parquet",
    "noise.npz",
    "scenario.yaml",
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("pipes") / "run"
    p2psim.run(p2psim.Scenario.from_dict(small.tree(replicas=1)), out, jobs=1, progress=False)
    return out


@pytest.mark.parametrize("name", FILES)
def test_verify_refuses_a_pipe(name: str, finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    if not (folder / name).exists():
        pytest.skip(f"this run has no {name}")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    done = subprocess.run(
        [sys.executable, "-m", "p2psim", "verify", str(folder)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert f"{name}: is not a file" in done.stderr
