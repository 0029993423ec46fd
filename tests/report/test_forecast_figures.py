"""Figures of forecasts: each says what it shows and how exact that is; legends and owners are as a person expects."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from made_up_run import footnote
from star_cases import scenario

from p2psim.analysis.forecasts.forecast import ForecastCurve
from p2psim.cli.main import main
from p2psim.report import files
from p2psim.report.forecasts import DrawnForecast, draw_cells

SMALL = {
    "learning.algorithm.theta_max": 1e6,
    "learning.regularizer.l2": 0.01,
    "privacy.sensitivity": {"kind": "declared", "bound": 1.0},
    "privacy.scale_records": 5,
    "record.every": 10,
    "record.events": False,
    "record.models": False,
    # Owner 2 has the largest share of the noise, and owner 1 the smallest.
    "privacy.epsilon": {"0": 100.0, "1": 200.0, "2": 50.0},
}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Figures that are saved from now on, by their stems."""
    found: dict[str, Any] = {}

    def save(figure: Any, folder: Path, stem: str, formats: Any) -> list[Path]:
        found[stem] = figure
        figure.draw_without_rendering()
        return []

    monkeypatch.setattr(files, "save", save)
    return found


def forecast(tmp_path: Path, changes: dict[str, Any]) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(scenario({**SMALL, **changes}).to_yaml())
    assert main(["forecast", str(file), "--figures", str(tmp_path / "figures")]) == 0


def note_lines(figure: Any) -> list[str]:
    (text,) = [text for text in figure.texts if text.get_gid() == "footnote"]
    return text.get_text().splitlines()


def legends(figure: Any) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_every_figure_has_footnotes_and_a_legend_in_words(tmp_path: Path, drawn: dict[str, Any]) -> None:
    forecast(tmp_path, {"sweep": {"privacy.epsilon": [1000.0, float("inf"), {"0": 9.0, "1": 9.0, "2": 7.0}]}})
    assert {stem.removeprefix("forecast-").split("-")[0] for stem in drawn} == {
        "run", "owners", "partners", "surface", "alone", "budgets",
    }  # fmt: skip
    for stem, figure in drawn.items():
        notes = footnote(figure)
        assert "Exact: no approximation" in notes, stem
        assert "noise as if each record stood for 5" in notes, stem
        for text in legends(figure):
            assert not re.search(r"\binf\b|\de\+\d", text), (stem, text)
    assert set(legends(drawn["forecast-run"])) == {
        "ε = 1,000",
        "no noise",
        "agents 0, 1: 9, agent 2: 7",
    }
    assert "ε = 1,000" in legends(drawn["forecast-partners-0"])
    assert "ε = 10,000" in legends(drawn["forecast-partners-0"])
    # Of one cell in three, and not of all.
    assert "Not private: the mechanism as run guarantees nothing. (In 1 of 3 cells.)" in (
        footnote(drawn["forecast-run"])
    )


def test_one_cell_needs_no_name(tmp_path: Path, drawn: dict[str, Any]) -> None:
    forecast(tmp_path, {})
    assert legends(drawn["forecast-run"]) == ["E[ψ]"]
    assert drawn["forecast-owners"].axes[0].get_title(loc="left") == "Whose noise it is"


def test_owners_stand_in_their_order_with_their_names(tmp_path: Path, drawn: dict[str, Any]) -> None:
    forecast(tmp_path, {})
    axes = drawn["forecast-owners"].axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0", "1", "2"]
    heights = [bar.get_height() for bar in axes.patches]
    assert heights[2] == max(heights)
    assert heights[1] == min(heights)
    assert sum(heights) == pytest.approx(100)


def graph(label: str, notes: tuple[str, ...]) -> DrawnForecast:
    each = np.array([1.0, 2.0, 4.0])
    problem = SimpleNamespace(problem=SimpleNamespace(records=each))
    forecast = SimpleNamespace(
        metric="objective_gap",
        curve=ForecastCurve("commits", each, 1 / each, 0.5 / each, 0.3),
        agents=[{}],
        apart=each,
        apart_alone=2 * each,
        setting=SimpleNamespace(cell=problem),
    )
    return DrawnForecast(label, notes, forecast)


def test_figures_of_graphs_have_footnotes_too(tmp_path: Path, drawn: dict[str, Any]) -> None:
    cells = [graph("first", ("Exact.", "Both.")), graph("second", ("Approximate.", "Both."))]
    draw_cells(cells, str(tmp_path))
    notes = note_lines(drawn["forecast-objective_gap"])
    assert notes[0] == "Thick: what is expected; thin: without noise."
    assert notes[1:] == ["Exact. (In 1 of 2 cells.)", "Both.", "Approximate. (In 1 of 2 cells.)"]
    assert note_lines(drawn["forecast-agents-1"])[1:] == ["Approximate.", "Both."]
