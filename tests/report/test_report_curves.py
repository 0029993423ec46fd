"""Numbers behind the figures: quartiles, common grids, final values."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_run import FACTORS, psi, run

from p2psim.core.errors import InputError
from p2psim.core.registry import parts
from p2psim.learning.graph import metrics as of_graphs
from p2psim.report.curves import curves, finals, is_number, quartiles
from p2psim.report.figures.power import straight_part
from p2psim.report.source import source
from p2psim.report.words import HIGHER, LOWER, as_text, by_worth, labels_of_values, words_of_cells
from p2psim.runs.summary import rises


def test_quartiles_by_hand() -> None:
    rows = np.array([[1.0, 2, 3, 4, 5], [1, 2, 3, np.inf, np.nan], [1, np.nan, np.inf, np.nan, 2]])
    np.testing.assert_array_equal(quartiles(rows)[:, 0], [2, 3, 4])
    np.testing.assert_array_equal(quartiles(rows)[:, 1], [2, 3, np.inf])
    np.testing.assert_array_equal(quartiles(rows)[:, 2], [2, np.inf, np.inf])


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_quartiles_of_numbers_are_numpys(values: list[float]) -> None:
    np.testing.assert_array_equal(quartiles(np.array([values]))[:, 0], np.percentile(values, [25, 50, 75]))


def test_curves_carry_the_medians_that_were_put_in(tmp_path) -> None:
    r = run(tmp_path, {"privacy.epsilon": [1.0, 10.0]})
    drawn = curves(source(r), "relative_fitness")
    assert [c.label for c in drawn] == ["ε = 1", "ε = 10"]
    for curve, epsilon in zip([one.what for one in drawn], (1.0, 10.0), strict=True):
        law = np.array([psi(epsilon, 1000, k) for k in range(0, 301, 10)])
        np.testing.assert_array_equal(curve.x, range(0, 301, 10))
        np.testing.assert_allclose(curve.median, law)
        np.testing.assert_allclose(curve.low, law / 2)
        np.testing.assert_allclose(curve.high, law * 2)
        assert (curve.replicas, curve.held, curve.agents) == (len(FACTORS), 0, 1)


def test_rows_in_any_order_and_null_agents_of_any_type_give_the_same(tmp_path) -> None:
    r = run(tmp_path, {"privacy.epsilon": [1.0, 10.0]}, extra=("test_accuracy",))
    plain = curves(source(r), "test_accuracy")
    assert plain[0].what.agents == 3
    r.metrics = r.metrics.sample(frac=1, random_state=1).reset_index(drop=True)
    r.metrics["agent"] = r.metrics["agent"].astype("float64")
    for a, b in zip(plain, curves(source(r), "test_accuracy"), strict=True):
        np.testing.assert_array_equal(a.what.median, b.what.median)


def test_a_line_ends_where_half_of_its_replicas_have_ended(tmp_path) -> None:
    r = run(tmp_path, factors=(1.0, 2.0, 3.0))
    r.metrics = r.metrics[(r.metrics["replica"] != 2) | (r.metrics["step"] <= 100)]
    curve = curves(source(r), "relative_fitness")[0].what
    assert (curve.held, curve.x[-1]) == (1, 300)
    # Replica 2 stays at 3·ψ(100), the largest of the three; the median is replica 1's: there is no cliff at k = 100.
    np.testing.assert_allclose(curve.median[-1], 2 * psi(10.0, 1000, 300))
    np.testing.assert_allclose(curve.high[-1], (2 * psi(10, 1000, 300) + 3 * psi(10, 1000, 100)) / 2)
    r.metrics = r.metrics[(r.metrics["replica"] != 1) | (r.metrics["step"] <= 200)]
    curve = curves(source(r), "relative_fitness")[0].what
    assert (curve.held, curve.x[-1]) == (1, 200)


def test_curves_against_time_are_straight_between_records(tmp_path) -> None:
    r = run(
        tmp_path, factors=(1.0, 1.0), owners=1, steps=range(0, 101, 50)
    )  # records at 0, 50, 100, and .01 later
    curve = curves(source(r, against="time"), "relative_fitness")[0].what
    assert curve.x[0] == 0
    assert curve.x[-1] == pytest.approx(100.01)
    records = [psi(10, 1000, step) for step in (0, 50, 100)]
    np.testing.assert_allclose(curve.each[:, 0], np.interp(curve.x, [0, 50, 100], records))
    np.testing.assert_allclose(curve.each[:, 1], np.interp(curve.x, [0.01, 50.01, 100.01], records))


def test_what_is_undefined_at_first_is_not_drawn_and_what_becomes_so_has_diverged(tmp_path) -> None:
    r = run(tmp_path, factors=(1.0, 2.0, 3.0), steps=range(0, 31, 10))
    r.metrics.loc[r.metrics["step"] == 0, "value"] = np.nan
    r.metrics.loc[(r.metrics["step"] == 10) & (r.metrics["replica"] == 0), "value"] = np.nan
    r.metrics.loc[(r.metrics["step"] == 30) & (r.metrics["replica"] == 2), "value"] = np.nan
    curve = curves(source(r), "relative_fitness")[0].what
    assert np.isnan(curve.median[0])
    assert curve.median[1] == pytest.approx(2.5 * psi(10, 1000, 10))
    assert curve.median[3] == pytest.approx(2 * psi(10, 1000, 30))
    assert np.isinf(curve.each[3, 2])


def test_a_step_recorded_twice_counts_once_with_its_last_value(tmp_path) -> None:
    r = run(tmp_path, factors=(1.0,))
    again = r.metrics.tail(1).assign(value=123.0, time=1e6)
    r.metrics = pd.concat([again, r.metrics], ignore_index=True)
    assert finals(source(r), "relative_fitness")["value"].tolist() == [123.0]
    (one,) = curves(source(r), "relative_fitness")
    assert one.what.median[-1] == 123.0


def test_finals_average_agents_and_keep_undefined_values(tmp_path) -> None:
    r = run(tmp_path, {"privacy.epsilon": [1.0, 10.0]}, extra=("test_accuracy",), factors=(1.0, 1.0))
    r.metrics.loc[
        (r.metrics["metric"] == "test_accuracy") & (r.metrics["cell"] == 1) & (r.metrics["agent"] == 0)
        & (r.metrics["replica"] == 1), "value"
    ] = np.nan  # fmt: skip
    table = finals(source(r), "test_accuracy")
    assert table["value"].iloc[:3].tolist() == pytest.approx([0.6 * (1 - np.exp(-5))] * 3)
    assert np.isnan(table["value"].iloc[3])
    assert table["privacy.epsilon"].tolist() == [1.0, 1.0, 10.0, 10.0]


def test_a_curve_of_agents_ends_where_the_table_of_finals_does(tmp_path) -> None:
    # Agents have .5, .6 and .7 of the law, scaled by the replica: their mean is .6, whatever the median agent has.
    r = run(tmp_path, extra=("isolated_fitness",), factors=(1.0, 2.0, 3.0))
    own = (r.metrics["metric"] == "isolated_fitness").to_numpy()
    r.metrics.loc[own & (r.metrics["agent"] == 2).to_numpy(), "value"] *= 10
    scale = r.metrics.loc[own, "replica"] + 1
    r.metrics.loc[own, "value"] *= scale
    curve = curves(source(r), "isolated_fitness")[0].what
    last = np.array([1, 2, 3]) * (0.5 + 0.6 + 7.0) / 3 * (1 - np.exp(-5))
    assert curve.agents == 3
    assert curve.median[-1] == pytest.approx(last[1])
    assert (curve.low[-1], curve.high[-1]) == pytest.approx((last[:2].mean(), last[1:].mean()))
    assert finals(source(r), "isolated_fitness")["value"].tolist() == pytest.approx(last.tolist())


def test_an_unrecorded_metric_lists_what_there_is(tmp_path) -> None:
    with pytest.raises(InputError, match="'test_rmse'; it has relative_fitness"):
        source(run(tmp_path)).rows("test_rmse")


def test_straight_part_leaves_out_flat_ends() -> None:
    x = np.array([0.1, 1, 10, 100, 1000])
    # data.md, lending at real sizes, continued by three_banks: noise fills the box at .1 and 1.
    assert straight_part(x, [20.5, 16.8, 1.30, 0.014, 1.8e-4]).tolist() == [False, False, True, True, True]
    assert straight_part(x, x**-2).all()
    assert straight_part(x, [1e4, 1e2, 1, 1e-4, 0.9e-4]).tolist() == [True, True, True, False, False]
    assert not straight_part(x, np.ones(5)).any()
    # A bend in the middle is not an end.
    assert straight_part(x, [1e3, 1e1, 0.9e1, 1e-1, 1e-3]).all()


def test_labels_name_the_algorithm_beside_baselines_and_leave_out_what_is_shared(tmp_path) -> None:
    r = run(tmp_path, {"network.exchange.kind": ["poll"], "learning.loss.kind": ["squared"]}, factors=(1.0,))
    r.scenario = {"learning": {"algorithm": {"kind": "async-star"}}}
    other = r.metrics.assign(model="local-dp")
    r.metrics = pd.concat([r.metrics, other], ignore_index=True)
    assert sorted(c.label for c in curves(source(r), "relative_fitness")) == ["async star", "local dp"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.1, "0.1"), (10.0, "10"), (1000.0, "1,000"), (1234.5, "1234.5"), (2e6, "2,000,000"), (1e12, "10¹²"),
        (np.float32(0.5), "0.5"), (np.inf, "∞"), (-np.inf, "−∞"), (7, "7"), ("cap", "cap"), ("inf", "∞"),
        (5e-6, "5·10⁻⁶"), (1e-5, "10⁻⁵"), (True, "yes"),
    ],
)  # fmt: skip
def test_swept_values_in_few_characters(value: object, said: str) -> None:
    assert as_text(value) == said


def test_an_infinite_budget_is_no_noise_in_a_legend() -> None:
    assert labels_of_values([1.0, np.inf], "ε") == (["1", "no noise"], ["ε = 1", "no noise"])
    assert labels_of_values([np.inf, 2000.0], "ρ") == (["∞", "2,000"], ["ρ = ∞", "ρ = 2,000"])


def test_what_is_better_is_what_a_target_is_reached_from() -> None:
    assert of_graphs.__name__ in {metric.__module__ for metric in parts("metric").values()}
    known = parts("metric")
    assert set(HIGHER) | set(LOWER) <= set(known)
    assert not set(HIGHER) & set(LOWER)
    assert [name for name in HIGHER if not rises(name)] == []
    assert [name for name in LOWER if rises(name)] == []


def test_metrics_of_models_come_first_and_what_is_spent_last() -> None:
    mixed = [
        "epsilon_spent",
        "delivery",
        "messages",
        "own[a]",
        "objective_gap",
        "test_accuracy (mean over agents)",
    ]
    order = [
        "test_accuracy (mean over agents)",
        "objective_gap",
        "own[a]",
        "delivery",
        "messages",
        "epsilon_spent",
    ]
    assert by_worth(mixed) == by_worth(reversed(mixed)) == order
    assert by_worth([*mixed, "relative_fitness"])[0] == "relative_fitness"


def test_booleans_are_no_numbers() -> None:
    assert is_number(pd.Series([1, 2, 2]))
    assert is_number(pd.Series(["0.1", 2], dtype=object))
    for values in ([True, False], [True, 2], [1, 1], [1.0, np.inf], ["a", "1"]):
        assert not is_number(pd.Series(values, dtype=object)), values


def test_cells_are_called_by_what_tells_them_apart() -> None:
    keys = ("network.channel.collision", "network.channel.airtime", "privacy.epsilon")
    cells = [dict(zip(keys, row, strict=True)) for row in (("none", 0.5, 10.0), ("aloha", 1e-5, 10.0))]
    labels, names, values = words_of_cells(
        cells, {}, {"labels": {keys[0]: "access", f"{keys[0]}=none": "quiet"}}
    )
    assert labels == ["quiet, airtime = 0.5", "aloha, airtime = 10⁻⁵"]
    assert names == {keys[0]: "access", keys[1]: "airtime", keys[2]: "ε"}
    assert values[keys[0]] == {"none": "quiet", "aloha": "aloha"}
    zipped = {"sweep": {"zip": {keys[0]: [], keys[1]: []}}, "labels": {"zip": ["good", "bad"]}}
    assert words_of_cells(cells, {}, zipped)[0] == ["good", "bad"]
    assert words_of_cells([{}], {}, {})[0] == [""]
