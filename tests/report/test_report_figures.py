"""Figures: files, lines, labels, footnotes, and clear errors where a run lacks something."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from made_up_run import footnote, legend, lines_of, psi, run, text_of
from matplotlib import pyplot
from matplotlib.backends.backend_agg import FigureCanvasAgg
from pairs import few

from p2psim.core import figures as core_figures
from p2psim.core.errors import InputError
from p2psim.core.figures import ALONG_THE_RUN, FIGURES, KIND_NAMES
from p2psim.report import draw
from p2psim.report.source import source
from p2psim.report.words import number
from p2psim.scenario.rules import all_meanings

SWEEP = {"privacy.epsilon": [1.0, 10.0, 100.0]}
#: Kinds that need groups, a target, a reference, isolated ψ, or records of the network: others test them.
OTHERS = ("degree", "front", "spacetime", "graph", "spent", "forecast", "heatmap")
ASKED_FOR = ("groups", "targets", "paired", "network", "load", "collaboration", "alone", *OTHERS)
STEPS = np.arange(0, 301, 10)


def test_every_kind_writes_its_files(tmp_path) -> None:
    r = run(
        tmp_path, {"data.partition.records": [900, 3000, 9000], **SWEEP}, commits=50, extra=("test_accuracy",)
    )
    # Single agents differ in their records from cell to cell.
    of_agents = ("finals-test_accuracy", "agents-test_accuracy", "ecdf-test_accuracy")
    paths = draw(r)
    assert {p.name for p in paths} == {
        f"{stem}.{end}"
        for stem in (
            "fitness",
            "timing",
            "epsilon",
            "size",
            "curves-test_accuracy",
            "heatmap-relative_fitness",
            *of_agents,
        )
        for end in ("png", "svg", "csv")
    }
    assert sorted(p.name for p in (tmp_path / "figures").iterdir()) == sorted(p.name for p in paths)
    for path in paths:
        head = path.read_bytes()[:200]
        assert head.startswith({".png": b"\x89PNG", ".svg": b"<?xml", ".csv": b"panel,line,x,y"}[path.suffix])
    for kind in KIND_NAMES:
        if kind not in ASKED_FOR:
            assert draw(r, kind=kind, folder=tmp_path / "other", format="svg")
    assert [p.name for p in draw(r, kind="fitness", against="time")] == [
        "fitness-time.png",
        "fitness-time.svg",
        "fitness-time.csv",
    ]
    assert not pyplot.get_fignums()


def test_drawing_again_gives_the_same_bytes_and_leaves_settings_alone(tmp_path) -> None:
    r = run(tmp_path, SWEEP, commits=30)
    before = dict(mpl.rcParams)
    first = {p.name: p.read_bytes() for p in draw(r)}
    second = {p.name: p.read_bytes() for p in draw(r)}
    assert first == second
    assert dict(mpl.rcParams) == before
    assert not any(b"<dc:date>" in content for content in first.values())


def test_a_format_is_the_same_bytes_alone_and_beside_another(tmp_path) -> None:
    r = run(tmp_path, SWEEP)
    beside = {p.name: p.read_bytes() for p in draw(r, kind="fitness")}
    alone = draw(r, kind="fitness", format="svg", folder=tmp_path / "alone")
    assert {p.name: p.read_bytes() for p in alone}.items() < beside.items()


@pytest.mark.usefixtures("look")
def test_fitness_lines_are_the_medians(tmp_path) -> None:
    figure = FIGURES["fitness"].draw(source(run(tmp_path, SWEEP)))["fitness"]
    (axes,) = figure.axes
    assert axes.get_yscale() == "log"
    assert axes.get_xlabel() == "commits k"
    assert axes.get_ylabel().split("\n") == ["relative fitness ψ (dimensionless)", "lower is better"]
    lines = lines_of(axes)
    assert list(lines) == ["ε = 1", "ε = 10", "ε = 100"]
    for (_, line), band, epsilon in zip(lines.items(), axes.collections, (1.0, 10.0, 100.0), strict=True):
        law = np.array([psi(epsilon, 1000, k) for k in STEPS])
        np.testing.assert_allclose(line.get_xdata(), STEPS)
        np.testing.assert_allclose(line.get_ydata(), law)
        corners = band.get_paths()[0].vertices
        last = corners[corners[:, 0] == 300][:, 1]
        assert (last.min(), last.max()) == pytest.approx((law[-1] / 2, law[-1] * 2))
    # Numbers in order have colours from dark to light, which can be read in grey; names stand beside the lines' ends.
    grey = [rgb_to_grey(line.get_color()) for line in lines.values()]
    assert grey[0] < grey[1] < grey[2]
    assert not figure.legends
    assert [text.get_text() for text in axes.texts] == ["ε = 100", "ε = 10", "ε = 1"]
    assert footnote(figure) == "n = 9 replicas; line: median, band: 25 to 75 %."


def rgb_to_grey(color) -> float:
    return float(np.dot(mpl.colors.to_rgb(color), (0.299, 0.587, 0.114)))


@pytest.mark.parametrize("of_each", [True, False])
def test_means_over_agents_are_named(of_each: bool, tmp_path) -> None:
    r = run(tmp_path, SWEEP, extra=("isolated_fitness",))
    if not of_each:
        r.metrics = r.metrics[r.metrics["agent"].fillna(0) == 0].assign(agent=pd.NA)
    for kind in ("curves", "finals"):
        (figure,) = FIGURES[kind].draw(source(r, "isolated_fitness")).values()
        assert ("each the mean over 3 agents" in footnote(figure)) == of_each


def test_what_never_changes_is_no_curve_unless_asked_for(tmp_path) -> None:
    r = run(tmp_path, SWEEP, extra=("isolated_fitness", "consensus_distance"))
    r.metrics.loc[r.metrics["metric"] == "isolated_fitness", "value"] = 0.25
    assert set(FIGURES["curves"].draw(source(r))) == {"curves-consensus_distance"}
    assert set(FIGURES["curves"].draw(source(r, "isolated_fitness"))) == {"curves-isolated_fitness"}
    assert set(FIGURES["finals"].draw(source(r))) == {"finals-isolated_fitness", "finals-consensus_distance"}


@pytest.mark.usefixtures("look")
@pytest.mark.parametrize(
    "metric", few(["a_metric_whose_name_would_run_over_both_ends_of_its_axis", *all_meanings()], 12)
)
def test_labels_of_axes_lie_inside_the_figure(metric, tmp_path) -> None:
    r = run(tmp_path, SWEEP, factors=(1.0,), extra=(metric,) if metric != "relative_fitness" else ())
    r.manifest["name"] = " ".join(["long"] * 20)
    for kind in ("curves", "epsilon", "finals") if "run_over" in metric else ("curves",):
        for figure in FIGURES[kind].draw(source(r, metric)).values():
            drawn = FigureCanvasAgg(figure)
            drawn.draw()
            for axes in figure.axes:
                labels = (
                    axes.xaxis.label,
                    axes.yaxis.label,
                    axes._left_title,
                    figure._suptitle,
                    *figure.texts,
                )
                for label in [label for label in labels if label and label.get_text()]:
                    box = label.get_window_extent()
                    assert figure.bbox.x0 <= box.x0
                    assert box.x1 <= figure.bbox.x1
                    assert figure.bbox.y0 <= box.y0
                    assert box.y1 <= figure.bbox.y1


@pytest.mark.usefixtures("look")
def test_many_lines_have_panels_of_their_own(tmp_path) -> None:
    r = run(
        tmp_path,
        {"privacy.epsilon": [float(2**k) for k in range(20)]},
        factors=(1.0,),
        steps=range(0, 21, 10),
    )
    figure = FIGURES["fitness"].draw(source(r))["fitness"]
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        f"ε = {number(2.0**k)}" for k in range(20)
    ]
    for k, axes in enumerate(figure.axes):
        # The others are there in grey, to compare with.
        assert len(axes.lines) == 21
        assert list(lines_of(axes)) == [f"ε = {number(2.0**k)}"]


@pytest.mark.usefixtures("look")
def test_timing_shows_who_answered(tmp_path) -> None:
    r = run(tmp_path, commits=40)
    figure = FIGURES["timing"].draw(source(r))["timing"]
    main, side = figure.axes
    mine = r.events[(r.events["replica"] == 0) & (r.events["kind"] == "commit")]
    marks = main.collections[1].get_offsets()
    np.testing.assert_array_equal(marks[:, 0], mine["time"])
    np.testing.assert_array_equal(marks[:, 1], mine["peer"])
    assert [t.get_text() for t in main.get_yticklabels()] == ["bank 0", "bank 1", "bank 2"]
    shares = [bar.get_width() for bar in side.patches]
    np.testing.assert_allclose(shares, 100 * np.bincount(mine["peer"], minlength=3) / 40)


@pytest.mark.usefixtures("look")
def test_timing_says_when_it_shows_only_the_first_commits(tmp_path) -> None:
    figure = FIGURES["timing"].draw(source(run(tmp_path, commits=500, factors=(1.0,))))["timing"]
    assert "The first 180 of 500 commits are shown; shares are of all." in footnote(figure)
    assert len(figure.axes[0].collections[1].get_offsets()) == 180


@pytest.mark.usefixtures("look")
def test_epsilon_recovers_the_slope_and_the_bound(tmp_path) -> None:
    sweep = {"privacy.epsilon": [1.0, 3.0, 10.0, 30.0]}
    figure = FIGURES["epsilon"].draw(source(run(tmp_path, sweep)))["epsilon"]
    (axes,) = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_xlabel() == "privacy budget ε per owner"
    assert list(lines_of(axes)) == ["median: slope −2.00 [−2.00, −2.00]", "fitted F (11)"]
    law = np.array([400 / e**2 for e in sweep["privacy.epsilon"]])
    solid = next(line for line in axes.lines if len(line.get_xdata()) == 4 and line.get_marker() == "o")
    np.testing.assert_allclose(solid.get_ydata(), law, rtol=1e-9)
    bound = next(line for line in axes.lines if len(line.get_xdata()) == 60)
    np.testing.assert_allclose(bound.get_ydata(), 400 / bound.get_xdata() ** 2, rtol=1e-6)


@pytest.mark.usefixtures("look")
def test_bound_has_both_terms(tmp_path) -> None:
    # ψ = 2·√3/(n·ε)·1000 + 5·3/(n·ε)²·1000², n = 999 records in the agents' table of three owners.
    def law(epsilon, records, step):
        return 2 * 3**0.5 * 1000 / (999 * epsilon) + 15 * (1000 / (999 * epsilon)) ** 2

    r = run(tmp_path, {"privacy.epsilon": [0.1, 1.0, 10.0, 100.0]}, law=law)
    (axes,) = FIGURES["epsilon"].draw(source(r))["epsilon"].axes
    bound = next(line for line in axes.lines if len(line.get_xdata()) == 60)
    np.testing.assert_allclose(bound.get_ydata(), [law(e, 0, 0) for e in bound.get_xdata()], rtol=1e-6)


@pytest.mark.usefixtures("look")
def test_size_recovers_the_slope_for_each_budget(tmp_path) -> None:
    r = run(tmp_path, {"data.partition.records": [300, 3000, 30000], "privacy.epsilon": [1.0, 10.0]})
    figure = FIGURES["size"].draw(source(r))["size"]
    (axes,) = figure.axes
    assert axes.get_xlabel() == "records n"
    assert axes.get_legend_handles_labels()[1] == [
        "ε = 1: slope −2.00 [−2.00, −2.00]",
        "ε = 10: slope −2.00 [−2.00, −2.00]",
        "fitted F (11)",
    ]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["300", "3,000", "30,000"]


@pytest.mark.usefixtures("look")
def test_keys_that_advance_together_make_one_line(tmp_path) -> None:
    r = run(tmp_path, {"privacy.epsilon": [1.0, 10.0, 100.0]})
    r.metrics.insert(1, "learning.algorithm.rho", 5 * r.metrics["privacy.epsilon"])
    (axes,) = FIGURES["epsilon"].draw(source(r))["epsilon"].axes
    assert list(lines_of(axes)) == ["median: slope −2.00 [−2.00, −2.00]", "fitted F (11)"]


@pytest.mark.usefixtures("look")
def test_saturated_points_are_hollow_and_said(tmp_path) -> None:
    def law(epsilon, records, step):
        return min(20.0, 400 / epsilon**2)

    r = run(tmp_path, {"privacy.epsilon": [0.1, 1.0, 10.0, 100.0, 1000.0]}, law=law)
    figure = FIGURES["epsilon"].draw(source(r))["epsilon"]
    (axes,) = figure.axes
    assert "Hollow points lie on a flat end and are in no fit." in footnote(figure)
    assert next(iter(lines_of(axes))) == "median: slope −2.00 [−2.00, −2.00]"
    hollow = next(line for line in axes.lines if line.get_markerfacecolor() == "white")
    np.testing.assert_array_equal(hollow.get_xdata(), [0.1, 1.0])


@pytest.mark.usefixtures("look")
def test_points_of_unequal_numbers_of_replicas_are_counted_one_by_one(tmp_path) -> None:
    r = run(
        tmp_path, {"privacy.epsilon": [1.0, 10.0, 100.0, float("inf")]}, law=lambda e, *_: 400 / e**2 + 1e-3
    )
    r.metrics = r.metrics[(r.metrics["cell"] != 1) | (r.metrics["replica"] < 3)]
    figure = FIGURES["epsilon"].draw(source(r))["epsilon"]
    assert "n = 3 to 9 replicas, each drawn; point: median." in footnote(figure)
    # The middle point does not tilt the line: (log .041 − log 400.001)/log 10⁴. Three replicas are too few for an
    # interval of a median.
    assert legend(figure)[0] == "median: slope −1.99"
    alone = FIGURES["epsilon"].draw(source(run(tmp_path, SWEEP, factors=(1.0,))))["epsilon"]
    assert footnote(alone).startswith("n = 1 replica.")


@pytest.mark.usefixtures("look")
def test_a_flat_metric_gives_no_slope_and_says_so(tmp_path) -> None:
    r = run(tmp_path, SWEEP, law=lambda *_: 1e-4)
    figure = FIGURES["epsilon"].draw(source(r))["epsilon"]
    assert "Slopes" not in footnote(figure)
    assert legend(figure) == ["median"]


@pytest.mark.usefixtures("look")
def test_an_infinite_budget_is_a_line_across(tmp_path) -> None:
    r = run(tmp_path, {"privacy.epsilon": [1.0, 10.0, float("inf")]}, law=lambda e, *_: 400 / e**2 + 1e-3)
    (axes,) = FIGURES["epsilon"].draw(source(r))["epsilon"].axes
    assert "no noise" in lines_of(axes)
    across = [line for line in axes.lines if list(line.get_ydata()) == [1e-3, 1e-3]]
    assert len(across) == 1
    low, high = axes.get_ylim()
    assert low < 1e-3 < high


@pytest.mark.usefixtures("look")
def test_diverged_replicas_are_counted(tmp_path) -> None:
    r = run(tmp_path, SWEEP, factors=(1.0, 1.0, 2.0, float("nan"), float("inf")))
    fitness = FIGURES["fitness"].draw(source(r))["fitness"]
    assert "3 of 15 replicas diverge and count as +∞." in footnote(fitness)
    epsilon = FIGURES["epsilon"].draw(source(r))["epsilon"]
    assert "6 of 15 values are infinite and count as +∞" in footnote(epsilon)
    solid = next(
        line for line in epsilon.axes[0].lines if line.get_markersize() > 6 and len(line.get_xdata())
    )
    np.testing.assert_allclose(solid.get_ydata(), [800, 8, 0.08], rtol=1e-9)


@pytest.mark.usefixtures("look")
def test_values_without_a_logarithm_are_counted(tmp_path) -> None:
    r = run(tmp_path, {"privacy.epsilon": [1.0, 10.0]}, factors=(-1.0, 0.0, 1.0, 2.0, 3.0))
    epsilon = FIGURES["epsilon"].draw(source(r))["epsilon"]
    assert "4 of 10 values are zero or negative and have no place on the log axis" in footnote(epsilon)


def test_runs_without_any_positive_or_finite_value_still_draw(tmp_path) -> None:
    for place, value in enumerate((-1.0, 0.0, float("nan"), float("inf"))):
        r = run(tmp_path / str(place), {"privacy.epsilon": [1.0, 10.0]}, law=lambda *_, v=value: v)
        assert len(draw(r)) == 6


@pytest.mark.usefixtures("look")
def test_one_badge_says_what_must_not_be_missed(tmp_path) -> None:
    sweep = {"data.partition.records": [900, 9000], **SWEEP}
    r = run(tmp_path, sweep, commits=20, extra=("test_accuracy",), flags=("scaled_records", "not_private"))
    for kind in set(KIND_NAMES) - set(ASKED_FOR):
        for figure in FIGURES[kind].draw(source(r)).values():
            assert text_of(figure, "badge").replace("; ", " ") == "NOT PRIVATE SCALED RECORDS"

    def said() -> str:
        return text_of(FIGURES["fitness"].draw(source(r))["fitness"], "badge")

    r.ledger["scaled_records"] = r.ledger["cell"] == 0
    r.ledger.loc[r.ledger["cell"] > 0, "not_private"] = False
    assert said() == "NOT PRIVATE: 1 of 6 cells SCALED RECORDS: 1 of 6 cells"  # in two lines
    r.ledger["not_private"], r.ledger["bound_violated"], r.ledger["scaled_records"] = False, True, False
    assert said() == "ε VOID"
    r.ledger["over_budget"] = True
    assert said() == "ε VOID; OVER BUDGET"
    r.ledger["bound_violated"] = False
    assert said() == "OVER BUDGET"
    r.ledger["over_budget"] = False
    assert said() == ""
    # The form that a paper prints is said where all cells take it; where it is swept, lines say it.
    r.described = SimpleNamespace(cells=[SimpleNamespace(notes=("form: printed",)) for _ in range(6)])
    assert said() == "FORM AS PRINTED"
    r.described.cells[2].notes = ()
    assert said() == ""


@pytest.mark.usefixtures("look")
def test_a_badge_of_several_lines_covers_no_panel(tmp_path) -> None:
    r = run(tmp_path, SWEEP, flags=("bound_violated", "scaled_records", "not_private"))
    r.ledger["over_budget"] = True
    figure = FIGURES["fitness"].draw(source(r))["fitness"]
    figure.draw_without_rendering()
    (badge,) = (text for text in figure.texts if text.get_gid() == "badge")
    lowest = badge.get_window_extent().y0
    assert all(axes.get_window_extent().y1 < lowest for axes in figure.axes)


@pytest.mark.usefixtures("look")
def test_a_budget_without_end_says_so_itself(tmp_path) -> None:
    """ε = ∞ beside finite budgets is called "no noise", and a study without any noise claims no privacy."""
    r = run(tmp_path, {"privacy.epsilon": [1.0, float("inf")]}, law=lambda *_: 1.0, flags=("not_private",))
    r.ledger["not_private"] = np.isinf(r.ledger["budget"])
    assert text_of(FIGURES["fitness"].draw(source(r))["fitness"], "badge") == ""
    r.ledger = r.ledger.assign(budget=np.inf, not_private=True)
    assert text_of(FIGURES["fitness"].draw(source(r))["fitness"], "badge") == ""


def test_the_scenario_is_read_from_the_run_folder(tmp_path) -> None:
    (tmp_path / "scenario.yaml").write_text("name: from-file\nlearning: {algorithm: {form: printed}}\n")
    r = run(tmp_path, SWEEP)
    assert source(r).name == "from-file"
    assert source(r).scenario["learning"]["algorithm"]["form"] == "printed"


def test_what_a_run_lacks_is_said(tmp_path) -> None:
    r = run(tmp_path, {"learning.algorithm.rho": [1.0, 2.0]})
    with pytest.raises(
        InputError, match=r"no sweep over privacy.epsilon \(it sweeps learning.algorithm.rho\)"
    ):
        draw(r, kind="epsilon")
    with pytest.raises(InputError, match=r"no sweep over the number of records \(every cell has n = 999\)"):
        draw(r, kind="size")
    with pytest.raises(InputError, match=r"recorded no events; set record\.events: true"):
        draw(r, kind="timing")
    with pytest.raises(InputError, match="no metric besides relative_fitness"):
        draw(r, kind="curves")
    with pytest.raises(InputError, match="did not record the metric 'test_rmse'"):
        draw(r, metric="test_rmse")
    with pytest.raises(InputError, match="the kind for test_rmse is curves"):
        draw(r, kind="fitness", metric="test_rmse")
    with pytest.raises(InputError, match="at least two finite values"):
        draw(run(tmp_path, {"privacy.epsilon": [1.0, float("inf")]}), kind="epsilon")
    with pytest.raises(InputError, match="one number for all owners"):
        draw(run(tmp_path, {"privacy.epsilon": ["{a: 1}", "{a: 2}"]}, law=lambda *_: 1.0), kind="epsilon")
    assert not (tmp_path / "figures").exists()
    # Without a kind, what can be drawn is drawn.
    assert [p.name for p in draw(r)] == ["fitness.png", "fitness.svg", "fitness.csv"]


def test_unknown_kinds_are_named_with_the_known(tmp_path) -> None:
    with pytest.raises(
        InputError,
        match=r"finals, agents, groups, targets, paired, network, load, collaboration, alone.*; did you mean epsilon",
    ):
        draw(run(tmp_path), kind="epsilonn")
    with pytest.raises(InputError, match="against step, time, vectors_sent, epsilon"):
        draw(run(tmp_path), against="money")


def test_an_axis_that_means_nothing_to_a_kind_is_refused(tmp_path) -> None:
    r = run(tmp_path, SWEEP, commits=9, extra=("test_accuracy",))
    for kind in KIND_NAMES:
        if kind in ASKED_FOR and kind in ALONG_THE_RUN:
            continue
        if kind in ALONG_THE_RUN:
            assert draw(r, kind=kind, against="time")
        else:
            with pytest.raises(
                InputError,
                match=f"{kind} shows no course .* it is for fitness, curves, groups, targets, network",
            ):
                draw(r, kind=kind, against="time", folder=tmp_path / "none")
    assert not (tmp_path / "none").exists()
    names = {p.stem for p in draw(r, against="time", folder=tmp_path / "all")}
    assert names == {"fitness-time", "curves-test_accuracy-time"}


def test_kinds_are_those_that_are_named() -> None:
    assert tuple(FIGURES)[: len(KIND_NAMES)] == KIND_NAMES


def test_a_run_with_nothing_to_draw_says_why_for_each_kind(tmp_path) -> None:
    r = run(tmp_path)
    r.metrics = r.metrics.iloc[:0]
    with pytest.raises(InputError) as caught:
        draw(r)
    # Equal reasons are joined under the names of their kinds.
    told = [fault.message.partition(": ")[0].split(", ") for fault in caught.value.faults[1:]]
    assert sorted(name for names in told for name in names) == sorted({*FIGURES} - {*core_figures.ASKED_FOR})


def test_a_folder_that_cannot_be_made_is_an_input_error(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write figures"):
        draw(run(tmp_path, SWEEP), kind="fitness", folder=tmp_path / "file" / "figures")


def test_a_metric_alone_draws_its_curves(tmp_path) -> None:
    r = run(tmp_path, SWEEP, extra=("test_accuracy", "throughput"))
    assert [p.name for p in draw(r, metric="throughput")] == [
        "curves-throughput.png",
        "curves-throughput.svg",
        "curves-throughput.csv",
    ]
    assert draw(r, kind="epsilon", metric="throughput")[0].name == "epsilon-throughput.png"


def test_no_window_system_and_no_state_of_pyplot(tmp_path) -> None:
    # In a fresh interpreter: loading the package loads neither library, drawing opens no pyplot figure.
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import p2psim.report\n"
        "assert not {'matplotlib', 'seaborn', 'pandas'} & set(sys.modules), 'loaded too early'\n"
        "from pathlib import Path\n"
        "from made_up_run import run\n"
        "p2psim.report.draw(run(Path(sys.argv[2])), kind='fitness')\n"
        "import matplotlib.pyplot as plt\n"
        "assert not plt.get_fignums()\n"
    )
    here = str(Path(__file__).parent)
    subprocess.run([sys.executable, "-c", code, here, str(tmp_path)], check=True)
