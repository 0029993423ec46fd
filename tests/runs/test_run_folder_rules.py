"""Whose a run folder is, and that nothing is ever lost in it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import small_study as small

import p2psim
from p2psim.core.errors import FolderError, InputError, MissingSourceError
from p2psim.runs import manifest, pool, runner, store


def run(folder: Path, **changes):  # type: ignore[no-untyped-def]
    return p2psim.run(small.scenario(replicas=1, **changes), folder, progress=False)


def test_default_folder_is_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = p2psim.run(small.scenario(replicas=1), progress=False)
    assert result.path == Path("runs/small")


def test_same_name_does_not_delete_another_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two studies of the same name, begun in the same second."""
    monkeypatch.chdir(tmp_path)
    p2psim.run(small.scenario(replicas=1), progress=False)
    before = small.snapshot(Path("runs/small"))
    with pytest.raises(FolderError, match=r"another scenario .* --out, or replace it with --overwrite"):
        p2psim.run(small.scenario(replicas=1, seed=6), progress=False)
    assert small.snapshot(Path("runs/small")) == before


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("name", ["thesis.tex", "parts", "metrics.parquet"])
def test_foreign_folder_is_refused(tmp_path: Path, overwrite: bool, name: str) -> None:
    if name == "parts":
        (tmp_path / "parts").mkdir()
    else:
        (tmp_path / name).write_text("mine")
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(FolderError, match="not a run folder, and not empty"):
        p2psim.run(small.scenario(replicas=1), tmp_path, overwrite=overwrite, progress=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_manifest_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"manifest_version": 3, "name": "a browser extension"}')
    before = small.snapshot(tmp_path)
    for overwrite in (False, True):
        with pytest.raises(FolderError, match=r"manifest\.json: damaged"):
            p2psim.run(small.scenario(replicas=1), tmp_path, overwrite=overwrite, progress=False)
    assert small.snapshot(tmp_path) == before


def test_empty_folder_is_used(tmp_path: Path) -> None:
    run(tmp_path)
    assert (tmp_path / "metrics.parquet").exists()


@pytest.mark.parametrize("inside", ["", "deep/er"])
def test_path_through_a_file_is_refused(tmp_path: Path, inside: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FolderError, match="is a file, not a folder"):
        run(tmp_path / "file" / inside)
    assert (tmp_path / "file").read_text() == "mine"


def test_link_to_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FolderError, match="a link to nothing"):
        run(tmp_path / "link/run")


def test_bad_data_writes_nothing(tmp_path: Path) -> None:
    data = {"source": {"kind": "csv", "path": str(tmp_path / "none.csv"), "target": "y"}}
    study = small.tree(data=data)
    with pytest.raises(InputError):
        p2psim.run(p2psim.Scenario.from_dict(study), tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["metrics.parquet", "events.parquet", "noise.npz", "data.npz"])
