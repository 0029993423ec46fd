"""Figures of whatever a user names a thing, of every exchange, and when one of them fails."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_up_run import footnote, run
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy.stats import t

import p2psim
from p2psim.core.errors import SimulationError
from p2psim.core.figures import FIGURES
from p2psim.data.sources import Arrays
from p2psim.report import draw
from p2psim.report.files import save
from p2psim.report.notes import means
from p2psim.report.panels import draw_means
from p2psim.report.source import FigureRequest, source
from p2psim.report.style import line_style, look, new_axes, numbers

NAMES = st.text(st.sampled_from("$\\{}_^%#& ax"), min_size=1, max_size=12).filter(str.strip)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAMES, cells=st.lists(NAMES, min_size=2, max_size=2, unique=True))
def test_names_are_never_formulas(tmp_path: Path, name: str, cells: list[str]) -> None:
    r = run(tmp_path, {"privacy.allocation": cells}, steps=range(0, 101, 50), commits=20, factors=(0.5, 1.0))
    r.manifest["name"] = name
    r.agents["label"] = [f"{name} {i}" for i in r.agents["index"]]
    stems = {path.stem for path in draw(r, folder=tmp_path / "figures")}
    assert {"fitness", "timing"} <= stems


def test_a_dollar_sign_is_drawn_as_it_is_written(tmp_path: Path) -> None:
    r = run(tmp_path, {"privacy.epsilon": [1.0, 100.0]}, commits=20)
    r.manifest["name"] = "from $5 to $x_{"
    draw(r, kind="timing", folder=tmp_path)
    assert "from $5 to $x_{" in (tmp_path / "timing.svg").read_text().replace("&#36;", "$")


def test_powers_of_ten_are_readable(tmp_path: Path) -> None:
    r = run(tmp_path, {"privacy.epsilon": [1.0, 10.0, 1000.0]})
    svg = next(path for path in draw(r, kind="fitness", folder=tmp_path) if path.suffix == ".svg").read_text()
    assert "<!-- 10⁻³ -->" in svg
    assert "mathdefault" not in svg


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize(("low", "high"), [(-3.3, -0.8), (-9, 1.5)])
def test_over_decades_only_powers_of_ten_are_labelled(
    tmp_path: Path, low: float, high: float, across: bool
) -> None:
    figure = Figure(figsize=(3, 3))
    axes = figure.add_subplot()
    if across:
        axes.set(xscale="log", xlim=(10**low, 10**high))
    else:
        axes.set(yscale="log", ylim=(10**low, 10**high))
    axis = axes.xaxis if across else axes.yaxis
    with look():
        save(figure, tmp_path, "powers")
        labels = [one.get_text() for minor in (False, True) for one in axis.get_ticklabels(minor=minor)]
    assert any(labels)
    assert all(re.fullmatch(r"10⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+", label) for label in labels if label)


def test_one_kind_that_fails_does_not_lose_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> dict[str, object]:
        raise ValueError("negative values")

    monkeypatch.setattr(FIGURES["epsilon"], "draw", broken)
    r = run(tmp_path, {"privacy.epsilon": [1.0, 10.0, 100.0]}, commits=20)
    with pytest.raises(SimulationError, match=r"epsilon could not be drawn: negative values"):
        draw(r, kind="all")
    assert (tmp_path / "figures" / "fitness.png").exists()
    assert (tmp_path / "figures" / "timing.png").exists()


STAR = {
    "name": "timing",
    "network": {"topology": {"kind": "star", "agents": 3}},
    "data": {"source": {"kind": "linear-regression", "points": 30, "dimension": 2}},
    "learning": {"loss": "squared", "regularizer": {"l2": 0.1}},
    "record": {"events": True, "metrics": ["relative_fitness"]},
}


def timing(scenario: dict[str, object], tmp_path: Path) -> tuple[np.ndarray, np.ndarray, str]:
    """Commits and agents of the marks that the figure shows, and what it calls an agent."""
    result = p2psim.run(p2psim.Scenario.from_dict(scenario), tmp_path / "run", jobs=1, progress=False)
    figure = FIGURES["timing"].draw(source(result))["timing"]
    FigureCanvasAgg(figure).draw()
    marks = figure.axes[0].collections[1].get_offsets()
    shares = [bar.get_width() for bar in figure.axes[1].patches]
    events = result.events
    commits = int((events["kind"] == "commit").sum())
    assert sum(shares) == pytest.approx(100 * len(marks) / commits)
    # Marks stand at the times of commits.
    times = np.unique(events.loc[events["kind"] == "commit", "time"])
    return np.searchsorted(times, marks[:, 0]) + 1, marks[:, 1].astype(int), figure.axes[0].get_ylabel()


def test_timing_of_rounds_shows_all_answers_of_each_round(tmp_path: Path) -> None:
    """Without losses every owner's answer is used in every round."""
    scenario = STAR | {
        "network": STAR["network"] | {"exchange": "round"},
        "learning": STAR["learning"]
        | {"algorithm": {"kind": "synchronous-descent", "horizon": 6, "rho": 0.1, "theta_max": 3}},
    }
    commits, agents, word = timing(scenario, tmp_path)
    assert word == "owner"
    assert sorted(zip(commits, agents, strict=True)) == [(k, i) for k in range(1, 6) for i in range(3)]


