"""What ``p2psim new --part`` writes passes its own test at once, and can be used from a scenario."""

import sys
from pathlib import Path

import pytest
from children import forked

from p2psim.cli.main import main
from p2psim.cli.new import TEMPLATES

SCENARIO = """
name: mine
network:
  topology: %(topology)s
  exchange: %(exchange)s
  channel: {effects: %(channel)s}
  availability: %(availability)s
data: {source: %(source)s, features: %(feature)s%(data)s}
learning:
  algorithm: {kind: %(algorithm)s, %(end)s}
  model: %(model)s
  loss: %(loss)s
  regularizer: {l2: 0.1}
privacy: {mechanism: %(mechanism)s, delta: 1.0e-5%(privacy)s}
record: {metrics: [%(recorded)s], every: 5}
"""

GAUSSIAN = {
    "mechanism": "gaussian",
    "privacy": ", epsilon: 5, sensitivity: {kind: clip, bound: 1.0}, allocation: {kind: cap, releases: 4}, "
    "accountant: [zcdp]",
}

SHIPPED = {
    "source": "{kind: linear-regression, agents: 9, points: 12, dimension: 2}",
    "feature": "[]",
    "data": "",
    "algorithm": "coordinate-descent, mu: 1.0",
    "end": "updates_per_agent: 5",
    "topology": "ring",
    "model": "linear",
    "loss": "squared",
    "exchange": "broadcast",
    "channel": "null",
    "availability": "always",
    "mechanism": "none",
    "privacy": "",
    "recorded": "objective",
}

#: What a part of a kind needs others to be.
OTHERS = {
    "metric": {"recorded": "objective, my_part"},
    "source": {"data": ", partition: {kind: equal, agents: 9}"},
    "partition": {
        "source": "{kind: csv, path: rows.csv, y: y}",
        "data": ", partition: {kind: my-part, agents: 9}",
    },
    "mechanism": {
        "privacy": ", epsilon: 5, sensitivity: {kind: clip, bound: 1.0}, allocation: {kind: cap, releases: 4}"
    },
    "allocation": GAUSSIAN | {"privacy": GAUSSIAN["privacy"].replace("{kind: cap, releases: 4}", "my-part")},
    "accountant": GAUSSIAN | {"privacy": GAUSSIAN["privacy"].replace("zcdp", "zcdp, my-part")},
    "algorithm": {"exchange": "gossip"},
    "star-training": {"topology": "star", "exchange": "round", "end": "commits: 5"},
    "graph-training": {"exchange": "synchronous"},
    "model": {
        "algorithm": "decentralised-sgd, step: 0.05",
        "exchange": "{kind: gossip, mode: push-pull}",
        "loss": "null",
    },
}


@pytest.fixture(scope="module")
def all_imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Run and draw a study with nothing new: what each forked process would import again is here then."""
    place = tmp_path_factory.mktemp("shipped")
    (place / "mine.yaml").write_text(SCENARIO % SHIPPED)
    assert main(["run", str(place / "mine.yaml"), "--jobs", "1", "--out", str(place / "run")]) == 0
    assert main(["plot", str(place / "run")]) == 0


@pytest.mark.usefixtures("all_imported")
@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_new_part_works(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my-part", "--part", kind]) == 0
    others = OTHERS.get(kind, {})
    (tmp_path / "rows.csv").write_text("x,y\n" + "".join(f"{i},{i % 7}\n" for i in range(40)))
    named = "algorithm" if kind.endswith("-training") else kind
    (tmp_path / "mine.yaml").write_text(SCENARIO % (SHIPPED | others | {named: "my-part"}))
    plotted = {"figure": ["--kind", "my-part", "--metric", "objective"], "metric": ["--metric", "my_part"]}

    def test_and_use() -> int:
        sys.path.insert(0, str(tmp_path))
        # At its end the last plugin collects the garbage of all earlier tests several times.
        plugins = [f"-pno:{name}" for name in ("cacheprovider", "xdist", "unraisableexception")]
        failed = pytest.main(["-q", *plugins, "test_my_part.py"])
        failed = failed or main(["run", "mine.yaml", "--jobs", "1", "--parts", "my_part"])
        return failed or main(["plot", "runs/mine", *plotted.get(kind, ()), "--parts", "my_part"])

    ran = forked(test_and_use, tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["new", "x", "--part", "opinion"], "unknown kind 'opinion'; known: topology, loss, exchange"),
        (["new", "My Part", "--part", "loss"], "no name of a part"),
        (["new", "class", "--part", "loss"], "no name of a part"),
        (
            ["new", "con", "--part", "loss"],
            "'con' cannot be the name of a part: con.py is a device on Windows",
        ),
        (["new", "numpy", "--part", "source"], "numpy.py would hide the module numpy"),
        (["new", "p2psim", "--part", "source"], "p2psim.py would hide the module p2psim"),
        (["new", "statistics", "--part", "metric"], "choose another, such as my-statistics"),
        (
            ["new", "fedavg", "--part", "star-training"],
            "a part of the kind algorithm that is called 'fedavg'",
        ),
        (
            ["new", "barabasi-albert", "--part", "topology"],
            "the kind topology that is called 'barabasi-albert'",
        ),
        (["new", "objective-gap", "--part", "metric"], "the kind metric that is called 'objective_gap'"),
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
