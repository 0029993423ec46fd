"""Targets, paired differences, and metrics of the network, drawn from a small study of a channel."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_run import footnote, legend, lines_of
from scipy.stats import t

import p2psim
from p2psim.cli.main import main
from p2psim.core.errors import InputError
from p2psim.report import draw, style
from p2psim.report.figures.bands import draw_network
from p2psim.report.figures.finals import draw_load, draw_paired
from p2psim.report.figures.targets import draw_targets, lines
from p2psim.report.source import Source, source

STUDY: dict[str, Any] = {
    "name": "channel",
    "seed": 3,
    "replicas": 4,
    "network": {
        "topology": {"kind": "star", "agents": 4},
        "exchange": {"kind": "poll", "interval": 1.0, "response": {"exponential": 0.3}},
        "channel": {"airtime": 0.1, "loss": 0.1},
    },
    "data": {"source": {"kind": "linear-regression", "dimension": 2, "points": 30}, "redraw": "never"},
    "learning": {
        "algorithm": {"kind": "async-star", "horizon": 60, "rho": {"h": 0.5}, "theta_max": 3},
        "loss": "squared",
        "regularizer": {"l2": 1e-3},
    },
    "privacy": {
        "mechanism": "laplace",
        "epsilon": 30,
        "sensitivity": {"kind": "clip", "norm": "l1", "bound": 1.0},
    },
    "record": {
        "metrics": [
            "relative_fitness",
            "loss_rate",
            "collision_rate",
            "offline_rate",
            "throughput",
            "epsilon_spent",
        ],
        "every": {"time": 1.0},
    },
    "sweep": {"network.channel.collision": ["none", "aloha"], "network.channel.airtime": [0.05, 0.2]},
}


NAMES = {"none": "collision = none", "aloha": "aloha"}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> p2psim.Result:
    folder = tmp_path_factory.mktemp("channel") / "run"
    return p2psim.run(p2psim.Scenario.from_dict(STUDY), folder, progress=False)


@pytest.fixture
def material(result: p2psim.Result) -> Source:
    return source(result, against="time")


def of_cell(result: p2psim.Result, metric: str, cell: int) -> np.ndarray:
    """Last values of a cell, by replica."""
    rows = result.metrics[(result.metrics["metric"] == metric) & (result.metrics["cell"] == cell)]
    return rows.groupby("replica")["value"].last().to_numpy()


@pytest.mark.usefixtures("look")
def test_targets_are_drawn_where_replicas_reach_them(result: p2psim.Result) -> None:
    target = float(np.median(of_cell(result, "relative_fitness", 0)))
    asked = source(result, "relative_fitness", against="time", target=target)
    drawn = {line.label: line for line in lines(asked, "relative_fitness", target)}
    told = result.time_to("relative_fitness", target)
    for (kind, airtime), mine in told.groupby(["network.channel.collision", "network.channel.airtime"]):
        line = drawn[f"{NAMES[kind]}, airtime = {airtime:g}"]
        assert line.replicas == 4
        assert line.censored.tolist() == mine.loc[~mine["reached"], "time"].tolist()
        assert line.reached.at.tolist() == sorted(set(mine.loc[mine["reached"], "time"]))
    (figure,) = draw_targets(asked).values()
    (axes,) = figure.axes
    assert axes.get_ylim() == pytest.approx((-0.02, 1.02))
    assert figure.get_suptitle().startswith("channel: relative fitness ≤ ")
    never = sum(line.censored.size for line in drawn.values())
    if never:
        assert f"{never} of 16 replicas end without having reached it" in footnote(figure)
    (nobody,) = draw_targets(source(result, "relative_fitness", target=-1.0)).values()
    assert "16 of 16 replicas end without" in footnote(nobody)
    assert all(" ".join(text.split()).endswith("0 of 4; never half") for text in legend(nobody))


@pytest.mark.usefixtures("look")
@pytest.mark.parametrize("count", [1, 4, 8])
def test_paired_differences_have_intervals_from_eight_pairs_on(tmp_path: Path, count: int) -> None:
    study = p2psim.Scenario.from_dict({**STUDY, "replicas": count})
    run = p2psim.run(study, tmp_path / "run", progress=False, jobs=1)
    asked = source(run, "throughput", reference={"network.channel.collision": "none"})
    (figure,) = draw_paired(asked).values()
    (axes,) = figure.axes
    bars = [line.get_xdata() for line in axes.lines if line.get_marker() == "None"][
        1:
    ]  # the first is at zero
    points = [
        float(line.get_xdata()[0])
        for line in axes.lines
        if line.get_markersize() > 5 and line.get_marker() == "o"
    ]
    each = [line.get_xdata() for line in axes.lines if line.get_marker() == "o" and line.get_markersize() < 5]
    rows = [text.get_text().replace("\n", " ") for text in axes.get_yticklabels()]
    assert rows == ["aloha, airtime = 0.05", "aloha, airtime = 0.2"]
    for row, (other, reference) in enumerate([(2, 0), (3, 1)]):
        apart = of_cell(run, "throughput", other) - of_cell(run, "throughput", reference)
        assert points[row] == pytest.approx(apart.mean())
        if count == 8:
            half = t.ppf(0.975, 7) * apart.std(ddof=1) / np.sqrt(8)
            assert bars[row] == pytest.approx([apart.mean() - half, apart.mean() + half])
        elif count == 4:
            assert each[row] == pytest.approx(apart)
    if count < 8:
        assert bars == []
        assert not {"low", "high"} & set(style.numbers(figure))
    if count != 4:
        assert each == []
    words = {
        1: "n = 1 pair of replicas.",
        4: "n = 4 pairs of replicas, each drawn; point: mean difference.",
        8: "n = 8 pairs of replicas; point: mean difference, bar: 95 % (Student's t); filled: without zero.",
    }
    assert words[count] in footnote(figure)


@pytest.mark.usefixtures("look")
def test_a_panel_for_each_metric_that_changes_and_causes_that_add_up(material: Source) -> None:
    figures = draw_network(material)
    # The run recorded by time, which is the usual axis then.
    assert set(figures) == {"network", "network-causes"}
    metrics, causes = figures.values()
    titles = [axes.get_title(loc="left") for axes in metrics.axes]
    assert titles == ["loss rate ↓", "collision rate ↓", "throughput ↑"]
    assert "Always the same, so not drawn: offline rate 0." in footnote(metrics)
    (axes,) = causes.axes
    assert legend(causes) == ["lost by the channel", "collided"]
    rows = material.metrics
    lost, collided = axes.containers
    for cell in range(4):
        for bars, name in ((lost, "loss_rate"), (collided, "collision_rate")):
            of = rows[(rows["metric"] == name) & (rows["cell"] == cell)]
            assert bars[cell].get_width() == pytest.approx(of.groupby("replica")["value"].last().mean())
        assert collided[cell].get_x() == pytest.approx(lost[cell].get_width())


@pytest.mark.usefixtures("look")
def test_medians_against_what_is_swept_of_the_network(result: p2psim.Result) -> None:
    (figure,) = draw_load(source(result)).values()
    titles = [axes.get_title(loc="left").rstrip(" ↓↑") for axes in figure.axes]
    assert titles == ["relative fitness", "loss rate", "collision rate", "throughput", "epsilon spent"]
    axes = figure.axes[3]
    assert list(lines_of(axes)) == ["collision = none", "aloha"]
    aloha = lines_of(axes)["aloha"]
    assert aloha.get_xdata().tolist() == [0.05, 0.2]
    assert aloha.get_ydata() == pytest.approx(
        [np.median(of_cell(result, "throughput", cell)) for cell in (2, 3)]
    )
    # Four replicas are fewer than have quartiles: each is a point.
    table = style.numbers(figure)
    shown = table[
        (table["panel"] == "throughput ↑") & (table["line"] == "aloha, replicas") & (table["x"] == 0.2)
    ]
    assert sorted(shown["y"]) == pytest.approx(sorted(of_cell(result, "throughput", 3)))


def test_what_is_asked_for_must_fit(result: p2psim.Result, tmp_path: Path) -> None:
    for given, message in (
        ({"kind": "targets"}, "give what is to be reached: --metric NAME --target VALUE"),
        ({"target": 1.0}, "give what is to be reached"),
        ({"kind": "curves", "target": 1.0}, "a target is for targets, not for curves"),
        ({"kind": "finals", "reference": {"a": 1}}, "a reference is for paired, not for finals"),
        ({"kind": "paired"}, "give the cells to compare with: --reference KEY=VALUE"),
        ({"reference": {"network.channel.collision": "slotted"}}, "never slotted; it is none, aloha"),
        ({"reference": {"network.channel.loss": 0}}, "does not sweep network.channel.loss"),
        ({"kind": "network", "metric": "relative_fitness"}, "no such metric of the network"),
    ):
        with pytest.raises(InputError, match=message):
            draw(result, folder=tmp_path, **given)
    assert not list(tmp_path.iterdir())


def test_the_command_draws_them(
    result: p2psim.Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plot = ["plot", str(result.path), "--out", str(tmp_path)]
    assert main([*plot, "--metric", "relative_fitness", "--target", "0.5", "--against", "time"]) == 0
    assert main([*plot, "--reference", "network.channel.collision=none", "--metric", "relative_fitness"]) == 0
    assert main([*plot, "--kind", "load", "--metric", "throughput"]) == 0
    assert {path.stem for path in tmp_path.iterdir()} == {
        "targets-relative_fitness-0.5",
        "paired-relative_fitness",
        "load",
    }
    assert main([*plot, "--reference", "network.channel.collision"]) == 2
    assert "--reference takes KEY=VALUE" in capsys.readouterr().err
