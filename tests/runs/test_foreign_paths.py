"""A manifest that lists files elsewhere: nothing outside the run folder is read, removed or written."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
import small_study as small
from ruamel.yaml import YAML

from p2psim.cli.main import main
from p2psim.runs.seals import of_one_folder, sealed


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("foreign")
    with open(place / "s.yaml", "w") as stream:
        YAML(typ="safe").dump(small.tree(replicas=1, sweep={}), stream)
    assert main(["run", str(place / "s.yaml"), "--out", str(place / "run"), "--jobs", "1", "--quiet"]) == 0
    return place


def forged(path: Path, key: str, foreign: str, entry: object) -> None:
    """List a foreign file in a sealed listing, beside what is there or instead of its first file."""
    tree = json.loads(path.read_text())
    del tree["sha256"]
    tree[key] = {foreign: entry, **tree[key]}
    path.write_text(sealed(json.dumps(tree, indent=2)))


@pytest.mark.parametrize(
    "way", ["../victim.txt", "absolute", "../run/../victim.txt", "figures/../../victim.txt"]
)
def test_nothing_outside_is_touched(
    finished: Path, tmp_path: Path, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pipe would make whoever opens it wait; a file would be hashed, or removed."""
    pipe = way == "../run/../victim.txt"
    folder, victim = tmp_path / "run", tmp_path / "victim.txt"
    shutil.copytree(finished / "run", folder)
    shutil.copy(finished / "s.yaml", tmp_path)
    if pipe:
        os.mkfifo(victim)
    else:
        victim.write_text("mine")
    foreign = str(victim) if way == "absolute" else way
    sha = hashlib.sha256(b"mine").hexdigest()
    forged(folder / "manifest.json", "files", foreign, {"bytes": 4, "sha256": sha})
    (folder / "figures").mkdir(exist_ok=True)
    listing = folder / ".figures.json"
    listing.write_text(sealed(json.dumps({"figures": {foreign: [4, sha]}}, indent=2)))
    before = sorted(path for path in tmp_path.rglob("*") if path.name != ".lock")
    run = ["run", str(tmp_path / "s.yaml"), "--out", str(folder), "--jobs", "1", "--quiet"]
    for command in (
        ["verify", str(folder)],
        ["plot", str(folder), "--kind", "fitness"],
        ["compare", str(folder), str(folder)],
        run,
        [*run, "--overwrite"],
    ):
        assert main(command) == 2, command
        assert "manifest.json: damaged" in capsys.readouterr().err
        assert sorted(path for path in tmp_path.rglob("*") if path.name != ".lock") == before
        assert pipe or victim.read_text() == "mine"
    # The list of figures alone is forged: what it names elsewhere stays.
    shutil.copy(finished / "run" / "manifest.json", folder)
    assert main([*run, "--overwrite"]) == 0
    assert pipe or victim.read_text() == "mine"
    assert victim.exists()


def test_parts_list_no_files_elsewhere(tmp_path: Path) -> None:
    for name in ("../victim.txt", str(tmp_path / "victim.txt"), "a/b", "..", ""):
        with pytest.raises(ValueError, match="a path is listed"):
            of_one_folder({"metrics.arrow": 1, name: 2})
    assert of_one_folder({"metrics.arrow": 1}) == {"metrics.arrow": 1}