@pytest.mark.parametrize("how", ["cut", "changed", "missing"])
def test_damaged_result_is_named_and_nothing_changes(tmp_path: Path, name: str, how: str) -> None:
    folder = tmp_path / "run"
    run(folder)
    damage(folder / name, how)
    before = small.snapshot(folder)
    with pytest.raises(FolderError) as raised:
        p2psim.run(small.scenario(replicas=2), folder, progress=False)
    assert str(folder / name) in str(raised.value)
    assert "--out" in str(raised.value)
    assert small.snapshot(folder) == before


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        middle = len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 99}', '{"format": 1}'])
def test_damaged_manifest_is_named_and_nothing_changes(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "run"
    run(folder)
    (folder / "manifest.json").write_text(text)
    before = small.snapshot(folder)
    with pytest.raises(FolderError, match=r"manifest\.json: (damaged|folder format 99)"):
        run(folder)
    with pytest.raises(FolderError, match=r"manifest\.json"):
        p2psim.Result.load(folder)
    assert small.snapshot(folder) == before


@pytest.mark.parametrize("name", ["metrics.arrow", "noise.npz", "part.json"])
@pytest.mark.parametrize("how", ["cut", "changed", "missing"])
def test_damaged_part_is_named_and_nothing_changes(
    tmp_path: Path, name: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = interrupted(tmp_path, monkeypatch)
    part = next(path for path in (folder / "parts").iterdir() if path.name != "data")
    if (name, how) == ("part.json", "changed"):
        (part / name).write_text('{"format": 1, "runs": [], "files": {}, "warnings": {}}')
    else:
        damage(part / name, how)
    before = small.snapshot(folder)
    with pytest.raises(FolderError) as raised:
        p2psim.run(small.scenario(), folder, progress=False)
    assert str(part / name) in str(raised.value)
    assert f"remove {part}" in str(raised.value)
    assert small.snapshot(folder) == before


def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one finished part."""
    folder = tmp_path / "run"
    original = store.add_part

    def adding(*args):  # type: ignore[no-untyped-def]
        original(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store, "add_part", adding)
        with pytest.raises(KeyboardInterrupt):
            p2psim.run(small.scenario(), folder, progress=False)
    return folder


def test_interrupted_run_keeps_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = interrupted(tmp_path, monkeypatch)
    assert manifest.read(folder).state == "interrupted"
    with pytest.raises(FolderError, match="has not finished; run it again"):
        p2psim.Result.load(folder)
    p2psim.run(small.scenario(), folder, progress=False)
    p2psim.run(small.scenario(), tmp_path / "whole", progress=False)
    assert small.digests(folder) == small.digests(tmp_path / "whole")


def test_earlier_results_stay_readable_while_more_are_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "run")
    before = small.digests(tmp_path / "run")
    folder = interrupted(tmp_path, monkeypatch)
    assert small.digests(folder) == before
    assert len(p2psim.Result.load(folder).metrics) == 10


def test_earlier_results_keep_their_labels_while_the_sweep_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cells have other numbers in the new sweep than in the tables that are there until its end."""
    folder = tmp_path / "run"
    before = p2psim.run(small.scenario(replicas=1), folder, progress=False).summary()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "add_part", interrupted)
    with pytest.raises(KeyboardInterrupt):
        p2psim.run(small.scenario(sweep={"privacy.epsilon": [7, 100, 1]}), folder, progress=False)
    pd.testing.assert_frame_equal(p2psim.Result.load(folder).summary(), before)


def test_second_run_on_a_folder_refuses(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run(folder)
    before = small.snapshot(folder)
    with store.lock(folder), pytest.raises(FolderError, match="another run is writing into it"):
        p2psim.run(small.scenario(), folder, progress=False)
    assert small.snapshot(folder) == before


def test_killed_holder_lets_go_of_the_lock(tmp_path: Path) -> None:
    script = (
        "import sys, time\nfrom pathlib import Path\nfrom p2psim.runs import store\n"
        "with store.lock(Path(sys.argv[1])):\n print('locked', flush=True)\n time.sleep(60)\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    with holder:
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(FolderError, match="another run"), store.lock(tmp_path):
            pass
        holder.kill()
    with store.lock(tmp_path):
        pass


def test_results_of_another_version_are_told_apart(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run(folder)

    def change(tree: dict[str, Any]) -> None:
        tree["made_by"]["libraries"]["numpy"] = "1.0"

    small.reseal(folder, change)
    result = p2psim.run(small.scenario(replicas=2), folder, progress=False)
    assert any("with other libraries" in message for message in result.described.warnings)


@pytest.mark.parametrize("part", ["blas", "simd"])
def test_results_of_other_arithmetic_are_told_apart(tmp_path: Path, part: str) -> None:
    """Said before the run goes on, and kept: not when nothing is added, nor in a new folder."""
    folder, told = tmp_path / "run", []
    p2psim.run(small.scenario(), folder, progress=False, tell=told.append)
    assert not any("arithmetic" in message for message in told)
    assert json.loads((folder / "manifest.json").read_text())["made_by"]["arithmetic"]["blas"]
    small.reseal(folder, lambda tree: tree["made_by"]["arithmetic"].update({part: ["another"]}))
    p2psim.run(small.scenario(), folder, progress=False, tell=told.append)
    assert not any("arithmetic" in message for message in told)
    result = p2psim.run(small.scenario(replicas=4), folder, progress=False, tell=told.append)
    said = [message for message in told if "other arithmetic" in message]
    assert len(said) == 1
    assert f"{part} another there" in said[0]
    assert said[0] in result.described.warnings


def test_dask_missing_names_the_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        MissingSourceError,
        match=r"^Dask is not installed, .*; run pip install 'p2psim\[dask\]'$",
    ):
        p2psim.run(small.scenario(), tmp_path / "run", executor="dask", scheduler="tcp://x:1", progress=False)
    assert not (tmp_path / "run").exists()


def test_names_of_folders_are_plain() -> None:
    assert runner.default_folder(small.scenario(name="a study v1.2")) == Path("runs/a-study-v1.2")
    assert pool.available_cores() >= 1


def test_a_pipe_in_the_place_of_the_manifest_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / manifest.NAME)
    with pytest.raises(FolderError, match="is a pipe, not a file"):
        manifest.read(tmp_path)
