"""What ``p2psim new --part`` writes passes its own test at once, and can be used from a scenario."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from p2psim.cli.main import main
from p2psim.cli.new import TEMPLATES

ROOT = Path(__file__).parents[2]

SCENARIO = """
name: mine
network:
  topology: %(topology)s
  exchange: %(exchange)s
  channel: {effects: %(channel)s}
  availability: %(availability)s
data: {source: {kind: linear-regression, agents: 9, points: 12, dimension: 2}}
learning:
  algorithm: {kind: %(algorithm)s, %(end)s}
  model: %(model)s
  loss: %(loss)s
  regularizer: {l2: 0.1}
privacy: {mechanism: none}
"""

#: Runs the test, then the scenario, in one process: most of its time are imports.
BOTH = """
import sys
import pytest
from p2psim.cli.main import main

failed = pytest.main(["-q", "-p", "no:cacheprovider", "test_my_part.py"])
sys.exit(failed or main(["run", "mine.yaml", "--parts", "my_part"]))
"""

SHIPPED = {
    "algorithm": "coordinate-descent, mu: 1.0",
    "end": "updates_per_agent: 5",
    "topology": "ring",
    "model": "linear",
    "loss": "squared",
    "exchange": "broadcast",
    "channel": "null",
    "availability": "always",
}

#: What a part of a kind needs others to be.
OTHERS = {
    "algorithm": {"exchange": "gossip"},
    "star-training": {"topology": "star", "exchange": "round", "end": "commits: 5"},
    "graph-training": {"exchange": "synchronous"},
    "model": {
        "algorithm": "decentralised-sgd, step: 0.05",
        "exchange": "{kind: gossip, mode: push-pull}",
        "loss": "null",
    },
}


def python(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, env=environment, timeout=200
    )


@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_new_part_works(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my-part", "--part", kind]) == 0
    others = OTHERS.get(kind, {})
    named = "algorithm" if kind.endswith("-training") else kind
    (tmp_path / "mine.yaml").write_text(SCENARIO % (SHIPPED | others | {named: "my-part"}))
    ran = python("-c", BOTH, folder=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["new", "x", "--part", "opinion"], "only for topology, loss, exchange"),
        (["new", "My Part", "--part", "loss"], "no name of a part"),
        (["new", "class", "--part", "loss"], "no name of a part"),
    ],
)
def test_what_cannot_be_written(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_mine.py").write_text("mine")
    assert main(["new", "mine", "--part", "loss"]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["test_mine.py"]
    assert (tmp_path / "test_mine.py").read_text() == "mine"
