"""Curves of runs on a graph: baselines, single agents, and vectors sent as the axis."""

from dataclasses import replace

import pandas as pd
import pytest

from p2psim.core.errors import InputError
from p2psim.report.curves import curves
from p2psim.report.source import Source
from p2psim.report.words import distinct


def run(with_sent: bool = True) -> Source:
    """Two cells of two replicas: accuracy of all and of agent 3, a baseline, and vectors sent, twice the step."""
    rows = []
    for cell, budget in ((0, 1.0), (1, 2.0)):
        for replica in (0, 1):
            for step in (0, 10, 20):
                common = {
                    "privacy.epsilon": budget,
                    "cell": cell,
                    "replica": replica,
                    "step": step,
                    "time": step / 5,
                }
                accuracy = {"metric": "test_accuracy", "value": 0.01 * step + cell + replica}
                rows.append({**common, "agent": None, "model": "main", **accuracy})
                rows.append({**common, "agent": 3, "model": "main", "metric": "test_accuracy", "value": 99.0})
                if with_sent:
                    sent = {"metric": "vectors_sent", "value": 2.0 * step}
                    rows.append({**common, "agent": None, "model": "main", **sent})
            for step in (0, 20):
                common = {
                    "privacy.epsilon": budget,
                    "cell": cell,
                    "replica": replica,
                    "step": step,
                    "time": step / 5,
                }
                baseline = {"metric": "test_accuracy", "value": 0.5}
                rows.append({**common, "agent": None, "model": "local", **baseline})
    table = pd.DataFrame(rows)
    table["agent"] = table["agent"].astype("Int32")
    columns = ["privacy.epsilon", "cell", "replica", "step", "time", "agent", "model", "metric", "value"]
    return Source(metrics=table[columns], ledger=pd.DataFrame(columns=["cell"]), agents=pd.DataFrame())


def test_values_of_single_agents_do_not_mix_with_those_of_all() -> None:
    drawn = {curve.label: curve.what for curve in curves(run(), "test_accuracy")}
    assert drawn["ε = 1"].median.tolist() == pytest.approx([0.5, 0.6, 0.7])
    assert all(curve.agents == 1 for curve in drawn.values())


def test_a_baseline_that_is_the_same_everywhere_is_drawn_once() -> None:
    drawn = curves(run(), "test_accuracy")
    assert [curve.label for curve in drawn] == ["local", "ε = 1", "ε = 2"]


def test_curves_against_vectors_sent() -> None:
    source = run()
    against = replace(source, against="vectors_sent")
    drawn = {curve.label: curve.what for curve in curves(against, "test_accuracy")}
    assert drawn["ε = 2"].x.tolist() == [0, 20, 40]
    assert drawn["ε = 2"].median.tolist() == pytest.approx([1.5, 1.6, 1.7])
    without = run(with_sent=False)
    lacking = replace(without, against="vectors_sent")
    with pytest.raises(InputError, match="did not record the metric 'vectors_sent'"):
        curves(lacking, "test_accuracy")


def test_curves_against_privacy_spent() -> None:
    """Spent in two steps, 1.5 by step 10 and no more after it; and, without noise, infinitely much."""
    source = run()
    sent = source.metrics["metric"] == "vectors_sent"
    spent = source.metrics[sent].assign(metric="epsilon_spent")
    spent["value"] = spent["step"].map({0: 0.0, 10: 1.5, 20: 1.5})
    spent.loc[(spent["cell"] == 1) & (spent["step"] > 0), "value"] = float("inf")
    table = pd.concat([source.metrics, spent], ignore_index=True)
    against = replace(source, metrics=table, against="epsilon")
    drawn = {curve.label: curve.what for curve in curves(against, "test_accuracy")}
    bounded, endless = drawn["ε = 1"], drawn["ε = 2"]
    assert (bounded.x[0], bounded.x[-1]) == (0, 1.5)
    # Until the release there is what was known at the start; at its price, all that came of it.
    assert set(bounded.median[:-1].round(12)) == {0.5}
    assert bounded.median[-1] == pytest.approx(0.7)
    assert set(endless.x) == {0.0}
    nothing = replace(against, metrics=table[(table["cell"] == 1) & (table["step"] > 0)])
    with pytest.raises(InputError, match="no value where epsilon_spent is finite"):
        curves(nothing, "test_accuracy")


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        (["cap(releases=1)", "cap(releases=3)"], ["cap, releases 1", "cap, releases 3"]),
        (["a(x=1, y=2)", "b(x=1, y=3)", "c"], ["a", "b", "c"]),
        (["a(x=1, y=known)", "a(x=1, y=expected)", "b"], ["a, known", "a, expected", "b"]),
        (["p(rate={a=1, b=2}, k=1)", "p(rate={a=1, b=3}, k=1)"], ["p, rate a 1, b 2", "p, rate a 1, b 3"]),
        (["{0=10000, 1=2}", "{0=10000, 1=3}"], ["agent 1: 2", "agent 1: 3"]),
        (["only(x=1)"], ["only"]),
        (["carrier-sense", "none"], ["carrier-sense", "none"]),
        (["1", "10"], ["1", "10"]),
    ],
)
def test_what_all_parts_have_in_common_is_left_out(texts: list[str], shown: list[str]) -> None:
    assert distinct(texts) == shown
