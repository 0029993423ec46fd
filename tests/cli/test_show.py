"""``p2psim show``: the table of a finished run, whole or in part, in the formats that papers and spreadsheets take."""

import csv
import io
import json
from pathlib import Path

import pytest

import p2psim
from p2psim.cli.main import main

STAR = {
    "name": "tiny",
    "replicas": 2,
    "network": {"topology": {"kind": "star", "agents": 3}, "exchange": "request"},
    "data": {"source": {"kind": "linear-regression", "dimension": 3, "points": 20}},
    "learning": {
        "algorithm": {"kind": "async-star", "horizon": 30, "rho": {"h": 0.5}, "theta_max": 3},
        "loss": "squared",
        "regularizer": {"l2": 1e-3},
    },
    "privacy": {
        "mechanism": "laplace",
        "epsilon": 10,
        "sensitivity": {"kind": "clip", "norm": "l1", "bound": 1.0},
    },
    "record": {"metrics": ["relative_fitness", "staleness"], "every": 10},
    "sweep": {"privacy.epsilon": [1, 100]},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run."""
    out = tmp_path_factory.mktemp("shown") / "run"
    p2psim.run(p2psim.Scenario.from_dict(STAR), out, progress=False)
    return out


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    capsys.readouterr()
    assert main(["show", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_the_table_is_the_one_that_the_run_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("star.yaml").write_text(json.dumps(STAR))
    assert main(["run", "star.yaml", "--quiet", "--jobs", "1"]) == 0
    *printed, _where = capsys.readouterr().out.splitlines()
    assert shown(capsys, "runs/tiny").splitlines() == printed


@pytest.mark.parametrize("format", ["csv", "markdown", "latex", "text"])
def test_every_format_has_every_row(format: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = p2psim.Result.load(folder).summary()
    text = shown(capsys, folder, "--format", format)
    for metric in ("relative_fitness", "staleness"):
        name = metric.replace("_", r"\_") if format == "latex" else metric
        assert text.count(name) == (table["metric"] == metric).sum()
    for value in table["median"]:
        assert (repr(float(value)) if format == "csv" else f"{value:.4g}") in text


def test_csv_has_all_digits(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(shown(capsys, folder, "--format", "csv"))))
    table = p2psim.Result.load(folder).summary()
    assert [float(row["median"]) for row in rows] == table["median"].tolist()
    assert [row["metric"] for row in rows] == table["metric"].tolist()


def test_metrics_and_models_are_chosen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(shown(capsys, folder, "--metric", "staleness", "--model", "main", "--json"))
    assert {(row["metric"], row["model"]) for row in rows} == {("staleness", "main")}
    assert len(rows) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metric", "fitness"], "no metric 'fitness'"),
        (["--model", "mian"], "no model 'mian'"),
    ],
)
def test_a_name_that_is_not_there_is_said_with_those_that_are(
    arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(folder), *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "relative_fitness" in said or "main" in said
