"""No file makes p2psim run or import code: what docs/trust.md promises, for every command."""

import argparse
import contextlib
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ruamel.yaml import YAML

from p2psim.cli.main import main, parser
from p2psim.core import registry
from p2psim.core.errors import FolderError
from p2psim.core.files import write_text
from p2psim.runs.result import Result
from p2psim.runs.verification import verify_result

OWN_NOISE = (Path(__file__).parent / "privacy" / "own_noise.py").read_text()
#: Leaves a mark where it runs.
MARKING = "with open({!r}, 'a') as mark: mark.write(__name__)\n"

STUDY: dict[str, Any] = {
    "name": "tiny",
    "replicas": 2,
    "network": {"topology": {"kind": "star", "agents": 3}, "exchange": "request"},
    "data": {"source": {"kind": "linear-regression", "dimension": 2, "points": 20}},
    "learning": {
        "algorithm": {"kind": "async-star", "horizon": 30, "rho": {"h": 0.5}, "theta_max": 3},
        "loss": "squared",
        "regularizer": {"l2": 1e-1},
    },
    "privacy": {
        "mechanism": {"kind": "logistic", "stretch": 1.0},
        "epsilon": 10,
        "delta": 1e-6,
        "sensitivity": {"kind": "clip", "norm": "l1", "bound": 1.0},
    },
    "record": {"every": 10, "events": True, "metrics": ["relative_fitness", "present"]},
}


def commands_of(top: argparse.ArgumentParser) -> set[str]:
    groups = [action for action in top._actions if isinstance(action, argparse._SubParsersAction)]
    inner = {name for group in groups for command in group.choices.values() for name in commands_of(command)}
    return inner if groups else {top.prog.removeprefix("p2psim ")}


def write(path: Path, mechanism: Any = None, **changes: Any) -> Path:
    study = STUDY | changes
    if mechanism is not None:
        study = study | {"privacy": study["privacy"] | {"mechanism": mechanism}}
    with path.open("w") as stream:
        YAML(typ="safe").dump(study, stream)
    return path


def forget() -> None:
    """Be a process into which nothing has been let in."""
    registry.failures.cache_clear()
    sys.modules.pop("stranger", None)
    for kind in registry.KINDS:
        for name, part in list(registry.parts(kind).items()):
            if registry.package_of(part) == "stranger":
                registry.forget(kind, name)


