"""What docs/sweeps.md shows works as it stands."""

import json
import re
from pathlib import Path

import pytest
import small_study as small
from ruamel.yaml import YAML

import p2psim
from p2psim.study.cells import cells
from p2psim.study.progress import Tally

PAGE = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)


def test_scenarios() -> None:
    search, rule = (YAML(typ="safe").load(block) for block in blocks("yaml"))
    assert len(cells(small.scenario(**search))) == 64
    assert small.scenario(**rule).replicas.most == 1000


def test_lines_of_progress() -> None:
    (line,) = blocks("json")
    assert list(json.loads(line)) == list(Tally(1).as_tree())


def test_reading_with_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = p2psim.run(small.scenario(), tmp_path / "runs" / "study", progress=False)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(next(block for block in blocks("python") if "pandas" in block), names)
    expected = result.metrics.groupby(["cell", "step"])["value"].median()
    assert names["curves"].equals(expected)
    # Steps 0, 10, 20, 30 and 40 of two cells.
    assert len(expected) == 2 * 5
