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
    small = parser().parse_args(row.run(tmp_path, small=True))
    assert Scenario.load(small.scenario, [*small.set, f"replicas={small.replicas}"]).replicas == 1
    run = parser().parse_args(row.run(tmp_path))
    scenario = Scenario.load(run.scenario, [*run.set, f"replicas={run.replicas}"])
    plot = parser().parse_args(row.draw(tmp_path))
    line = f"| `{row.called}` | {scenario.seed} | {row.replicas} | {row.seconds} |"
    assert line in PAGES[row.scenario[0]].splitlines()
    kinds = plot.kind or [figure.kind for figure in scenario.figure]
    for image in row.images:
        assert image.split("-")[0] in kinds
        assert image.split("-")[0] in FIGURES


def test_the_script_makes_each_image_of_the_pages_once():
    shown = sorted(name for page in PAGES.values() for name in re.findall(r"images/papers/(\w+)\.png", page))
    names = [name for row in make_papers.ROWS for name in (*row.images.values(), *row.surface, row.edges)]
    made = sorted(filter(None, names))
    assert made == sorted(set(shown))
    assert made == sorted(path.stem for path in make_papers.IMAGES.glob("*.png"))


def test_rows_that_do_more_than_a_scenario_and_its_figures_are_made_at_small_size_in_ci():
    """All others are made there as the shipped scenarios that they are."""
    wanted = {row.called for row in make_papers.ROWS if row.changes or row.surface or row.edges}
    assert wanted == set(re.findall(r"--only (\w+)", (ROOT / ".ci/run").read_text(encoding="utf-8")))


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


@pytest.fixture(scope="module")
def surfaces(tmp_path_factory):
    """Few answers of few records: one key in two panels, ε, and an owner that does better alone in some cells."""
    changes = (
        "sweep={data.source.points: [300, 60], privacy.allocation: [horizon, {kind: cap, releases: 20}],"
        " privacy.epsilon: [.inf, 10, 1]}",
        "learning.algorithm.horizon=20",
        "record={metrics: [relative_fitness, isolated_fitness], every: 10}",
        "labels={}",
        "replicas=2",
    )
    scenario = Scenario.load(SCENARIOS["w_fig3_surface"], changes)
    return p2psim.run(scenario, tmp_path_factory.mktemp("surfaces") / "run", jobs=1, progress="none")


def test_surfaces_show_means_of_last_values_and_frame_what_pays(surfaces):
    figure = make_papers.surface(surfaces.path, "surfaces", (0, 2, 1))
    rows = surfaces.metrics[surfaces.metrics["agent"].isin([0]) | surfaces.metrics["agent"].isna()]
    last = rows[rows["step"] == rows["step"].max()]
    keys = ["privacy.allocation", "privacy.epsilon", "data.source.points", "metric"]
    means = last.groupby(keys, observed=True)["value"].mean()
    framed = 0
    for axes, name in zip(figure.axes[:2], ["horizon", "cap(releases=20)"], strict=True):
        assert axes.get_title(loc="left") == name.partition("(")[0]
        assert [text.get_text() for text in axes.get_xticklabels()] == ["60", "300"]
        shared = figure.axes[0].get_yticklabels()
        assert [text.get_text() for text in shared] == ["1", "10", "no noise"]
        cells = [means[name, epsilon, points] for epsilon in (1, 10, float("inf")) for points in (60, 300)]
        written = [float(text.get_text()) for text in axes.texts]
        assert written == [float(f"{cell['relative_fitness']:.2g}") for cell in cells]
        pays = [bool(cell["relative_fitness"] < cell["isolated_fitness"]) for cell in cells]
        frames = {(patch.get_x() // 1, patch.get_y() // 1) for patch in axes.patches}
        assert frames == {(at % 2, at // 2) for at, true in enumerate(pays) if true}
        framed += len(frames)
    assert 0 < framed < 12


def test_vectors_along_edges_count_a_broadcast_for_each_neighbour(tmp_path):
    """Four agents in a ring, of two neighbours each: descent sends two vectors an update, ADMM four a link.

    What an update sends follows what is recorded with it.
    """
    step = "mu: 0.04, commits: 20, smoothness: data, start: local"
    changes = (
        "network.topology=ring",
        "data.source.agents=4",
        "data.source.dimension=3",
        "record.every=5",
        "replicas=2",
        "sweep={zip: {network.exchange: [broadcast, {kind: gossip, mode: edge}], learning.algorithm: ["
        f"{{kind: coordinate-descent, {step}}}, {{kind: gossip-admm, rho: {{mean_weight: 1}}, inner: 2, {step}}}]}}}}",
        "labels={learning.algorithm: [descent, ADMM]}",
    )
    p2psim.run(Scenario.load(SCENARIOS["b_fig1"], changes), tmp_path / "run", jobs=1, progress="none")
    gap, accuracy = make_papers.edges(tmp_path / "run").axes
    for axes in (gap, accuracy):
        medians = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
        assert [line.get_label() for line in medians] == ["descent", "ADMM"]
        assert [list(line.get_xdata()) for line in medians] == [
            pytest.approx([0, 8, 18, 28, 38]),
            pytest.approx([0, 20, 40, 60, 80]),
        ]


def test_all_figures_take_less_than_half_an_hour_on_two_processors(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["make_papers.py", "--list"])
    assert make_papers.main() == 0
    _, *lines, total = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(ROWS)
    minutes = sum((row.seconds + make_papers.DRAWING_SECONDS) / 60 for row in make_papers.ROWS)
    assert total.startswith(f"{minutes:.0f} minutes of a processor")
    assert minutes < 60
    assert total in " ".join((ROOT / "docs/papers.md").read_text(encoding="utf-8").split())