@pytest.fixture(scope="module")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a stranger's: a scenario, a run folder, and the module that both name, which marks that it ran."""
    folder = tmp_path_factory.mktemp("strangers")
    mark = folder / "MARK"
    (folder / "stranger.py").write_text(MARKING.format(str(mark)) + OWN_NOISE)
    write(folder / "study.yaml")
    write(folder / "both.yaml", sweep={"privacy.mechanism": ["laplace", STUDY["privacy"]["mechanism"]]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "LOADED", {})
        patch.syspath_prepend(folder)
        for name in ("study", "both"):
            run = ["run", str(folder / f"{name}.yaml"), "--out", str(folder / name), "--quiet"]
            assert main([*run, "--parts", "stranger"]) == 0
    assert mark.read_text() == "stranger"
    forget()
    return folder


@pytest.fixture
def here(strangers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of it, as the current folder, from which Python could import."""
    (strangers / "MARK").unlink(missing_ok=True)
    shutil.copytree(strangers, tmp_path / "copy")
    monkeypatch.setattr(registry, "LOADED", {})
    monkeypatch.syspath_prepend(strangers)
    monkeypatch.chdir(tmp_path / "copy")
    forget()
    yield tmp_path / "copy"
    forget()


#: Arguments of every command, and how it ends where the part that a file names was not let in.
COMMANDS = {
    "run": (["study.yaml", "--out", "new"], 2),
    "check": (["study.yaml", "--no-pilot"], 2),
    "audit": (["study.yaml", "--samples", "100"], 2),
    "forecast": (["study.yaml"], 2),
    "account network": (["study.yaml", "--steps", "3", "--sigma", "1", "--delta", "1e-5"], 2),
    "verify": (["study"], 1),
    "account run": (["study"], 1),
    "show": (["study"], 0),
    "plot": (["study", "--kind", "fitness"], 0),
    "report": (["study", "--out", "page.html"], 0),
    "compare": (["study", "both", "--metric", "relative_fitness"], None),
    "export": (["study", "--out", "exported"], None),
    "account releases": (["--loss", "0.1", "--count", "3", "--delta", "1e-6"], None),
    "account calibrate": (["--count", "3", "--epsilon", "1", "--delta", "1e-6"], None),
    "data list": ([], 0),
    "data fetch": (["stranger"], 2),
    "data describe": (["study/metrics.parquet"], 0),
    "new": (["another"], 0),
    "list": ([], 0),
    "schema": ([], 0),
    "completion": (["bash"], 0),
}
NEED_THE_PART = [name for name, (_, code) in COMMANDS.items() if code and name != "data fetch"]


def test_every_command_is_tried() -> None:
    assert set(COMMANDS) == commands_of(parser())


def called(command: str) -> list[str]:
    return [*command.split(), *COMMANDS[command][0]]


def ended(arguments: list[str]) -> int:
    try:
        return main(arguments)
    except SystemExit as error:
        return int(error.code or 0)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_imports_what_a_file_names(
    command: str, here: Path, strangers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, expected = ended(called(command)), COMMANDS[command][1]
    err = capsys.readouterr().err
    assert code == expected if expected is not None else code in (0, 2)
    assert not (strangers / "MARK").exists()
    assert "stranger" not in sys.modules
    assert "Traceback" not in err
    if command in NEED_THE_PART:
        assert "privacy.mechanism: unknown kind 'logistic'" in err
        assert ("--parts stranger" in err) == (code == 1)
        assert "new" not in os.listdir()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_modules_and_refuses_one_that_is_not_there(
    command: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(os.listdir())
    assert ended([*called(command), "--parts", "nosuch_module"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "the module nosuch_module cannot be imported" in line
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize("command", NEED_THE_PART)
def test_a_command_that_was_given_the_module_does_all(
    command: str, here: Path, strangers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = ended([*called(command), "--parts", "stranger"])
    err = capsys.readouterr().err
    assert (strangers / "MARK").read_text() == "stranger"
    assert "unknown kind" not in err
    if command in ("verify", "account run", "run", "check"):
        assert code == 0


@pytest.mark.parametrize(
    "part",
    [
        {"kind": "os:system", "command": "touch MARK"},
        {"kind": "builtins.eval", "source": "open('MARK', 'w')"},
        {"kind": "registered", "name": "subprocess:run", "options": {"args": ["touch", "MARK"]}},
        {"kind": "stranger:Logistic"},
        {"kind": "stranger"},
        {"kind": "p2psim.privacy.mechanisms:Laplace"},
    ],
)
def test_no_name_in_a_scenario_or_run_folder_runs_code(
    part: dict[str, Any], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(here / "study.yaml", part)
    text = (here / "study" / "scenario.yaml").read_text()
    tree = YAML(typ="safe").load(text)
    tree["privacy"]["mechanism"] = part
    with (here / "study" / "scenario.yaml").open("w") as stream:
        YAML(typ="safe").dump(tree, stream)
    for command in ("check", "run", "audit", "forecast", "verify", "account run", "plot", "compare"):
        code = ended(called(command))
        assert code in ((2,) if command in ("check", "run", "audit", "forecast") else (0, 1, 2))
        assert not (here / "MARK").exists()
        assert "stranger" not in sys.modules
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("folder", ["study", "both"])
@pytest.mark.parametrize("command", ["verify", "account run"])
def test_without_the_part_hashes_are_checked(
    command: str, folder: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), folder]) == 1
    err = capsys.readouterr().err
    assert "the results were made with parts of stranger; if you trust it, add --parts stranger" in err
    assert "the hashes of its" in err
    ledger = here / folder / "ledger.parquet"
    ledger.write_bytes(ledger.read_bytes()[:-1] + b"?")
    assert main([*command.split(), folder]) == 2
    assert "ledger.parquet: damaged" in capsys.readouterr().err


def test_the_manifest_says_where_a_part_came_from(here: Path) -> None:
    told = Result.load("study").manifest["made_by"]["parts"]
    assert set(told) == {"stranger"}
    assert told["stranger"]["used"] == ["stranger:Logistic"]
    assert len(told["stranger"]["sha256"]) == 64


def test_cells_that_were_made_with_a_part_are_kept_with_it_alone(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that leaves the part out of its sweep must write down what its earlier cells were."""
    write(here / "both.yaml", "laplace", sweep={"privacy.mechanism": ["laplace"]})
    before = (here / "both" / "manifest.json").read_bytes()
    run = ["run", "both.yaml", "--out", "both", "--quiet", "--replicas", "3"]
    assert main(run) == 2
    assert "add --parts stranger" in capsys.readouterr().err
    assert (here / "both" / "manifest.json").read_bytes() == before
    assert main([*run, "--parts", "stranger"]) == 0
    assert [one.verdict for one in verify_result(Result.load("both"))] == ["right"] * 5
    forget()
    registry.LOADED.clear()
    assert main(["verify", "both"]) == 1
    assert "add --parts stranger" in capsys.readouterr().err


class Evil:
    """Pickled, it is a command that leaves a mark."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("MARK",)


def test_no_tag_of_yaml_makes_an_object(here: Path) -> None:
    text = (here / "study.yaml").read_text()
    for tag in ("!!python/object/apply:os.mkdir [MARK]", "!!python/name:os.system ''", "!<tag:x> 1"):
        (here / "study.yaml").write_text(f"{text}\nfigure: {tag}\n")
        assert main(["check", "study.yaml"]) == 2
        assert not (here / "MARK").exists()


def test_no_pickle_is_loaded(here: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    meta = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": pickle.dumps(Evil()),
    }
    column = pa.field("x", pa.float64(), metadata=meta)
    table = pa.table([[1.0] * 9, [0.5] * 9], schema=pa.schema([column, pa.field("y", pa.float64())]))
    pq.write_table(table, "evil.parquet")
    write(
        here / "study.yaml",
        "laplace",
        data={"source": {"kind": "parquet", "path": "evil.parquet", "y": "y"}, "partition": "equal"},
    )
    assert main(["check", "study.yaml", "--no-pilot"]) == 0
    pickled = np.array([Evil()], dtype=object)
    for name in ("models", "noise", "data"):
        np.savez(here / "both" / f"{name}.npz", **{"0/0": pickled, "x": pickled})
    whole = pq.read_table(here / "both" / "metrics.parquet")
    fields = [field.with_metadata(meta) if field.name == "value" else field for field in whole.schema]
    pq.write_table(whole.cast(pa.schema(fields)), here / "both" / "metrics.parquet")
    for command in ("verify", "plot", "compare", "account run"):
        # How a damaged folder is refused is tested with run folders.
        with contextlib.suppress(Exception):
            main([*command.split(), "both", *(["study"] if command == "compare" else [])])
    for name in ("noise", "models"):
        # A file of which the manifest does not tell is not read at all.
        with pytest.raises((ValueError, FolderError, KeyError)):
            getattr(Result.load("both"), name)[0, 0]
    assert not (here / "MARK").exists()


def test_a_path_is_no_address(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    def connect(*arguments: object) -> None:
        raise AssertionError("connects to a machine that a file names")

    monkeypatch.setattr(socket.socket, "connect", connect)
    for kind in ("csv", "parquet"):
        for path in ("http://127.0.0.1:9/t.csv", "https://127.0.0.1/t", "s3://x/t", "ftp://127.0.0.1/t"):
            write(here / "study.yaml", "laplace", data={"source": {"kind": kind, "path": path, "y": "y"}})
            assert main(["check", "study.yaml"]) == 2


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    for name in ("kept.txt", ".kept.txt.aside"):
        (tmp_path / "mine").write_text("mine")
        (tmp_path / name).symlink_to(tmp_path / "mine")
        write_text(tmp_path / "kept.txt", "new")
        assert (tmp_path / "mine").read_text() == "mine"
        assert (tmp_path / "kept.txt").read_text() == "new"
        assert not (tmp_path / "kept.txt").is_symlink()


def hostile(folder: Path, names: set[str]) -> Path:
    """Fill a folder with modules that leave a mark, and with settings of libraries that name one."""
    folder.mkdir()
    for name in names:
        (folder / f"{name}.py").write_text(MARKING.format(str(folder / "MARK")))
    (folder / "matplotlibrc").write_text("backend: module://stranger\ntext.usetex: True\n")
    (folder / ".numba_config.yaml").write_text("cache_locator_classes: stranger.Locator\n")
    write(folder / "study.yaml", "laplace")
    return folder


def all_names() -> set[str]:
    """Modules that might be imported somewhere: those of Python, and of all packages that are installed."""
    from importlib.metadata import packages_distributions

    known = set(sys.stdlib_module_names) | set(packages_distributions()) | {"stranger", "cuda", "own_noise"}
    return {name for name in known if name.isidentifier()} - {"p2psim"}


COMMAND = [sys.executable, "-P", "-c", "import sys; from p2psim.cli.main import main; sys.exit(main())"]


@pytest.mark.parametrize("executor", ["local", pytest.param("dask", marks=pytest.mark.verification)])
def test_modules_in_the_current_folder_are_not_imported(executor: str, tmp_path: Path) -> None:
    """Neither by the command nor by its workers, nor by the libraries, whatever their settings there say."""
    folder = hostile(tmp_path / "hostile", all_names())
    run = ["run", "study.yaml", "--out", "run", "--quiet", "--jobs", "2", "--executor", executor]
    for arguments in (run, ["plot", "run", "--kind", "fitness"]):
        done = subprocess.run([*COMMAND, *arguments], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert not (folder / "MARK").exists(), (folder / "MARK").read_text()


def test_python_m_does_not_import_libraries_from_the_current_folder(tmp_path: Path) -> None:
    """Those that Python loads before p2psim begins are its own affair."""
    folder = hostile(tmp_path / "hostile", all_names() - set(sys.stdlib_module_names))
    command = [sys.executable, "-m", "p2psim", "check", "study.yaml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not (folder / "MARK").exists(), (folder / "MARK").read_text()


@pytest.mark.parametrize("executor", ["local", pytest.param("dask", marks=pytest.mark.verification)])
def test_workers_import_the_modules_by_name(executor: str, strangers: Path, tmp_path: Path) -> None:
    run = ["run", str(strangers / "study.yaml"), "--out", str(tmp_path / "run"), "--quiet", "--jobs", "2"]
    path = os.pathsep.join([str(strangers), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [*COMMAND, *run, "--executor", executor, "--parts", "stranger"],
        env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for name in ("metrics.parquet", "ledger.parquet", "noise.npz"):
        assert (tmp_path / "run" / name).read_bytes() == (strangers / "study" / name).read_bytes()
