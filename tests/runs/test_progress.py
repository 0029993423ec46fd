"""Progress for machines: every line is true, and the last one says how it ended."""

import json
from pathlib import Path

import pytest
import small_study as small
from ruamel.yaml import YAML

import p2psim
from p2psim.cli.main import main
from p2psim.core.errors import InputError
from p2psim.runs import batches, progress
from p2psim.runs.progress import ProgressCount
from p2psim.simulation import simulate


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    found = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    return [line for line in found if "done" in line]


@pytest.mark.parametrize("jobs", [1, 2])
def test_lines_add_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    monkeypatch.setattr(batches, "BATCH_SECONDS", 0.001)
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    path = tmp_path / "study.yaml"
    with open(path, "w") as stream:
        YAML(typ="safe").dump(small.tree(replicas=10), stream)
    assert (
        main(["run", str(path), "--out", str(tmp_path / "run"), "--jobs", str(jobs), "--progress", "json"])
        == 0
    )
    told = lines(capsys)
    assert (told[0]["done"], told[0]["left"], told[0]["workers"]) == (0, None, {})
    assert [line["done"] for line in told] == sorted(line["done"] for line in told)
    for line in told:
        assert sum(line["workers"].values()) == line["done"]
        assert line["total"] == 20
        assert line["failed"] == 0
    assert (told[-1]["done"], told[-1]["left"]) == (20, 0)
    assert len(told[-1]["workers"]) <= jobs


def test_failures_and_rounds_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = simulate.simulate

    def poisoned(scenario, replica, *rest):
        if replica == 1:
            raise ValueError("poisoned")
        return whole(scenario, replica, *rest)

    monkeypatch.setattr(simulate, "simulate", poisoned)
    monkeypatch.setattr(simulate, "simulated_at_once", lambda *given: 1)
    rule = {"until": {"metric": "relative_fitness", "width": 1e-9}, "least": 4, "most": 9}
    with pytest.raises(p2psim.core.errors.SimulationError):
        p2psim.run(small.scenario(replicas=rule), tmp_path / "run", progress="json")
    told = lines(capsys)
    # The first look is at 4 replicas of 2 cells; what comes after it is known only then.
    assert told[0]["total"] == 8
    assert (told[-1]["done"], told[-1]["total"], told[-1]["failed"]) == (18, 18, 2)


def test_rate_leaves_out_the_first_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    tally = ProgressCount(50)
    now[0] += 30  # compiling
    tally.add(1, 0, "a", 50)
    assert tally.rate() == pytest.approx(1 / 30)
    now[0] += 2
    tally.add(4, 1, "b", 50)
    assert tally.rate() == pytest.approx(4 / 2)
    tree = tally.as_tree()
    assert (tree["done"], tree["failed"], tree["left"], tree["seconds"]) == (5, 1, 22.5, 32.0)
    assert tree["workers"] == {"a": 1, "b": 4}


def test_nothing_is_shown_where_nobody_looks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    p2psim.run(small.scenario(), tmp_path / "a")
    p2psim.run(small.scenario(), tmp_path / "b", progress="none")
    assert capsys.readouterr().err == ""
    with pytest.raises(InputError, match="unknown progress 'jsn'; known: bar, json, none"):
        p2psim.run(small.scenario(), tmp_path / "c", progress="jsn")
