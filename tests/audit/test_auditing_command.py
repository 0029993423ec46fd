"""The command ``p2psim audit``."""

import json
from pathlib import Path

import pytest
from graph_cases import graph_tree
from ruamel.yaml import YAML
from small_study import tree as star_tree

from p2psim.cli.main import main
from p2psim.privacy.plan import Plan


@pytest.fixture
def star(tmp_path: Path) -> str:
    path = tmp_path / "star.yaml"
    YAML(typ="safe").dump(star_tree(), path)
    return str(path)


@pytest.fixture
def graph(tmp_path: Path) -> str:
    path = tmp_path / "graph.yaml"
    YAML(typ="safe").dump(graph_tree(), path)
    return str(path)


def test_it_shows_claims_and_says_what_it_changed(star: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", star, "--samples", "500"]) == 0
    shown = capsys.readouterr()
    for told in ("claimed ε", "ε at least", "stands", "500 runs", "loss of 1 at most", "probability 1e-06"):
        assert told in shown.out
    assert "note: of an agent's releases the first were looked at" in shown.err


def test_a_refuted_claim_is_exit_code_one_and_says_why(
    graph: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = "privacy.sensitivity={kind: as-printed, norm: l2, bound: 1.0}"
    assert main(["audit", graph, "--set", wrong, "--samples", "500"]) == 1
    shown = capsys.readouterr()
    assert "refuted: agent 0 of cell 0: a record moves more than claimed: 1.4" in shown.err


def test_json_holds_everything(star: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", star, "--samples", "500", "--gamma", "0.001", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["samples"], told["gamma"], told["stands"]) == (500, 0.001, True)
    (one,) = told["audited"]
    assert one["cells"] == [0, 1]
    assert one["faults"] == []
    # Two canaries, all releases and one alone, three thresholds each.
    assert len(one["sets"]) == 12
    assert all(part["shown"] <= part["claimed"] for part in one["sets"])


def test_releases_beyond_the_plan_are_told_with_their_number(
    graph: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Plan, "limits", property(lambda plan: plan.releases + 1))
    assert main(["audit", graph, "--samples", "100"]) == 1
    assert "more releases than claimed: 5 or more instead of 4" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--samples", "3"], ["--gamma", "2"], ["--replica", "-1"]])
def test_numbers_out_of_range_are_bad_input(
    star: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", star, *arguments]) == 2
    assert capsys.readouterr().out == ""


def test_nothing_to_audit_is_no_failure(star: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", star, "--set", "privacy={mechanism: none}", "--set", "sweep={}"]) == 0
    assert "nothing was audited" in capsys.readouterr().err
