"""Figures of events, of the graph, of two swept keys, of the privacy spent, and of forecasts."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from made_up_run import EVENTS, footnote, legend, lines_of, run, with_events

import p2psim
from p2psim.analysis.forecasts.study import forecast_scenario
from p2psim.cli.main import main
from p2psim.core.errors import InputError
from p2psim.core.figures import FIGURES
from p2psim.report import style
from p2psim.report.figures.spacetime import messages
from p2psim.report.figures.surface import pareto
from p2psim.report.figures.timing import absences
from p2psim.report.source import source
from p2psim.runs import runner
from p2psim.runs.unfinished import so_far

pytestmark = pytest.mark.usefixtures("look")

STUDY = {
    "name": "study",
    "replicas": 2,
    "network": {"topology": {"kind": "star", "agents": 2}, "exchange": "request"},
    "data": {"source": {"kind": "linear-regression", "dimension": 2, "points": 30}, "redraw": "never"},
    "learning": {
        "algorithm": {"kind": "async-star", "horizon": 20, "rho": 1.0, "theta_max": 3},
        "loss": "squared",
        "regularizer": {"l2": 1e-2},
    },
    "record": {"every": 10},
}


def test_messages_and_absences_of_events() -> None:
    table = messages(EVENTS)
    assert table[["sender", "receiver", "start", "stop", "outcome"]].to_numpy().tolist() == [
        [-1, 0, 0.0, 0.0, "ok"],
        [-1, 1, 0.0, 0.0, "ok"],
        [0, -1, 0.5, 1.0, "ok"],
        [1, -1, 0.6, 1.1, "collision"],
    ]
    assert absences(EVENTS, 8.0).to_numpy().tolist() == [[1, 2.0, 5.0], [1, 6.0, 8.0]]


def test_the_space_time_diagram_says_what_collided(tmp_path: Path) -> None:
    figure = FIGURES["spacetime"].draw(source(with_events(tmp_path)))["spacetime"]
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["learner", "bank 0", "bank 1"]
    assert "not arrived: collided" in legend(figure)
    table = style.numbers(figure)
    assert table[table["line"] == "not arrived"][["x", "y"]].to_numpy().tolist() == [[1.1, 0.0]]


def test_the_graph_has_links_by_what_failed_on_them(tmp_path: Path) -> None:
    figure = FIGURES["graph"].draw(source(with_events(tmp_path)))["graph"]
    assert "2 agents, 2 links; red: up to 50 % of the messages of a link failed." in footnote(figure)
    assert style.numbers(figure)["y"].tolist() == [4.0, 10.0]  # the ε that each has spent
    assert len(figure.axes) == 2
    for spent, said in (([4.0, 4.0], "The same for all agents"), ([np.nan, 4.0], "Grey:")):
        made = with_events(tmp_path)
        made.metrics = pd.concat(
            [
                made.metrics.assign(metric="local_loss", agent=agent, value=value)
                for agent, value in enumerate(spent)
            ]
        )
        (drawn,) = FIGURES["graph"].draw(source(made)).values()
        assert said in footnote(drawn)
        assert len(drawn.axes) == 1  # a scale of one colour would say nothing
        assert len(drawn.axes[0].collections[1].get_offsets()) == 2  # nobody is left out
    made = with_events(tmp_path)
    del made.links
    with pytest.raises(InputError, match="recorded no links"):
        FIGURES["graph"].draw(source(made))


def test_a_single_agent_and_its_learner_are_seen(tmp_path: Path) -> None:
    tree = STUDY | {
        "network": {"topology": {"kind": "star", "agents": 1}, "exchange": "request"},
        "replicas": 1,
    }
    tree["record"] = {"every": 10, "events": True}
    result = p2psim.run(p2psim.Scenario.from_dict(tree), tmp_path / "run", progress=False, jobs=1)
    figure = FIGURES["graph"].draw(source(result))["graph"]
    (axes,) = figure.axes
    figure.canvas.draw()
    assert axes.get_window_extent().height > 0.2 * axes.get_window_extent().width
    for dots in axes.collections[1:]:
        x, y = np.asarray(dots.get_offsets())[0]
        assert axes.get_xlim()[0] < x < axes.get_xlim()[1]
        assert axes.get_ylim()[0] < y < axes.get_ylim()[1]
    assert "1 agent, 1 link" in footnote(figure)


def test_privacy_is_spent_at_releases_until_the_budget_is(tmp_path: Path) -> None:
    made = with_events(tmp_path)
    made.scenario = {"privacy": {"allocation": "horizon", "enforce": "basic"}}
    figure = FIGURES["spent"].draw(source(made))["spent"]
    table = style.numbers(figure)
    assert table[table["line"] == "bank 0"][["x", "y"]].to_numpy().tolist() == [
        [0, 0],
        [0.5, 2],
        [5.5, 4],
        [6, 4],
    ]
    assert "1 of 2 spend their whole budget" in footnote(figure)
    for budget, seen in ((30.0, True), (1e4, False)):
        made.ledger["budget"] = budget
        figure = FIGURES["spent"].draw(source(made))["spent"]
        assert (figure.axes[0].get_ylim()[1] >= budget) == ("budget" in legend(figure)) == seen
        assert ("The budget, 10,000, is off the scale." in footnote(figure)) != seen
    made.ledger["budget"] = [4.0, 100.0]
    made.scenario = {"privacy": {"allocation": {"kind": "geometric"}}}
    with pytest.raises(InputError, match="an even allocation"):
        FIGURES["spent"].draw(source(made))


def test_the_graph_names_up_to_forty_agents_by_label_or_number(tmp_path: Path) -> None:
    made = with_events(tmp_path)

    def named() -> set[str]:
        axes = FIGURES["graph"].draw(source(made))["graph"].axes[0]
        return {text.get_text() for text in axes.texts} - {"learner"}

    made.agents["label"] = ["bank\x07 0", "bank 1"]  # no font draws a bell, and no SVG file may hold it
    assert named() == {r"bank\x07 0", "bank 1"}
    made.agents["label"] = ["0", "1"]
    assert named() == {"0", "1"}
    many = pd.concat([made.agents.iloc[[0]]] * 41, ignore_index=True)
    made.agents = many.assign(index=range(41), label=[f"bank {i}" for i in range(41)])
    made.ledger = pd.concat([made.ledger.iloc[[0]]] * 41, ignore_index=True).assign(agent=range(41))
    assert named() == set()


@pytest.mark.parametrize(("across", "down"), [(5, 4), (24, 4), (60, 4), (4, 60)])
def test_names_on_a_heat_map_do_not_overlap(across: int, down: int, tmp_path: Path) -> None:
    """Each is as high as its letters, and as long as there are, whatever the size of the map."""
    sweep = {
        "network.channel.loss": [round(0.001 * i, 3) for i in range(across)],
        "a.kind": [f"kind-{i}" for i in range(down)],
    }
    made = run(tmp_path, sweep, steps=range(0, 2), owners=1, factors=(1.0,))
    figure = FIGURES["heatmap"].draw(source(made))["heatmap-relative_fitness"]
    figure.draw_without_rendering()
    for axis in (figure.axes[0].xaxis, figure.axes[0].yaxis):
        boxes = [label.get_window_extent() for label in axis.get_ticklabels()]
        assert len(boxes) > 1
        assert not any(one.overlaps(other) for one, other in pairwise(boxes))
        assert axis.get_ticklabels()[0].get_text() in ("0", "kind-0", "kind 0")


def test_a_heat_map_shows_medians_of_two_keys(tmp_path: Path) -> None:
    made = run(
        tmp_path, {"a.b": ["one", "two", "three"], "privacy.epsilon": [1.0, 10.0]}, law=lambda e, *_: 1 / e
    )
    figure = FIGURES["heatmap"].draw(source(made))["heatmap-relative_fitness"]
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["1", "10"]
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["one", "two", "three"]
    assert style.numbers(figure)["y"].tolist() == pytest.approx([1.0, 0.1] * 3)
    with pytest.raises(InputError, match="two swept keys"):
        FIGURES["heatmap"].draw(source(run(tmp_path, {"privacy.epsilon": [1.0, 10.0]})))


def test_the_front_keeps_what_nothing_beats(tmp_path: Path) -> None:
    points = np.array([[1.0, 5.0], [1.0, 4.0], [2.0, 4.5], [3.0, 2.0], [4.0, 2.0]])
    assert np.transpose(pareto(points, rising=False)).tolist() == [[1, 4], [3, 2]]
    assert np.transpose(pareto(points, rising=True)).tolist() == [[1, 5]]
    made = run(tmp_path, {"a.b": ["one", "two"], "privacy.epsilon": [1.0, 10.0]}, law=lambda e, *_: 1 / e)
    made.ledger["epsilon_basic"] = made.ledger["budget"] / 2
    (axes,) = FIGURES["front"].draw(source(made))["front-relative_fitness"].axes
    line = lines_of(axes)["one"]
    assert line.get_xdata() == pytest.approx([0.5, 5.0])
    assert line.get_ydata() == pytest.approx([1.0, 0.1])


@pytest.mark.parametrize(
    ("sizes", "unit", "texts"),
    [
        ((9.4e-5, 2e-5), "in units of 10⁻⁶", {"94", "20"}),
        ((3e5, 2.5e6), "in units of 10⁶", {"0.30", "2.5"}),
        ((0.5, 0.02), "", {"0.50", "0.020"}),
        ((9.4e-5, 3.0), "", {"9.4·10⁻⁵", "3.0"}),  # no power makes both short
    ],
)
def test_numbers_of_a_heat_map_are_written_as_people_read_them(
    tmp_path: Path, sizes: tuple[float, float], unit: str, texts: set[str]
) -> None:
    sweep = {"privacy.epsilon": [1.0, 2.0], "data.partition.records": [100, 200, 300]}
    made = run(tmp_path, sweep, law=lambda epsilon, *_: sizes[int(epsilon) - 1], factors=(1.0,))
    figure = FIGURES["heatmap"].draw(source(made))["heatmap-relative_fitness"]
    axes, bar = figure.axes
    assert {text.get_text() for text in axes.texts} == texts
    assert (unit in bar.get_ylabel()) if unit else "units of" not in bar.get_ylabel()
    assert not re.search(r"\de[-+]?\d", " ".join(text.get_text() for text in axes.texts))
    assert set(style.numbers(figure)["y"]) == set(sizes)  # the table has them as they are


def test_a_heat_map_of_nothing_finite_says_so(tmp_path: Path) -> None:
    sweep = {"privacy.epsilon": [1.0, 2.0], "data.partition.records": [100, 200, 300]}
    made = run(tmp_path, sweep, law=lambda *_: np.nan, factors=(1.0,))
    with pytest.raises(InputError, match="undefined or infinite in every cell"):
        FIGURES["heatmap"].draw(source(made))


def test_agents_against_their_number_of_neighbours(tmp_path: Path) -> None:
    made = run(tmp_path, extra=("test_accuracy",))
    made.agents["degree"] = 1 + made.agents["index"] * 2
    (figure,) = FIGURES["degree"].draw(source(made)).values()
    (line,) = lines_of(figure.axes[0]).values()
    assert line.get_xdata().tolist() == [1, 3, 5]
    assert line.get_ydata() == pytest.approx([level * (1 - np.exp(-5)) for level in (0.5, 0.6, 0.7)])


def test_a_forecast_stands_beside_means_of_its_run(tmp_path: Path) -> None:
    scenario = p2psim.Scenario.from_dict(STUDY)
    result = p2psim.run(scenario, tmp_path / "run", progress=False, jobs=1)
    figure = FIGURES["forecast"].draw(source(result))["forecast-relative_fitness"]
    table = style.numbers(figure)
    (expected,) = forecast_scenario(scenario)
    shown = table[table["line"].str.endswith("forecast")]
    np.testing.assert_allclose(shown["y"], expected.forecast.curve.expected)
    rows = result.metrics.groupby("step")["value"].mean()
    np.testing.assert_allclose(table[table["line"] == "async star"]["y"], rows)
    assert figure.axes[0].get_xlabel().startswith("commits")
    with pytest.raises(InputError, match="needs a run folder"):
        FIGURES["forecast"].draw(source(SimpleNamespace(**vars(run(tmp_path)))))


def test_a_run_that_has_not_finished_is_drawn_as_far_as_it_got(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run is cut off when its results are to be merged: its batches are there, and no table is."""
    scenario = p2psim.Scenario.from_dict(STUDY)

    def cut_off(*_: object) -> None:
        raise RuntimeError("cut off")

    whole = p2psim.run(scenario, tmp_path / "whole", progress=False, jobs=1)
    monkeypatch.setattr(runner.compaction, "finish", cut_off)
    with pytest.raises(RuntimeError, match="cut off"):
        p2psim.run(scenario, tmp_path / "run", progress=False, jobs=1)
    assert (
        main(["plot", str(tmp_path / "run"), "--kind", "fitness", "--out", str(tmp_path), "--format", "svg"])
        == 0
    )
    assert "(2 simulations so far)" in " ".join((tmp_path / "fitness.svg").read_text().split())
    rows = whole.metrics[whole.metrics["replica"] == 0]["value"]
    table = pd.read_csv(tmp_path / "fitness.csv")
    np.testing.assert_allclose(table[table["line"].str.endswith("replica 0")]["y"], rows)


