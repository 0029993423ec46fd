"""Together and alone: crossing points, who gains; facets, quantiles, titles, and what a scenario asks for."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_up_run import footnote, run

from p2psim.core.errors import InputError
from p2psim.core.figures import FIGURES
from p2psim.report import draw
from p2psim.report.figures.alone import lines
from p2psim.report.source import source

EPSILONS = [1.0, 10.0, 100.0]


def with_alone(result, values, records=None):
    """Add isolated ψ of each of three owners, of every replica, at both ends of the run."""
    ends = result.metrics[result.metrics["step"].isin([0, 300])]
    ends = ends[ends["agent"].isna()]
    parts = [
        ends.assign(
            agent=pd.array([owner] * len(ends), dtype="Int32"), metric="isolated_fitness", value=value
        )
        for owner, value in enumerate(values)
    ]
    result.metrics = pd.concat([result.metrics, *parts], ignore_index=True)
    if records is not None:
        result.agents["records"] = result.agents["index"].map(dict(enumerate(records)))
    return result


def made_up(path, sweep=None):
    # ψ at the end is 400/ε² for 1,000 records: 400, 4 and .04; the mean of owners alone is .5.
    return with_alone(run(path, sweep or {"privacy.epsilon": EPSILONS}), (0.1, 0.4, 1.0), (100, 300, 600))


def asked(result, **words):
    material = source(result)
    return replace(material, **words)


def test_joining_pays_where_the_median_is_below_the_owners_own(tmp_path) -> None:
    (line,) = lines(asked(made_up(tmp_path), key="privacy.epsilon"))
    np.testing.assert_allclose(line.median, [400, 4, 0.04], rtol=1e-12)
    np.testing.assert_allclose(line.low, line.median / 2, rtol=1e-12)
    np.testing.assert_allclose(line.alone, 0.5)
    assert line.pays.tolist() == [False, False, True]
    (only,) = lines(asked(made_up(tmp_path), key="privacy.epsilon", agent=2))
    np.testing.assert_allclose(only.alone, 1.0)


@pytest.mark.usefixtures("look")
def test_collaboration_draws_a_line_for_each_other_value_and_one_for_alone(tmp_path) -> None:
    sweep = {"data.partition.records": [1000, 10_000], "privacy.epsilon": EPSILONS}
    figure = FIGURES["collaboration"].draw(asked(made_up(tmp_path, sweep), key="privacy.epsilon"))[
        "collaboration-epsilon"
    ]
    (axes,) = figure.axes
    assert axes.get_legend_handles_labels()[1] == ["records = 1,000", "records = 10,000", "alone"]
    assert axes.get_xscale() == axes.get_yscale() == "log"
    # Below the black line, which is shaded: at ε = 100 with 1,000 records, from ε = 10 on with 10,000.
    assert "joining pays" in [text.get_text() for text in axes.texts]
    title = " ".join(figure.get_suptitle().split())
    assert title.endswith("joining pays somewhere with records = 1,000 and records = 10,000")


@pytest.mark.usefixtures("look")
def test_a_title_counts_lines_on_which_joining_pays_where_they_are_many(tmp_path) -> None:
    sweep = {"data.partition.records": [500, 1000, 5000, 10_000], "privacy.epsilon": EPSILONS}
    figure = FIGURES["collaboration"].draw(asked(made_up(tmp_path, sweep), key="privacy.epsilon"))
    title = " ".join(figure["collaboration-epsilon"].get_suptitle().split())
    assert title.endswith("against ε: joining pays somewhere on 4 of 4 lines")


def test_keys_that_advance_with_the_axis_make_one_line(tmp_path) -> None:
    result = made_up(tmp_path)
    result.metrics.insert(1, "data.partition.share", 2 * result.metrics["privacy.epsilon"])
    (line,) = lines(asked(result, key="privacy.epsilon"))
    assert line.label == ""
    assert line.x.tolist() == EPSILONS


@pytest.mark.usefixtures("look")
def test_alone_counts_who_gains(tmp_path) -> None:
    figure = FIGURES["alone"].draw(asked(made_up(tmp_path, {"privacy.epsilon": [40.0, 100.0]})))["alone"]
    # 400/40² = .25 lies below two of .1, .4 and 1; .04 below all three.
    said = figure.axes[0].get_legend_handles_labels()[1]
    assert said == ["ε = 40: 2 of 3 gain", "ε = 100: 3 of 3 gain"]
    points = next(line for line in figure.axes[0].lines if line.get_linestyle() == "None")
    np.testing.assert_allclose(points.get_xdata(), [100, 300, 600])
    np.testing.assert_allclose(points.get_ydata(), [0.1, 0.4, 1.0])


def test_alone_refuses_owners_that_differ_between_cells(tmp_path) -> None:
    result = made_up(tmp_path, {"data.partition.records": [1000, 10_000]})
    changed = (result.metrics["metric"] == "isolated_fitness") & (result.metrics["cell"] == 1)
    result.metrics.loc[changed, "value"] *= 2
    with pytest.raises(InputError, match="differ between cells"):
        FIGURES["alone"].draw(source(result))
    facets = draw(result, kind="alone", facet="data.partition.records", folder=tmp_path / "f")
    assert [p.name for p in facets if p.suffix == ".png"] == [
        "alone-records-1000.png",
        "alone-records-10000.png",
    ]


def test_what_cannot_be_compared_is_refused(tmp_path) -> None:
    result = made_up(tmp_path)
    for words, message in (
        ({}, "swept key"),
        ({"key": "privacy.delta"}, "does not sweep 'privacy.delta'; it sweeps privacy.epsilon"),
        ({"key": "privacy.epsilon", "metric": "isolated_fitness"}, "draws relative_fitness"),
        ({"key": "privacy.epsilon", "agent": 7}, "agent: must be from 0 to 2, got 7"),
    ):
        with pytest.raises(InputError, match=message):
            lines(asked(result, **words))
    with pytest.raises(InputError, match="did not record the metric 'isolated_fitness'"):
        lines(asked(run(tmp_path, {"privacy.epsilon": EPSILONS}), key="privacy.epsilon"))


@pytest.mark.usefixtures("look")
def test_quantiles_move_bands_and_footnotes(tmp_path) -> None:
    result = run(tmp_path, {"privacy.epsilon": EPSILONS})
    for kind in ("fitness", "epsilon", "finals", "curves"):
        metric = None if kind in ("fitness", "epsilon") else "relative_fitness"
        (figure,) = FIGURES[kind].draw(asked(result, quantile=(0.0, 1.0), metric=metric)).values()
        assert "0 to 100 %" in footnote(figure)
    (figure,) = FIGURES["fitness"].draw(asked(result, quantile=(0.0, 1.0))).values()
    corners = figure.axes[0].collections[0].get_paths()[0].vertices
    last = corners[corners[:, 0] == 300][:, 1]
    # The replicas' factors go from 1/4 to 4.
    assert (last.min(), last.max()) == pytest.approx((100, 1600), rel=1e-9)


@pytest.mark.usefixtures("look")
def test_facets_drop_the_key_and_name_it_in_the_title(tmp_path) -> None:
    material = asked(run(tmp_path, {"learning.algorithm.form": ["printed", "corrected"], "x.y": [1.0, 2.0]}))
    first, second = material.facets("learning.algorithm.form")
    assert first.swept == second.swept == ["x.y"]
    assert set(first.metrics["cell"]) == set(first.ledger["cell"]) == set(first.agents["cell"]) == {0, 1}
    (figure,) = FIGURES["fitness"].draw(first).values()
    assert "(form = printed)" in figure.get_suptitle()
    (figure,) = FIGURES["fitness"].draw(second).values()
    assert "(form = corrected)" in figure.get_suptitle()
    with pytest.raises(InputError, match=r"does not sweep 'q'; it sweeps learning\.algorithm\.form, x\.y"):
        material.facets("q")


def figure_of(kind: str, **words):
    empty = dict.fromkeys(("metric", "against", "facet", "agent", "log", "target", "title"))
    return {"kind": kind, "quantile": [0.25, 0.75], "reference": {}, **empty, **words}


def test_the_scenario_says_what_is_drawn_by_default(tmp_path) -> None:
    result = made_up(tmp_path)
    result.scenario = {
        "name": "made-up",
        "figure": [
            figure_of("fitness", title="First"),
            figure_of("fitness", log=False),
            figure_of("collaboration", against="privacy.epsilon"),
        ],
    }

    def drawn(**words) -> list[str]:
        drawn = draw(result, folder=tmp_path / "f", format="png", **words)
        return [p.stem for p in drawn if p.suffix == ".png"]

    assert drawn() == ["fitness", "fitness-2", "collaboration-epsilon"]
    # Whatever is asked for counts more.
    assert drawn(kind="epsilon") == ["epsilon"]
    assert drawn(metric="relative_fitness") == ["curves-relative_fitness"]
    everything = set(drawn(kind="all"))
    assert {"fitness", "epsilon", "alone"} <= everything
    assert "size" not in everything
    assert drawn(kind="finals", metric="relative_fitness", against="privacy.epsilon") == [
        "finals-relative_fitness"
    ]
    with pytest.raises(InputError, match="both sides of the median"):
        drawn(quantile=(0.6, 0.9))
    with pytest.raises(InputError, match="curves are drawn against step"):
        drawn(kind="curves", against="privacy.epsilon")


@pytest.mark.usefixtures("look")
def test_a_swept_number_that_spans_much_has_a_log_axis_and_others_have_none(tmp_path) -> None:
    wide, narrow = run(tmp_path, {"a.b": [1.0, 3.0, 10.0]}), run(tmp_path, {"a.b": [1.0, 9.0]})
    for result, scale in ((wide, "log"), (narrow, "linear")):
        figure = FIGURES["finals"].draw(asked(result, key="a.b", metric="relative_fitness"))[
            "finals-relative_fitness"
        ]
        assert figure.axes[0].get_xscale() == scale
        assert figure.axes[0].get_xlabel() == "b"
