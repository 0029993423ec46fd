"""A damaged run folder: each command refuses it in one message, or gives what it gave before the damage."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import small_study as small
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import p2psim
from p2psim.cli.main import main
from p2psim.core.errors import FolderError, first_line
from p2psim.runs import batches, manifest, store
from p2psim.runs.seals import sealed

#: What only programmers of Python understand.
JARGON = re.compile(r"\w*(Error|Exception)\b|Errno|codec|NoneType|Expecting|recursion|np\.|traceback", re.I)
FILES = (*small.RESULTS, "models.npz", "scenario.yaml", "manifest.json")
RECORD = {"metrics": ["relative_fitness"], "every": 10, "events": True, "models": True}
READERS = {
    "verify": ["verify", "RUN"],
    "plot": ["plot", "RUN", "--kind", "fitness", "--json"],
    "compare": ["compare", "RUN", "--reference", "privacy.epsilon=1"],
    "account": ["account", "run", "RUN", "--delta", "1e-5"],
    "run": ["run", "STUDY", "--out", "RUN", "--jobs", "1", "--quiet"],
}
HOW = ("missing", "emptied", "cut", "flipped", "folder", "nested")
SETTINGS = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def damage(path: Path, how: str, where: float) -> None:
    """Do something to a file; ``where`` in it, from 0 to 1."""
    content = path.read_bytes()
    path.unlink()
    place = int(where * len(content))
    if how == "folder":
        path.mkdir()
    elif how != "missing":
        path.write_bytes(
            {
                "emptied": b"",
                "cut": content[:place],
                "flipped": content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :],
                "nested": b"[" * 100_000,
            }[how]
        )


def called(command: str, study: Path, folder: Path) -> int:
    names = {"RUN": str(folder), "STUDY": str(study)}
    return main([names.get(word, word) for word in READERS[command]])


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("finished")
    study = small.scenario(replicas=2, record=RECORD)
    (place / "study.yaml").write_text(study.to_yaml())
    p2psim.run(study, place / "run", progress=False)
    return place


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that was finished, and then given more replicas until it was interrupted."""
    place = tmp_path_factory.mktemp("interrupted")
    study = small.scenario(replicas=3, record=RECORD)
    (place / "study.yaml").write_text(study.to_yaml())
    p2psim.run(small.scenario(replicas=1, record=RECORD), place / "run", progress=False)
    keep, left = store.add_part, [2]

    def keeping(*part: object) -> None:
        keep(*part)  # type: ignore[arg-type]
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "BATCH_SECONDS", 0.0)
        patch.setattr(store, "add_part", keeping)
        with pytest.raises(KeyboardInterrupt):
            p2psim.run(study, place / "run", progress=False)
    p2psim.run(study, place / "whole", progress=False)
    return place


_BEFORE: dict[tuple[str, Path], str] = {}


def undamaged(command: str, place: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Copy a run folder; return what a command says of it."""
    shutil.copytree(place / "run", folder)
    if (command, place) not in _BEFORE:
        assert called(command, place / "study.yaml", folder) == 0
        _BEFORE[command, place] = capsys.readouterr().out.replace(str(folder), "RUN")
        shutil.rmtree(folder)
        shutil.copytree(place / "run", folder)
    return _BEFORE[command, place].replace("RUN", str(folder))


def refused_or_as_before(
    command: str, study: Path, folder: Path, before: str, capsys: pytest.CaptureFixture[str], named: str
) -> int:
    code = called(command, study, folder)
    said = capsys.readouterr()
    if code == 0:
        assert said.out == before
    elif code == 2:
        assert said.out == ""
        assert named in said.err
        assert len(said.err.splitlines()) == 1
        assert not JARGON.search(said.err.replace(str(folder), ""))
    else:
        # What can still be read was recomputed, and is wrong.
        assert (command, code) == ("verify", 1)
        assert named in said.err
    return code


@SETTINGS
@given(
    command=st.sampled_from(sorted(READERS)),
    name=st.sampled_from(FILES),
    how=st.sampled_from(HOW),
    where=st.floats(0, 1, exclude_max=True),
)
@example("verify", "manifest.json", "nested", 0.0)
@example("verify", "noise.npz", "flipped", 0.5)
@example("verify", "models.npz", "flipped", 0.5)
@example("verify", "ledger.parquet", "missing", 0.5)
@example("verify", "ledger.parquet", "cut", 0.5)
@example("plot", "metrics.parquet", "flipped", 0.3)
@example("plot", "scenario.yaml", "folder", 0.3)
def test_a_damaged_file(
    finished: Path,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    command: str,
    name: str,
    how: str,
    where: float,
) -> None:
    folder = tmp_path_factory.mktemp("damaged") / "run"
    before = undamaged(command, finished, folder, capsys)
    damage(folder / name, how, where)
    files = small.snapshot(folder)
    named = "run folder" if (name, how) == ("manifest.json", "missing") else name
    code = refused_or_as_before(command, finished / "study.yaml", folder, before, capsys, named)
    if command in ("verify", "run"):
        assert code != 0
        assert small.snapshot(folder) == files


@SETTINGS
@given(
    command=st.sampled_from(sorted(READERS)),
    choice=st.integers(0, 999),
    how=st.sampled_from(HOW),
    where=st.floats(0, 1, exclude_max=True),
)
def test_a_damaged_file_of_a_run_that_was_interrupted(
    interrupted: Path,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    command: str,
    choice: int,
    how: str,
    where: float,
) -> None:
    folder = tmp_path_factory.mktemp("damaged") / "run"
    before = undamaged(command, interrupted, folder, capsys)
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    name = names[choice % len(names)]
    if name == ".lock" and how != "folder":
        return
    damage(folder / name, how, where)
    named = "run folder" if (name, how) == ("manifest.json", "missing") else Path(name).name
    named = ".lock" if name == ".lock" and command == "run" else named
    code = refused_or_as_before(command, interrupted / "study.yaml", folder, before, capsys, named)
    if command == "run" and code == 0:
        assert small.everything(folder) == small.everything(interrupted / "whole")


@SETTINGS
@given(data=st.data(), change=st.sampled_from(["removed", None, True, -1, "x", [], {}]))
def test_an_entry_of_the_manifest_that_is_not_what_it_was(
    finished: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, change: object
) -> None:
    tree = json.loads((finished / "run" / "manifest.json").read_text())
    del tree["sha256"]
    place: Any = tree
    while True:
        step = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[step], dict | list) or not place[step] or data.draw(st.booleans()):
            break
        place = place[step]
    if change == "removed":
        del place[step]
    else:
        place[step] = change
    folder = tmp_path_factory.mktemp("entry")
    (folder / "manifest.json").write_text(sealed(json.dumps(tree, indent=2)))
    said = ""
    try:
        manifest.read(folder)
    except FolderError as error:
        said = str(error).replace(str(folder), "")
    assert len(said.splitlines()) <= 1
    assert not JARGON.search(said)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"{]", b"[" * 100_000, b"1" * 5000, b"", b"null"])
def test_no_name_of_an_error_is_said_of_a_manifest_that_cannot_be_read(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(FolderError, match=r"manifest\.json: damaged \(") as caught:
        manifest.read(tmp_path)
    assert not JARGON.search(str(caught.value).replace(str(tmp_path), ""))


@pytest.mark.parametrize("kind", [MemoryError, EOFError, RecursionError, OSError, ValueError, AssertionError])
def test_errors_of_python_are_said_in_words(kind: type[Exception]) -> None:
    assert first_line(kind())
    assert not JARGON.search(first_line(kind()))
