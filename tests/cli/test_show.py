"""``p2psim show``: the table of a finished run, whole or in part, in the formats that papers and spreadsheets take."""

import csv
import io
import json
from pathlib import Path
from string import ascii_lowercase

import pytest
from graph_cases import graph_scenario
from small_study import tree

import p2psim
from p2psim.cli.main import main
from p2psim.cli.show import print_result
from p2psim.runs.summary import rows_of

STAR = tree(record={"metrics": ["relative_fitness", "staleness"], "every": 10})


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
    assert shown(capsys, "runs/small").splitlines() == printed


def test_the_text_has_a_column_for_each_metric(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = p2psim.Result.load(folder).summary()
    text = shown(capsys, folder)
    assert [text.count(metric) for metric in ("relative_fitness", "staleness")] == [1, 1]
    for value in table[["median", "q25", "q75"]].to_numpy().ravel():
        assert f"{value:.4g}" in text
    assert max(map(len, text.splitlines())) <= 80


def test_flags_are_told_apart_by_letters(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A comma inside of a part is none between flags; there may be more flags than letters."""
    result = p2psim.Result.load(folder)
    rows = [row for row in rows_of(result) if row["metric"] == "staleness"][:2]
    many = [f"raised_{number}" for number in range(28)]
    chosen = "tuned: {kind: clip, bound: [1, 2]}"
    flags = [", ".join(many), f"{chosen}, {many[0]}"]
    print_result(result, [row | {"flags": text} for row, text in zip(rows, flags, strict=True)])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    of_flag = {" ".join(words[1:]): words[0] for words in lines if words[1:2] and "_" in words[1]}
    assert [of_flag[flag] for flag in many] == [*ascii_lowercase, "aa", "ab"]
    assert ["ac", *chosen.split()] in lines
    assert any(words[-2:] == ["ac", "a"] for words in lines)


def test_rows_that_a_key_does_not_concern_are_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first rows are those of the run's own model, and flags are explained once."""
    changes = {"learning.baselines": ["local"], "sweep": {"privacy.epsilon": [1.0, 10.0, 100.0]}}
    p2psim.run(graph_scenario({**changes, "replicas": 1}), tmp_path / "run", jobs=1, progress=False)
    lines = shown(capsys, tmp_path / "run").splitlines()
    words = [line.split() for line in lines]
    head = next(number for number, line in enumerate(words) if line[:2] == ["epsilon", "model"])
    assert [line[:2] for line in words[head + 1 : head + 5]] == [
        ["1", "main"], ["10", "main"], ["100", "main"], ["all", "local"],
    ]  # fmt: skip
    assert sum("not_private" in line for line in lines) == 1


@pytest.mark.parametrize("format", ["csv", "markdown", "latex", "json"])
def test_every_format_has_every_row(format: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = p2psim.Result.load(folder).summary()
    text = shown(capsys, folder, "--format", format)
    for metric in ("relative_fitness", "staleness"):
        name = metric.replace("_", r"\_") if format == "latex" else metric
        assert text.count(name) == (table["metric"] == metric).sum()
    for value in table["median"]:
        assert (repr(float(value)) if format in ("csv", "json") else f"{value:.4g}") in text


def test_csv_has_all_digits(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(shown(capsys, folder, "--format", "csv"))))
    table = p2psim.Result.load(folder).summary()
    assert [float(row["median"]) for row in rows] == table["median"].tolist()
    assert [row["metric"] for row in rows] == table["metric"].tolist()


@pytest.mark.parametrize("format", ["csv", "json"])
def test_what_must_be_said_with_numbers_goes_to_standard_error(
    format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bound that is claimed and does not hold."""
    claimed = {"mechanism": "laplace", "epsilon": 10, "sensitivity": {"kind": "declared", "bound": 1e-6}}
    p2psim.run(p2psim.Scenario.from_dict(tree(privacy=claimed)), tmp_path / "run", progress=False)
    assert "note: " in shown(capsys, tmp_path / "run")
    capsys.readouterr()
    assert main(["show", str(tmp_path / "run"), "--format", format]) == 0
    printed = capsys.readouterr()
    assert "note: " in printed.err
    assert "note: " not in printed.out


def test_metrics_and_models_are_chosen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(shown(capsys, folder, "--metric", "staleness", "--model", "main", "--format", "json"))
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
