"""With ``--progress json`` standard error is lines of JSON, whoever writes to it and whatever goes wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from p2psim.cli.streams import as_line, standard_error_as_lines, wanted

STUDY: dict[str, Any] = {
    "name": "lines",
    "seed": 1,
    "replicas": 3,
    "network": {"topology": {"kind": "star", "agents": 2}, "exchange": "request"},
    "data": {"source": {"kind": "linear-regression", "dimension": 2, "points": 10}},
    "learning": {
        "algorithm": {"kind": "async-star", "horizon": 20, "rho": 1.0, "theta_max": 3},
        "loss": "squared",
        "regularizer": {"l2": 1e-3},
    },
    "privacy": {
        "mechanism": "laplace",
        "epsilon": 10,
        "sensitivity": {"kind": "clip", "norm": "l1", "bound": 1.0},
    },
    "record": {"metrics": ["relative_fitness"], "every": 10},
}

#: The command, after something was changed in the parent; workers do not see it.
COMMAND = "import sys; {change}; from p2psim.cli.main import main; sys.exit(main(sys.argv[1:]))"

#: A worker is a call that cannot be made: it ends with a traceback before it is ready.
STILLBORN = "from p2psim.runs import pool; pool._serve = int"


def run(
    place: Path, *arguments: str, change: str = "pass", **tree: Any
) -> "subprocess.CompletedProcess[str]":
    with open(place / "study.yaml", "w") as stream:
        YAML(typ="safe").dump(STUDY | tree, stream)
    command = [sys.executable, "-c", COMMAND.format(change=change), "run", "study.yaml", *arguments]
    return subprocess.run(command, cwd=place, capture_output=True, text=True)


def objects(done: "subprocess.CompletedProcess[str]") -> list[dict[str, Any]]:
    """Each line of standard error; fails where one is not an object."""
    found = [json.loads(line) for line in done.stderr.splitlines()]
    assert found
    assert all(isinstance(one, dict) for one in found)
    return found


def test_a_run_that_goes_well(tmp_path: Path) -> None:
    done = run(tmp_path, "--progress", "json", "--jobs", "1")
    found = objects(done)
    assert done.returncode == 0
    assert "last recorded values" in done.stdout
    assert [one["done"] for one in found if "done" in one][-1] == 3
    assert all(set(one) <= {"warning", "note"} for one in found if "done" not in one)


@pytest.mark.parametrize("given", [("--progress=json",), ("--prog", "json")])
def test_bad_input(tmp_path: Path, given: tuple[str, ...]) -> None:
    done = run(tmp_path, *given, "--set", "replicas=-1")
    (found,) = objects(done)
    assert done.returncode == 2
    assert "replicas" in found["error"]
    assert not (tmp_path / "runs").exists()


def test_bad_usage(tmp_path: Path) -> None:
    """Told by argparse, which knows nothing of it."""
    done = run(tmp_path, "--progress", "json", "--nonsense")
    assert done.returncode == 2
    assert any("--nonsense" in one["output"] for one in objects(done))


def test_workers_that_cannot_start(tmp_path: Path) -> None:
    """They write a traceback on the descriptor that they inherit, which no one else knows of."""
    done = run(tmp_path, "--progress", "json", "--jobs", "2", change=STILLBORN)
    found = objects(done)
    assert done.returncode == 1
    assert any("Traceback" in one.get("output", "") for one in found)
    assert "worker processes ended before their first batch" in found[-1]["error"]


def test_failed_simulations(tmp_path: Path) -> None:
    change = (
        "from p2psim.simulation import simulate; "
        "simulate.simulated_at_once = lambda *given: 1; "
        "simulate.simulate = lambda *given: (_ for _ in ()).throw(ValueError('made up'))"
    )
    done = run(tmp_path, "--progress", "json", "--jobs", "1", change=change)
    found = objects(done)
    assert done.returncode == 1
    # One message in one line, however many lines a person would see.
    assert "3 of the simulations failed" in found[-1]["error"]
    assert "alone: p2psim run" in found[-1]["error"]


def test_a_fault_of_our_own(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        "--progress",
        "json",
        change="import p2psim; p2psim.Scenario.load = lambda *a, **k: 1 / 0",
    )
    (found,) = objects(done)
    assert done.returncode == 1
    assert "ZeroDivisionError" in found["error"]


def test_without_it_all_is_text(tmp_path: Path) -> None:
    done = run(tmp_path, "--set", "replicas=-1")
    assert done.returncode == 2
    assert done.stderr.startswith("p2psim: ")


@given(st.binary())
def test_whatever_is_written_becomes_one_object_or_nothing(text: bytes) -> None:
    line = text.replace(b"\n", b"")
    made = as_line(line)
    if not line.decode(errors="replace").strip():
        assert made == b""
    else:
        assert made.count(b"\n") == 1
        assert isinstance(json.loads(made), dict)


@pytest.mark.parametrize("text", [b"[1]", b'{"a": NaN}', b'{"a":' * 100_000, b"3", b"{1: 2}"])
def test_what_is_no_object_of_strict_json_becomes_one(text: bytes) -> None:
    assert json.loads(as_line(text)) == {"output": text.decode()}


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none()))
def test_objects_pass_as_they_are(tree: dict[str, object]) -> None:
    line = json.dumps(tree).encode() + b"\n"
    assert as_line(line) == line


def test_the_descriptor_is_given_back_with_nothing_lost(capfd: pytest.CaptureFixture[str]) -> None:
    with standard_error_as_lines():
        os.write(2, b'one\n{"two": 2}\nthree')
    os.write(2, b"four\n")
    assert capfd.readouterr().err == '{"output": "one"}\n{"two": 2}\n{"output": "three"}\nfour\n'


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["run", "a.yaml", "--progress", "json"], True),
        (["run", "a.yaml", "--progress", "json", "--progress", "bar"], False),
        (["run", "--progress"], False),
        (["run", "a.yaml", "json"], False),
        ([], False),
    ],
)
def test_who_wants_lines(arguments: list[str], expected: bool) -> None:
    assert wanted(arguments) is expected
