"""The verdict of a verification stays in the run folder, holds for the files that were verified, and is said."""

import json
import shutil
from pathlib import Path

import pytest
import small_study as small

import p2psim
from p2psim.cli.main import main
from p2psim.core.errors import SimulationError
from p2psim.report.page import page
from p2psim.report.page.encoding import unpacked
from p2psim.runs.verdict import kept

RIGHT = "recomputed 1 simulation from their events"


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verified") / "run"
    record = {"metrics": ["relative_fitness"], "every": 10, "events": True}
    p2psim.run(small.scenario(replicas=1, sweep={}, record=record), folder, jobs=1, progress=False)
    assert kept(p2psim.Result.load(folder)) is None
    assert main(["verify", str(folder)]) == 0
    return folder


def text_on_page(folder: Path) -> dict:
    return unpacked(page(p2psim.Result.load(folder)))[0]["study"]["verified"]


def test_show_and_the_page_say_it(verified: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verdict = json.loads((verified / "verified.json").read_text())
    assert (verdict["verdict"], verdict["simulations"], verdict["wrong"]) == ("right", 1, [])
    assert set(verdict["files"]) == set(p2psim.Result.load(verified).described.files)
    assert main(["show", str(verified)]) == 0
    assert RIGHT in " ".join(capsys.readouterr().out.split())
    assert main(["show", str(verified), "--format", "csv"]) == 0
    printed = capsys.readouterr()
    assert RIGHT in printed.err
    assert RIGHT not in printed.out
    assert RIGHT in text_on_page(verified)["text"]
    before = (verified / "verified.json").read_bytes(), page(p2psim.Result.load(verified))
    assert main(["report", str(verified), "--verify"]) == 0
    assert ((verified / "verified.json").read_bytes(), page(p2psim.Result.load(verified))) == before


def test_it_holds_for_no_other_files(verified: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(verified, folder)
    assert "stale" not in kept(p2psim.Result.load(folder))  # it may be moved with its folder
    p2psim.run(p2psim.Scenario.load(folder / "scenario.yaml", ["replicas=2"]), folder, jobs=1, progress=False)
    assert "other files" in text_on_page(folder)["text"]
    shutil.copytree(verified, folder, dirs_exist_ok=True)
    (folder / "noise.npz").write_bytes(b"another")  # neither show nor the page reads it
    assert kept(p2psim.Result.load(folder))["stale"]
    shutil.copytree(verified, folder, dirs_exist_ok=True)
    text = (folder / "verified.json").read_text()
    for damaged in (text.replace('"simulations": 1', '"simulations": 9'), "{}", "[]", ""):
        (folder / "verified.json").write_text(damaged)
        assert kept(p2psim.Result.load(folder)) == {"stale": True}


def test_what_is_wrong_is_said_and_what_fails_leaves_nothing(
    verified: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from p2psim.runs import verification

    folder = tmp_path / "run"
    shutil.copytree(verified, folder)
    wrong = verification.ReplicaCheck(0, 0, 5, float("inf"), fault="an answer came before its query")
    monkeypatch.setattr(verification, "verify_result", lambda result: [wrong])
    assert main(["verify", str(folder)]) == 1
    shown = text_on_page(folder)
    assert shown["wrong"]
    assert "1 of them wrong: cell 0, replica 0: an answer came before its query" in shown["text"]

    def fails(result: p2psim.Result) -> None:
        raise SimulationError("the choice does not follow")

    monkeypatch.setattr(verification, "verify_result", fails)
    assert main(["verify", str(folder)]) != 0
    assert kept(p2psim.Result.load(folder)) is None
    assert text_on_page(folder) is None


def test_another_run_in_its_place_removes_it(verified: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(verified, folder)
    p2psim.run(small.scenario(replicas=1), folder, overwrite=True, jobs=1, progress=False)
    assert not (folder / "verified.json").exists()
