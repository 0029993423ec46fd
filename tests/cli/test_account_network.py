"""``p2psim account network``: what it prints, draws and refuses."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.special import log_ndtr

from p2psim.cli.main import main

GRID = ["account", "network", "--topology", "{kind: grid, shape: [3, 3]}", "--steps", "2"]
AT = ["--sigma", "2", "--sensitivity", "2", "--delta", "1e-5"]


def delta_of(mu: float, epsilon: float) -> float:
    """Exact curve of one Gaussian release (Balle and Wang 2018, theorem 8), written down once more."""
    first = math.exp(log_ndtr(mu / 2 - epsilon / mu))
    return first - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))


def tree_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_grid_in_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    tree = tree_of(capsys, *GRID, *AT)
    share, epsilon = np.array(tree["share"]), np.array(tree["epsilon"])
    np.testing.assert_allclose(share[0], [1, 1, 41 / 57, 1, 32 / 57, 0, 41 / 57, 0, 0], atol=1e-13)
    for part, cost in zip(share[0], epsilon[0], strict=True):
        if part < 1e-9:
            assert cost == 0
        else:
            assert delta_of(math.sqrt(part), cost) == pytest.approx(1e-5, rel=1e-6)
            assert delta_of(math.sqrt(part), cost) <= 1e-5 * (1 + 1e-9)
    assert [row["pairs"] for row in tree["share_by_distance"]] == [24, 28, 16, 4]
    # Only the ratio of sensitivity and noise matters.
    other = tree_of(capsys, *GRID, "--sigma", "7", "--sensitivity", "7", "--delta", "1e-5")
    np.testing.assert_allclose(other["epsilon"], epsilon, rtol=1e-12)


def test_a_table_by_distance(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*GRID, *AT]) == 0
    printed = capsys.readouterr().out
    assert "the graph is taken as public" in printed
    assert "ε = 4.377179" in printed
    lines = [line.split() for line in printed.splitlines() if line.strip()[:1].isdigit()]
    assert [line[0] for line in lines] == ["1", "2", "3", "4"]


def test_colluders_learn_no_less_and_are_no_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    alone, together = tree_of(capsys, *GRID, *AT), tree_of(capsys, *GRID, *AT, "--colluders", "8,4")
    assert (np.array(together["share"]) >= np.array(alone["share"]) - 1e-12).all()
    assert sum(row["pairs"] for row in together["share_by_distance"]) == 7 * 6


def test_a_scenarios_own_graph(capsys: pytest.CaptureFixture[str]) -> None:
    star = str(Path(__file__).parents[2] / "scenarios" / "three_banks.yaml")
    tree = tree_of(capsys, "account", "network", star, "--steps", "2", *AT)
    assert tree["agents"] == 4  # three owners and the learner
    np.testing.assert_allclose(np.array(tree["share"])[0], [1, 0.5, 0.5, 1], atol=1e-13)


def test_figures_are_drawn_where_they_are_wanted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = tree_of(capsys, *GRID, *AT, "--out", str(tmp_path / "figures"))
    names = {
        f"network-privacy-{name}.{kind}" for name in ("pairs", "distance") for kind in ("png", "svg", "csv")
    }
    assert {path.name for path in (tmp_path / "figures").iterdir()} == names
    assert {Path(file).name for file in tree["files"]} == names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "2", *AT], "takes a SCENARIO or --topology"),
        (["x.yaml", "--topology", "ring", "--steps", "2", *AT], "takes a SCENARIO or --topology"),
        (["--topology", "rinq", "--steps", "2", *AT], "unknown kind 'rinq'.*did you mean ring"),
        (["--topology", "{kind: ring", "--steps", "2", *AT], "--topology:1:"),
        (
            ["--topology", "{kind: ring, agents: 2}", "--steps", "2", *AT],
            "--topology.agents: this graph takes",
        ),
        (["--topology", "ring", "--steps", "2", *AT], "--topology.agents: "),
        (
            ["--topology", "{kind: ring, agents: 5}", "--steps", "-1", *AT],
            "--steps: must be at least 0, got -1",
        ),
        (
            ["--topology", "{kind: ring, agents: 5}", "--steps", "2", "--sigma", "0", "--delta", "1e-5"],
            "--sigma",
        ),
        (
            ["--topology", "{kind: ring, agents: 5}", "--steps", "2", "--sigma", "1", "--delta", "0"],
            "--delta",
        ),
        (
            ["--topology", "{kind: ring, agents: 5}", "--steps", "2", *AT, "--colluders", "5"],
            r"--colluders: must be from 0 to 4, got 5",
        ),
        (
            ["--topology", "{kind: ring, agents: 5}", "--steps", "2", *AT, "--colluders", "one"],
            "--colluders: agents' numbers",
        ),
        (["nowhere.yaml", "--steps", "2", *AT], "nowhere.yaml"),
    ],
)
def test_bad_input_ends_in_2_and_one_message(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["account", "network", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert re.search(message, captured.err)
