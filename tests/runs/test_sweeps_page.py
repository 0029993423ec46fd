"""What docs/sweeps.md shows works as it stands."""

import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest
import small_study as small
from ruamel.yaml import YAML

import p2psim
from p2psim.runs.progress import ProgressCount
from p2psim.scenario.cells import cells
from p2psim.scenario.record import Tune

PAGE = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)


def test_scenarios() -> None:
    search, tune, rule = (YAML(typ="safe").load(block) for block in blocks("yaml"))
    assert tune.keys() == {"tune"}
    assert Tune(**tune["tune"]).validation == "problems"
    assert len(cells(small.scenario(**search))) == 64
    assert small.scenario(**rule).replicas.most == 1000


def test_lines_of_progress() -> None:
    (line,) = blocks("json")
    assert list(json.loads(line)) == list(ProgressCount(1).as_tree())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which there is ``runs/study``: two cells with steps 0, 10, 20, 30 and 40, and two metrics."""
    place = tmp_path_factory.mktemp("place")
    record = {"metrics": ["messages", "relative_fitness"], "every": 10}
    p2psim.run(small.scenario(record=record), place / "runs" / "study", progress=False)
    return place


def medians(place: Path) -> dict[tuple[float, int], float]:
    """Median of ψ by budget and step, by the definition."""
    values: dict[tuple[float, int], list[float]] = {}
    for row in p2psim.Result.load(place / "runs" / "study").metrics.to_dict("records"):
        if row["metric"] == "relative_fitness":
            values.setdefault((row["privacy.epsilon"], row["step"]), []).append(row["value"])
    assert len(values) == 2 * 5
    return {group: statistics.median(found) for group, found in values.items()}


def executed(library: str) -> dict[str, Any]:
    """Names that the page's code defines."""
    names: dict[str, Any] = {}
    exec(next(block for block in blocks("python") if f"import {library}" in block), names)
    return names


def test_reading_with_pandas(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    assert executed("pandas")["curves"].to_dict() == pytest.approx(medians(place), rel=1e-15)


def test_reading_curves(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    rows = executed("p2psim")["curves"].set_index(["privacy.epsilon", "step"])
    assert rows["median"].to_dict() == pytest.approx(medians(place), rel=1e-15)


def test_reading_with_duckdb(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    monkeypatch.chdir(place)
    (query,) = blocks("sql")
    rows = duckdb.sql(query).fetchall()
    expected = medians(place)
    assert [row[:2] for row in rows] == sorted(expected)
    assert [row[2] for row in rows] == pytest.approx([expected[row[:2]] for row in rows], rel=1e-15)


def test_reading_with_polars(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    found = {row[:2]: row[2] for row in executed("polars")["curves"].rows()}
    expected = medians(place)
    assert found == pytest.approx(expected, rel=1e-15)
