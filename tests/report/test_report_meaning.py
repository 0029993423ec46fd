"""Figures draw nothing where nothing is defined, and name a quantity, a replica and a fault in one way."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_up_run import EVENTS, Run, footnote, legend, run, with_events
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from p2psim.core.errors import InputError
from p2psim.core.figures import FIGURES
from p2psim.network.metrics import NETWORK_METRICS
from p2psim.report import draw, files, scales, style
from p2psim.report.source import source, where_defined
from p2psim.report.words import FRACTIONS, distinct, metric_label

pytestmark = pytest.mark.usefixtures("look")

#: Network metrics that are numbers before anything was sent: counts, and who is there.
DEFINED = ("messages", "retries", "releases", "present")


def with_metrics(path: Path, **values: list[float]) -> Run:
    """A run of one cell and three replicas, with a record of each metric at the times 0, 1, 2, …"""
    made = run(path, steps=range(1), owners=2, factors=(1.0,))
    rows = [
        {"cell": 0, "replica": replica, "step": 5 * i, "time": float(i), "agent": None, "model": "main",
         "metric": name, "value": value}
        for replica in range(3) for name, listed in values.items() for i, value in enumerate(listed)
    ]  # fmt: skip
    made.metrics = pd.DataFrame(rows).astype({"agent": "Int32"})
    return made


def test_what_has_not_begun_is_undefined_for_every_share_and_mean() -> None:
    own = [name for name, metric in NETWORK_METRICS.items() if metric.__module__.startswith("p2psim.")]
    table = pd.DataFrame(
        [(name, step, float(step), 0.5) for name in own for step in (0, 3)],
        columns=["metric", "step", "time", "value"],
    )
    shown = where_defined(table)
    undefined = shown[shown["value"].isna()]
    assert set(undefined["metric"]) == set(own) - set(DEFINED)
    assert set(undefined["step"]) == {0}
    assert table["value"].notna().all()


def test_a_figure_of_the_network_has_a_gap_before_the_first_message(tmp_path: Path) -> None:
    made = with_metrics(
        tmp_path,
        delivery=[0.0, 0.5, 0.75],
        present=[1.0, 0.5, 1.0],
        participation=[1.0, 1.4, 1.2],
        loss_rate=[0.0, 0.25, 0.25],
    )
    figure = FIGURES["network"].draw(source(made))["network"]
    table = style.numbers(figure)
    lines = table[~table["line"].str.contains("replica")].set_index(["panel", "x"])["y"]
    assert np.isnan(lines["delivery ↑", 0])
    assert lines["delivery ↑"].tolist()[1:] == [0.5, 0.75]
    assert lines["present"].tolist() == [1.0, 0.5, 1.0]
    # That a share is undefined at first is no change of it.
    assert "loss rate 0.25" in footnote(figure)
    # More wakes than are expected are no share of anything: they are drawn where they are.
    axes = next(axes for axes in figure.axes if axes.get_title(loc="left") == "participation")
    assert axes.get_ylim()[1] > 1.4
    assert "participation" not in FRACTIONS
    assert metric_label("participation") == "participation (wakes over expected ticks)"


@pytest.mark.parametrize("kind", ["ecdf", "agents", "degree", "graph"])
def test_a_value_of_the_learner_is_none_of_single_agents(kind: str, tmp_path: Path) -> None:
    made = with_events(tmp_path)
    made.metrics = made.metrics.assign(metric="test_accuracy", agent=0).astype({"agent": "Int32"})
    with pytest.raises(InputError, match=r"test_accuracy has one value per replica.*local_accuracy") as error:
        draw(made, kind, "test_accuracy", tmp_path)
    assert len(error.value.faults) == 1
    others = [made.metrics.assign(metric="local_accuracy", agent=agent) for agent in (0, 1)]
    made.metrics = pd.concat([made.metrics, *others], ignore_index=True)
    with pytest.raises(InputError, match="not one per agent; of single agents the run has local_accuracy"):
        draw(made, kind, "test_accuracy", tmp_path)
    if kind == "ecdf":
        assert list(FIGURES[kind].draw(source(made))) == ["ecdf-local_accuracy"]


def test_the_front_spends_what_tables_say(tmp_path: Path) -> None:
    """The largest ε of all agents and replicas, with round ticks."""
    made = run(tmp_path, {"privacy.epsilon": [1.0, 10.0]}, law=lambda e, *_: 1 / e, steps=range(2))
    spent = 0.777321 * made.ledger["budget"] * (1 + made.ledger["replica"] / 100) - made.ledger["agent"] / 1e4
    made.ledger["epsilon_basic"] = spent
    figure = FIGURES["front"].draw(source(made))["front-relative_fitness"]
    largest = spent.groupby(made.ledger["cell"]).max()
    assert sorted(style.numbers(figure)["x"].unique()) == pytest.approx(sorted(largest))
    (axes,) = figure.axes
    assert "largest of all agents and replicas" in axes.get_xlabel()
    figure.draw_without_rendering()
    assert all(len(label.get_text()) <= 4 for label in axes.get_xticklabels())


@pytest.mark.parametrize("kind", ["spacetime", "graph", "spent", "timing"])
def test_one_replica_is_named_by_the_words_of_its_cell(kind: str, tmp_path: Path) -> None:
    made = with_events(tmp_path)
    other = run(tmp_path, {"a.b": ["one", "two"]}, owners=2, factors=(1.0,))
    made.metrics = other.metrics
    made.events, made.links = (table.assign(cell=1) for table in (EVENTS, made.links))
    made.agents, made.ledger = (table.assign(cell=1) for table in (made.agents, made.ledger))
    made.scenario = {"privacy": {"allocation": "horizon"}, "sweep": {"a.b": ["one", "two"]}}
    (figure,) = FIGURES[kind].draw(source(made)).values()
    assert "One replica (cell 1: two; replica 0)" in footnote(figure)


def test_a_space_time_diagram_says_which_part_of_the_run_it_shows(tmp_path: Path) -> None:
    made = with_events(tmp_path)
    figure = FIGURES["spacetime"].draw(source(made))["spacetime"]
    assert "One replica (0): all 4 messages." in footnote(figure)
    made.events = pd.concat(
        [EVENTS.iloc[:4], *(EVENTS.iloc[[3, 5]].assign(time=[t, t + 0.5], seq=[2 * t, 2 * t + 1], cause=[1, 2 * t])
                            for t in range(10, 410))], ignore_index=True)  # fmt: skip
    figure = FIGURES["spacetime"].draw(source(made))["spacetime"]
    assert "160 messages from time 0 to 168; the run ends at 410." in footnote(figure)


def test_what_each_agent_spends_has_a_colour_by_its_name_or_group(tmp_path: Path) -> None:
    made = with_events(tmp_path)
    made.scenario = {"privacy": {"allocation": "horizon"}}

    def drawn(agents: int, groups: list[str | None]) -> tuple[set[str], set[str]]:
        """Colours of the lines, and words beside their ends and in the legend."""
        releases = [(2 * i, 1.0 + i, "send", i, -1, -1, 0, "ok", 0, 0, 0) for i in range(agents)]
        made.events = pd.DataFrame(releases, columns=EVENTS.columns)
        head, ledger = made.agents.iloc[0].to_dict(), made.ledger.iloc[0].to_dict()
        made.agents = pd.DataFrame(
            [{**head, "index": i, "label": f"bank {i}", "group": groups[i % 2]} for i in range(agents)]
        )
        made.ledger = pd.DataFrame(
            [
                {**ledger, "agent": i, "epsilon_claimed": 1.0 + i, "releases": 1, "budget": 99.0}
                for i in range(agents)
            ]
        )
        (axes,) = (figure := FIGURES["spent"].draw(source(made))["spent"]).axes
        return {to_hex(line.get_color()) for line in axes.lines if len(line.get_xdata()) == 3}, {
            *(text.get_text() for text in axes.texts),
            *legend(figure),
        }

    colours, said = drawn(8, [None, None])
    assert len(colours) == 8
    assert said >= {f"bank {i}" for i in range(8)}
    colours, said = drawn(12, ["small", "large"])
    assert len(colours) == 2
    assert said >= {"small", "large", "bank 0", "bank 11"}
    assert "bank 5" not in said
    colours, said = drawn(12, [None, None])
    assert len(colours) == 1
    assert said >= {"bank 0", "bank 11"}


def test_files_are_named_after_their_kind(tmp_path: Path) -> None:
    made = with_events(tmp_path)
    made.agents = made.agents.assign(degree=[1, 2], betweenness_centrality=[0.0, 0.5], records=[3, 9])
    accuracy = [made.metrics.assign(metric="local_accuracy", agent=agent) for agent in (0, 1)]
    made.metrics = pd.concat([made.metrics, *accuracy], ignore_index=True)
    stems = {path.stem for path in draw(made, "all", folder=tmp_path / "all", format="svg")}
    assert {"degree-local_accuracy", "degree-betweenness-local_accuracy"} <= stems
    assert all(stem.partition("-")[0] in FIGURES for stem in stems)


def test_letters_that_the_font_does_not_have_are_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of all figures and formats; Matplotlib's own warnings would be errors here."""

    def titled(text: str) -> Figure:
        figure = Figure()
        figure.suptitle(text)
        return figure

    figures = {"a": titled("東京 and Zürich"), "b": titled("東京都, 山")}
    assert len(files.save_all(figures, tmp_path, ["png", "pdf"])) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("note: ")
    assert set("東京都山") - set(line) == set()
    assert "ü" not in line
    files.save_all({"c": titled("Zürich, ε ≤ 10⁻⁵")}, tmp_path, ["png"])
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "timing", "log": True}, "log changes nothing of timing"),
        ({"kind": "spacetime", "metric": "delivery"}, "metric changes nothing of spacetime"),
        ({"kind": ["spent", "graph"], "quantile": (0.1, 0.9)}, "quantile changes nothing of spent, graph"),
        ({"kind": "heatmap", "quantile": (0.1, 0.9)}, "quantile changes nothing of heatmap"),
        ({"kind": "fitness", "agent": 1}, "an agent is for collaboration, not for fitness"),
        ({"kind": "paired", "reference": {"a.b": "one"}, "facet": "a.b"}, "one figure: no facet"),
    ],
)
def test_options_without_effect_are_refused(given: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        draw(run(tmp_path, {"a.b": ["one", "two"]}), folder=tmp_path / "figures", **given)  # type: ignore[arg-type]
    assert not (tmp_path / "figures").exists()


def test_agents_that_have_one_value_are_said_together() -> None:
    slow = "{0=4.5, 1=4.5, 2=4.5, 3=1, 4=1}"
    assert distinct(["1", slow]) == ["1", "agents 0–2: 4.5, agents 3, 4: 1"]
    assert distinct(["renewal(up={0=2, 1=2, 2=2, 5=9})", "always"]) == ["renewal", "always"]
    assert (
        distinct(["renewal(up={0=2, 1=2, 2=2, 5=9})", "renewal(up=1)"])[0]
        == "renewal, up agents 0–2: 2, agent 5: 9"
    )


@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize(
    ("low", "high"), [(2.0, 20.0), (0.02, 0.9), (1.0, 400.0), (1e-11, 1e-3), (0.21, 0.23)]
)
def test_names_of_ticks_across_do_not_overlap(low: float, high: float, columns: int) -> None:
    figure = style.new_figure(2.5)
    axes = figure.subplots(1, columns, squeeze=False).flat
    for one in axes:
        scales.fit_values(one, [low, high], log=True, across=True)
    figure.draw_without_rendering()
    boxes = [
        label.get_window_extent()
        for label in axes[0].get_xticklabels()
        if label.get_text() and axes[0].get_xlim()[0] <= label.get_position()[0] <= axes[0].get_xlim()[1]
    ]
    assert len(boxes) > (high >= 10 * low)
    assert not any(one.overlaps(other) for one, other in pairwise(boxes))


def test_entries_of_several_lines_have_room_in_a_legend(tmp_path: Path) -> None:
    """The legend lies below the axes and their labels, whatever the length of the words."""
    words = {"network.exchange": [f"exchange {i} " + "with many words " * 9 for i in range(2)]}
    made = run(tmp_path, {"network.exchange": ["a", "b"], "privacy.epsilon": [1.0, 10.0]}, factors=(1.0,))
    made.scenario = {
        "sweep": {"network.exchange": ["a", "b"], "privacy.epsilon": [1.0, 10.0]},
        "labels": words,
    }
    figure = FIGURES["fitness"].draw(source(made))["fitness"]
    figure.draw_without_rendering()
    (box,) = figure.legends
    assert not box.get_window_extent().overlaps(figure.axes[0].xaxis.label.get_window_extent())
