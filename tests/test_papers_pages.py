"""Rows of the pages on the papers name what exists, and docs/make_papers.py makes each image and number of them."""

import csv
import importlib.util
import re
import shlex
import sys
from pathlib import Path

import pytest

import p2psim
from p2psim.cli.main import parser
from p2psim.core.figures import FIGURES
from p2psim.scenario.model import Scenario

ROOT = Path(__file__).parents[1]
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs/papers").glob("*.md"))}
SCENARIOS = {path.stem: path for path in sorted((ROOT / "scenarios").glob("*.yaml"))}

specification = importlib.util.spec_from_file_location("make_papers", ROOT / "docs/make_papers.py")
make_papers = importlib.util.module_from_spec(specification)
sys.modules["make_papers"] = make_papers
specification.loader.exec_module(make_papers)
ROWS = {row.called: row for row in make_papers.ROWS}


def rows_of(page: str) -> list[list[str]]:
    """Rows of tables that have a verdict, without their heads."""
    rows, inside = [], False
    for line in page.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] if line.startswith("|") else []
        inside = bool(cells) and (inside or "verdict" in cells)
        if inside and "verdict" not in cells and set(cells[0]) != {"-"} and cells[0] != "---":
            rows.append(cells)
    return rows


@pytest.mark.parametrize("name", PAGES)
def test_every_row_has_a_verdict_and_what_shows_it_exists(name):
    rows = rows_of(PAGES[name])
    assert len(rows) > 20
    assert [cells[0] for cells in rows if len(cells) != 5 or not cells[4]] == []
    unknown = []
    for cells in rows:
        shown = re.findall(r"`([^`]+)`", cells[1])
        file = ""
        for word in shown:
            if word.startswith(("tests/", "::")):
                before, _, test = word.partition("::")
                file = before or file
                text = (ROOT / file).read_text(encoding="utf-8") if (ROOT / file).is_file() else ""
                unknown += [] if (ROOT / file).exists() and (not test or f"def {test}(" in text) else [word]
            elif re.fullmatch(r"[wfb]_\w+", word):
                unknown += [] if word in SCENARIOS else [word]
    assert unknown == []


@pytest.mark.parametrize("name", PAGES)
def test_commands_can_be_given(name):
    commands = [words for words in re.findall(r"`(p2psim [^`]+)`", PAGES[name]) if " scenarios/" in words]
    assert commands
    for words in commands:
        args = parser().parse_args(shlex.split(words)[1:])
        assert (ROOT / args.scenario).exists()


def test_a_row_for_each_scenario_of_a_paper():
    made = {row.scenario for row in make_papers.ROWS}
    assert len(ROWS) == len(make_papers.ROWS)
    assert made == {name for name in SCENARIOS if re.match("[wfb]_", name)}


@pytest.mark.parametrize("row", make_papers.ROWS, ids=lambda row: row.called)
def test_rows_can_be_run_and_drawn(row, tmp_path):
    run = parser().parse_args(row.run(tmp_path))
    scenario = Scenario.load(run.scenario, [*run.set, f"replicas={run.replicas}"])
    plot = parser().parse_args(row.draw(tmp_path))
    line = f"| `{row.called}` | {scenario.seed} | {row.replicas} |"
    assert line in PAGES[row.scenario[0]].splitlines()
    swept = SCENARIOS[row.scenario].read_text(encoding="utf-8").partition("\nsweep:")[2]
    assert all(f" {key}:" in swept for keys in row.surface for key in keys.split(" by "))
    kinds = plot.kind or [figure.kind for figure in scenario.figure]
    for image in row.images:
        assert image.split("-")[0] in kinds
        assert image.split("-")[0] in FIGURES


def test_the_script_makes_each_image_of_the_pages_once():
    shown = sorted(name for page in PAGES.values() for name in re.findall(r"images/papers/(\w+)\.png", page))
    made = sorted(name for row in make_papers.ROWS for name in (*row.images.values(), *row.surface.values()))
    assert made == sorted(set(shown))
    assert made == sorted(path.stem for path in make_papers.IMAGES.glob("*.png"))


def test_numbers_are_those_of_the_last_records(tmp_path):
    swept = "sweep={learning.algorithm.form: [printed], learning.algorithm.horizon: [10]}"
    result = p2psim.run(
        Scenario.load(SCENARIOS["w_frozen"], [swept, "labels={}", "replicas=3"]),
        tmp_path / "run",
        jobs=1,
        progress="none",
    )
    ends = result.metrics.groupby("replica")["value"].last()
    (line,) = csv.DictReader(make_papers.numbers(tmp_path / "run").splitlines())
    assert line["learning.algorithm.form"] == "printed"
    assert float(line["mean"]) == pytest.approx(sum(ends) / 3)
    spread = (sum((ends - sum(ends) / 3) ** 2) / 2) ** 0.5
    assert float(line["standard error"]) == pytest.approx(spread / 3**0.5)
