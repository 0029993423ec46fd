"""Between graphs, gaps are compared per agent and with normalised weights."""

from pathlib import Path

import numpy as np
import pytest

import p2psim
from p2psim.cli.main import main
from p2psim.scenario.notices import comparability


def scenario(tmp_path: Path, scale: float, sweep: str = "") -> Path:
    """Two links of weights 1 and 2, times the scale."""
    (tmp_path / f"{scale}.csv").write_text(f"0,{scale},0\n{scale},0,{2 * scale}\n0,{2 * scale},0\n")
    path = tmp_path / f"{scale}.yaml"
    path.write_text(
        f"""
name: gaps
network: {{topology: {{kind: file, path: {scale}.csv}}, exchange: broadcast}}
data: {{source: {{kind: linear-regression, points: 12, dimension: 2}}}}
learning:
  algorithm: {{kind: coordinate-descent, mu: 1.0, updates_per_agent: 5}}
  loss: squared
  regularizer: {{l2: 0.1}}
privacy: {{mechanism: none}}
record: {{metrics: [objective, objective_gap, mean_objective_gap], every: 1, events: true}}
{sweep}
"""
    )
    return path


@pytest.mark.parametrize("scale", [0.25, 1.0, 8.0])
def test_the_mean_gap_does_not_grow_with_the_weights(tmp_path: Path, scale: float) -> None:
    """Q_L is linear in the weights, Σ_i D_ii = 6 here, and coordinate descent does not see their scale."""
    values = {}
    for factor in (1.0, scale):
        out = tmp_path / f"run{factor}"
        result = p2psim.run(p2psim.Scenario.load(scenario(tmp_path, factor)), out, jobs=1, progress=False)
        of = result.metrics.pivot_table(index="step", columns="metric", values="value")
        np.testing.assert_allclose(of["mean_objective_gap"], of["objective_gap"] / (6 * factor), rtol=1e-12)
        values[factor] = of
        assert main(["verify", str(out)]) == 0
    np.testing.assert_allclose(
        values[scale]["mean_objective_gap"], values[1.0]["mean_objective_gap"], rtol=1e-8, atol=1e-12
    )


def test_only_sums_over_graphs_that_differ_are_noted() -> None:
    assert "objective_gap grows with" in comparability(["objective_gap"], ["network.topology"], {})[0]
    assert "mean_objective_gap" in comparability(["objective_gap", "x"], ["network.topology.degree"], {})[0]
    assert comparability(["mean_objective_gap", "test_accuracy"], ["network.topology"], {}) == []
    assert comparability(["objective_gap"], ["privacy.epsilon"], {}) == []
    of_one_model = {"learning": {"algorithm": {"kind": "decentralised-sgd"}}}
    assert comparability(["objective_gap"], ["network.topology"], of_one_model) == []


def test_run_notes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = "sweep: {network.topology: [ring, complete]}"
    text = scenario(tmp_path, 1.0, sweep).read_text().replace("points: 12", "agents: 4, points: 12")
    path = tmp_path / "swept.yaml"
    path.write_text(text.replace("{kind: file, path: 1.0.csv}", "ring"))
    assert main(["run", str(path), "--out", str(tmp_path / "swept"), "--jobs", "1"]) == 0
    assert "note: objective and objective_gap grow with the number of links" in capsys.readouterr().out


def test_check_and_compare_note_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before the run, and wherever cells of different graphs are set side by side; not of cells of one graph."""
    text = scenario(tmp_path, 1.0).read_text().replace("points: 12", "agents: 4, points: 12")
    path = tmp_path / "swept.yaml"
    path.write_text(
        text.replace("{kind: file, path: 1.0.csv}", "ring")
        + "replicas: 2\nsweep: {network.topology: [ring, complete], learning.algorithm.mu: [0.5, 1.0]}\n"
    )
    noted = "note: objective and objective_gap grow with the number of links"

    def said(*arguments: str) -> bool:
        assert main([*arguments]) == 0
        return noted in capsys.readouterr().out

    assert said("check", str(path))
    swept, other = str(tmp_path / "swept"), str(tmp_path / "other")
    assert said("run", str(path), "--out", swept)
    result = p2psim.Result.load(swept)
    ring = str(result.summary()["network.topology"].iloc[0])
    assert said("compare", swept, "--reference", f"network.topology={ring}")
    assert not said("compare", swept, "--reference", "learning.algorithm.mu=0.5")
    assert not said("compare", swept, swept)
    # One run has one graph, and the other another.
    one = ["--set", "sweep={}", "--set"]
    main(["run", str(path), "--out", other, *one, "network.topology=complete"])
    main(["run", str(path), "--out", f"{other}-ring", *one, "network.topology=ring"])
    assert said("compare", other, f"{other}-ring")
    assert not said("compare", other, other)
