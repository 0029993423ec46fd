"""Runs of one folder on two kinds of BLAS kernels: results differ by rounding at most, and the folder says so."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import small_study as small

import p2psim
from p2psim.simulation.outcome import arithmetic, differing

pytestmark = pytest.mark.blas

#: Every processor of this family has it, and none that CI meets takes it of itself. OpenBLAS may call it Katmai.
OTHER = {**os.environ, "OPENBLAS_CORETYPE": "Prescott"}


def kernels(environment: dict[str, str]) -> dict[str, list[str]]:
    script = "import json\nfrom p2psim.simulation.outcome import arithmetic\nprint(json.dumps(arithmetic()))"
    said = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    found: dict[str, list[str]] = json.loads(said.stdout)
    return found


def plain_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}


def test_names_a_library_and_its_kernel() -> None:
    here = arithmetic()
    assert here["blas"]
    assert all(len(one.split()) >= 2 for one in here["blas"])
    assert differing(json.loads(json.dumps(here))) == ""
    assert "unknown there" in differing(None)


@pytest.mark.verification
def test_a_folder_that_is_continued_on_other_kernels_says_so(tmp_path: Path) -> None:
    usual, other = kernels(plain_environment()), kernels(OTHER)
    if usual == other:
        pytest.skip("this BLAS has kernels of one kind")
    scenario = tmp_path / "small.yaml"
    scenario.write_text(small.scenario(replicas=2).to_yaml(), encoding="utf-8")
    command = [sys.executable, "-m", "p2psim", "run", str(scenario), "--jobs", "1", "--out"]

    def run(out: str, environment: dict[str, str], *more: str) -> str:
        done = subprocess.run(
            [*command, str(tmp_path / out), *more],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stderr

    assert "arithmetic" not in run("mixed", plain_environment())
    said = run("mixed", OTHER, "--replicas", "4")
    assert "other arithmetic" in said
    assert "arithmetic" not in run("usual", plain_environment(), "--replicas", "4")
    assert "arithmetic" not in run("other", OTHER, "--replicas", "4")
    mixed, one, two = (p2psim.Result.load(tmp_path / out) for out in ("mixed", "usual", "other"))
    assert any("other arithmetic" in message for message in mixed.described.warnings)
    assert one.manifest["made_by"]["arithmetic"] == usual
    assert two.manifest["made_by"]["arithmetic"] == other
    values = [result.metrics["value"].to_numpy() for result in (mixed, one, two)]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(values[1], values[2], rtol=1e-9, atol=1e-11)