def test_timing_of_rounds_leaves_out_lost_and_late_answers(tmp_path: Path) -> None:
    scenario = STAR | {
        "network": STAR["network"]
        | {
            "exchange": {"kind": "round", "response": {"uniform": [0.0, 0.9]}, "deadline": 0.6},
            "channel": {"loss": 0.2},
        },
        "learning": STAR["learning"]
        | {"algorithm": {"kind": "synchronous-descent", "horizon": 30, "rho": 0.1, "theta_max": 3}},
    }
    commits, agents, _ = timing(scenario, tmp_path)
    pairs = list(zip(commits, agents, strict=True))
    assert len(set(pairs)) == len(pairs) < 29 * 3


def test_timing_of_a_graph_shows_who_updated(tmp_path: Path) -> None:
    scenario = STAR | {
        "network": {"topology": {"kind": "ring", "agents": 5}, "exchange": "broadcast"},
        "data": {"source": {"kind": "linear-regression", "points": 10, "dimension": 2}},
        "learning": STAR["learning"]
        | {"algorithm": {"kind": "coordinate-descent", "mu": 1.0, "updates_per_agent": 8}},
        "record": {"events": True},
    }
    commits, agents, word = timing(scenario, tmp_path)
    assert word == "agent"
    assert list(commits) == list(range(1, len(commits) + 1))
    assert set(agents) <= set(range(5))