def test_a_forecast_of_a_run_recorded_by_time_is_drawn_against_time(tmp_path: Path) -> None:
    tree = {
        "name": "ring",
        "replicas": 2,
        "network": {"topology": {"kind": "ring", "agents": 4}, "exchange": "broadcast"},
        "data": {"source": {"kind": "linear-regression", "dimension": 2, "points": 30}, "redraw": "never"},
        "learning": {
            "algorithm": {"kind": "coordinate-descent", "mu": 0.5, "time": 8.0, "start": "zero"},
            "loss": "squared",
            "regularizer": {"l2": 0.1},
        },
        "record": {"metrics": ["objective_gap"], "every": {"time": 2.0}},
    }
    result = p2psim.run(p2psim.Scenario.from_dict(tree), tmp_path / "run", progress=False, jobs=1)
    figure = FIGURES["forecast"].draw(source(result))["forecast-objective_gap"]
    assert "time" in figure.axes[0].get_xlabel()
    table = style.numbers(figure)
    expected = table["line"].str.endswith("forecast")
    assert table[expected]["x"].tolist() == [0, 2, 4, 6, 8]
    means = result.metrics.groupby("time")["value"].mean()
    drawn = table[~expected & ~table["line"].str.contains("replica")].set_index("x")["y"]
    np.testing.assert_allclose(drawn.loc[means.index], means)


def test_words_in_lists_are_those_of_values_that_have_no_results_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {
        "privacy.epsilon": [1, 10, 100],
        "network.exchange": ["request", {"kind": "request", "busy": "queue", "service": 0.1}],
    }
    words = {"privacy.epsilon": ["little", "some", "much"], "network.exchange": ["at once", "waits"]}
    tree = {**STUDY, "sweep": keys, "labels": words}
    tree["privacy"] = {"mechanism": "laplace", "sensitivity": {"kind": "clip", "bound": 1.0}}
    monkeypatch.setattr(runner.compaction, "finish", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        p2psim.run(p2psim.Scenario.from_dict(tree), tmp_path / "run", progress=False, jobs=1)
    found = so_far(tmp_path / "run")
    assert found is not None
    made = source(replace(found, metrics=found.metrics[found.metrics["cell"] == 5]))
    assert made.values["privacy.epsilon"] == {"1": "little", "10": "some", "100": "much"}
    assert list(made.values["network.exchange"].values()) == ["at once", "waits"]