def test_runs_of_arrays_given_in_python_are_drawn(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    X = [random.uniform(-0.5, 0.5, (30, 2)) for _ in range(3)]
    scenario = STAR | {
        "network": STAR["network"] | {"exchange": "request"},
        "data": {"source": Arrays.per_agent(X, [x.sum(axis=1) for x in X])},
        "learning": STAR["learning"]
        | {"algorithm": {"kind": "async-star", "horizon": 20, "rho": 0.1, "theta_max": 3}},
        "privacy": {"sensitivity": {"kind": "clip", "bound": 1.0}, "mechanism": "laplace", "epsilon": 5},
        "sweep": {"privacy.allocation": ["horizon", {"kind": "cap", "releases": 15}]},
    }
    result = p2psim.run(p2psim.Scenario.from_dict(scenario), tmp_path / "run", jobs=1, progress=False)
    for drawn in (result, p2psim.Result.load(tmp_path / "run")):
        assert {path.stem for path in drawn.plot("fitness")} == {"fitness"}


#: What each kind needs to be asked; all others are drawn as they come.
ASKED = {
    "collaboration": {"against": "privacy.epsilon"},
    "targets": {"metric": "relative_fitness", "target": 0.5},
    "paired": {"reference": {"privacy.epsilon": 1.0}},
    "heatmap": {"metric": "relative_fitness"},
}

#: Kinds that show one replica, or quartiles over agents.
OF_AGENTS = {"timing", "spacetime", "graph", "spent", "ecdf", "agents", "degree"}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> p2psim.Result:
    """Three replicas of a star from which every figure of replicas can be drawn."""
    tree = {
        "name": "small",
        "replicas": 3,
        "network": {
            "topology": {"kind": "star", "agents": 3},
            "exchange": {"kind": "poll", "interval": 1.0, "response": {"uniform": [0.1, 0.5]}},
            "channel": {"loss": 0.2},
        },
        "data": {"source": {"kind": "linear-regression", "dimension": 2, "points": 90}},
        "learning": {
            "algorithm": {"kind": "async-star", "horizon": 30, "rho": {"h": 0.5}, "theta_max": 3},
            "loss": "squared",
            "regularizer": {"l2": 1e-2},
        },
        "privacy": {
            "mechanism": "laplace",
            "sensitivity": {"kind": "clip", "norm": "l1", "bound": 1.0},
            "allocation": {"kind": "cap", "releases": 30},
        },
        "record": {
            "metrics": [
                "relative_fitness",
                "isolated_fitness",
                "objective",
                "loss_rate",
                "delivery",
                "epsilon_spent",
            ],
            "every": 10,
        },
        "sweep": {
            "privacy.epsilon": [1.0, 10.0, 100.0],
            "network.channel.loss": [0.0, 0.3],
        },
    }
    folder = tmp_path_factory.mktemp("small") / "run"
    return p2psim.run(p2psim.Scenario.from_dict(tree), folder, progress=False, jobs=1)


@pytest.mark.parametrize("kind", [name for name in FIGURES if name not in {*OF_AGENTS, "size", "groups"}])
def test_of_few_replicas_each_is_drawn_and_no_interval(small: p2psim.Result, kind: str) -> None:
    with look():
        asked = source(small).showing(FigureRequest(kind=kind, **ASKED.get(kind, {})))
        drawn = FIGURES[kind].draw(asked)
    assert drawn
    for name, figure in drawn.items():
        table = numbers(figure)
        assert not {"low", "high"} & set(table), name
        artists = [one for axes in figure.axes for one in (*axes.collections, *axes.patches)]
        if kind not in ("collaboration", "network", "heatmap", "finals"):  # who gains is shaded; shares; rows
            assert artists == [], name
        if kind not in (
            "network",
            "heatmap",
            "targets",
        ):  # shares of all attempts, medians, a curve with steps
            assert table["line"].str.contains("replica").any(), name
        assert not re.search("25 to 75|95 %", footnote(figure)), name


@pytest.mark.parametrize("geometric", [False, True])
@pytest.mark.parametrize("count", [1, 7, 8])
def test_means_have_intervals_from_eight_replicas_on(count: int, geometric: bool) -> None:
    values = np.geomspace(1.0, 3.0, count) if count > 1 else np.array([2.0])
    with look():
        figure, axes = new_axes()
        draw_means(axes, [0.0], [values], "all", line_style(0), geometric)
    table = numbers(figure)
    scaled = np.log(values) if geometric else values
    back = np.exp if geometric else np.asarray
    of_mean = table[table["line"] == "all"]
    assert of_mean["y"].item() == pytest.approx(back(scaled.mean()))
    if count < 8:
        assert "low" not in table
        assert list(axes.collections) == []
        assert table[table["line"] == "all, replicas"]["y"].tolist() == pytest.approx(values)
    else:
        half = t.ppf(0.975, count - 1) * scaled.std(ddof=1) / np.sqrt(count)
        assert of_mean["low"].item() == pytest.approx(back(scaled.mean() - half))
        assert of_mean["high"].item() == pytest.approx(back(scaled.mean() + half))
    assert ("95 %" in means(count)) == (count >= 8)
    assert ("each drawn" in means(count)) == (count == 7)
