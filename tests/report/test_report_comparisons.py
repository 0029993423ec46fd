"""Final values side by side and against a number of the data, and values of single agents by their records."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_up_run import legend, lines_of, text_of

from p2psim.core.errors import InputError
from p2psim.report import style
from p2psim.report.figures.agents import draw_agents, draw_ecdf
from p2psim.report.figures.finals import draw_finals
from p2psim.report.source import Source

AGENTS = 80


def accuracy(budget: float, dimension: float, replica: int) -> float:
    """A made-up final accuracy: replicas 0, 1, 2 and 3 add 0, 1, 2 and 7 hundredths (quartiles .75, 1.5, 3.25)."""
    return 0.5 + 0.1 * budget - 0.001 * dimension + 0.01 * (0, 1, 2, 7)[replica]


def run(dimensions: tuple[float, ...] = (20, 50, 100), each: bool = False, flag: str = "") -> Source:
    """Two budgets a dimension; the baseline depends on the dimension alone."""
    metrics, ledger, agents = [], [], []
    cell = 0
    for budget in (1.0, 2.0):
        for dimension in dimensions:
            swept = {"privacy.epsilon": budget, "data.source.dimension": dimension}
            for replica in range(4):
                for step in (0, 10):
                    row = {
                        **swept,
                        "cell": cell,
                        "replica": replica,
                        "step": step,
                        "time": step / 5,
                        "agent": None,
                    }
                    row["metric"] = "test_accuracy"
                    value = accuracy(budget, dimension, replica) if step else 0.0
                    metrics.append({**row, "model": "main", "value": value})
                    metrics.append({**row, "model": "local", "value": 0.4 + 0.001 * dimension})
                    # Agent i of budget b has i + 1 records and, at the end, the accuracy b·(i + 1)/1000.
                    for agent in range(AGENTS if each else 0):
                        own = {**row, "agent": agent, "model": "main"}
                        metrics.append({**own, "value": budget * (agent + 1) / 1000 if step else 9.0})
                        metrics.append({**own, "model": "local", "value": 0.3})
                agents += [
                    {"cell": cell, "replica": replica, "index": agent, "records": agent + 1}
                    for agent in range(AGENTS)
                ]
            ledger.append({"cell": cell, "budget": budget, "not_private": flag == "not_private"})
            cell += 1
    table = pd.DataFrame(metrics)
    table["agent"] = table["agent"].astype("Int32")
    columns = [
        "privacy.epsilon",
        "data.source.dimension",
        "cell",
        "replica",
        "step",
        "time",
        "agent",
        "model",
    ]
    return Source(
        metrics=table[[*columns, "metric", "value"]], ledger=pd.DataFrame(ledger), agents=pd.DataFrame(agents)
    )


@pytest.mark.usefixtures("look")
def test_a_number_of_the_data_is_the_axis_and_lines_are_medians() -> None:
    (axes,) = draw_finals(run())["finals-test_accuracy"].axes
    lines = lines_of(axes)
    assert set(lines) == {"ε = 1", "ε = 2", "local"}
    for budget in (1.0, 2.0):
        line = lines[f"ε = {budget:g}"]
        assert line.get_xdata().tolist() == [20, 50, 100]
        expected = [0.5 + 0.1 * budget - 0.001 * p + 0.015 for p in (20, 50, 100)]
        assert line.get_ydata() == pytest.approx(expected)
    assert lines["local"].get_ydata() == pytest.approx([0.42, 0.45, 0.5])
    # Readable without colour.
    assert len({line.get_marker() for line in lines.values()}) == 3
    assert axes.get_ylabel().split("\n")[-1].endswith("higher is better")


@pytest.mark.usefixtures("look")
def test_baselines_set_the_scale_where_the_run_itself_shows_one_value_alone() -> None:
    made = run()
    made.metrics.loc[made.metrics["model"] == "main", "value"] = 0.5
    made.metrics.loc[made.metrics["model"] == "local", "value"] *= 1.5  # from 0.63 to 0.75
    (axes,) = draw_finals(made)["finals-test_accuracy"].axes
    low, high = axes.get_ylim()
    assert low < 0.5 < 0.75 < high


@pytest.mark.usefixtures("look")
def test_without_such_a_number_every_cell_has_a_row_and_a_baseline_is_a_line_that_sets_no_scale() -> None:
    made = run((20,), flag="not_private")
    made.metrics.loc[made.metrics["model"] == "local", "value"] = 77.0
    figure = draw_finals(made)["finals-test_accuracy"]
    (axes,) = figure.axes
    # Of a swept key that has one value, a dimension of 20, nothing is said.
    assert [text.get_text() for text in axes.get_yticklabels()] == ["ε = 1", "ε = 2"]
    lines = lines_of(axes)
    assert lines["ε = 1"].get_xdata() == pytest.approx([0.595])
    assert lines["ε = 2"].get_xdata() == pytest.approx([0.695])
    assert axes.get_xlim()[1] < 1
    # What nobody sees is in no legend: its value is written.
    assert legend(figure) == []
    assert "Off the scale of test accuracy: local, 77." in text_of(figure, "footnote")
    made.metrics.loc[made.metrics["model"] == "local", "value"] = 0.65
    seen = draw_finals(made)["finals-test_accuracy"]
    assert legend(seen) == ["local"]
    assert "Off the scale" not in text_of(seen, "footnote")
    assert text_of(figure, "badge") == "NOT PRIVATE"
    # Four replicas are drawn one by one.
    replicas = style.numbers(figure).query("line == 'ε = 1, replicas'")
    assert replicas["y"].tolist() == pytest.approx([accuracy(1.0, 20, i) for i in range(4)])


@pytest.mark.usefixtures("look")
def test_values_of_all_agents_are_not_mixed_with_single_ones() -> None:
    plain, mixed = (draw_finals(run(each=each))["finals-test_accuracy"].axes[0] for each in (False, True))
    for a, b in zip(plain.lines, mixed.lines, strict=True):
        np.testing.assert_array_equal(a.get_ydata(), b.get_ydata())


@pytest.mark.usefixtures("look")
def test_values_over_a_decade_get_a_log_axis_unless_they_are_shares() -> None:
    source = run((20,))
    source.metrics.loc[source.metrics["privacy.epsilon"] == 2.0, "value"] *= 10
    (axes,) = draw_finals(source)["finals-test_accuracy"].axes
    assert axes.get_xscale() == "linear"
    gaps = replace(source, metrics=source.metrics.replace({"metric": {"test_accuracy": "objective_gap"}}))
    (axes,) = draw_finals(gaps)["finals-objective_gap"].axes
    assert axes.get_xscale() == "log"


@pytest.mark.usefixtures("look")
def test_agents_are_gathered_by_their_records() -> None:
    source = run((20,), each=True)
    (axes,) = draw_agents(source)["agents-test_accuracy"].axes
    lines = lines_of(axes)
    assert list(lines) == ["local", "ε = 1", "ε = 2"]
    line = lines["ε = 2"]
    # Eight groups of ten agents, with 10k + 1 to 10k + 10 records.
    assert line.get_xdata() == pytest.approx([10 * k + 5.5 for k in range(8)])
    assert line.get_ydata() == pytest.approx([2 * (10 * k + 5.5) / 1000 for k in range(8)])
    assert lines["local"].get_ydata() == pytest.approx([0.3] * 8)


def test_what_is_lacking_is_said() -> None:
    with pytest.raises(InputError, match=r"name one in record\.per_agent"):
        draw_agents(run())
    same = run(each=True)
    same.agents["records"] = 10
    with pytest.raises(InputError, match="same number of records"):
        draw_agents(same)
    alone = run((20,))
    only = alone.metrics[(alone.metrics["cell"] == 0) & (alone.metrics["model"] == "main")]
    with pytest.raises(InputError, match="nothing to compare"):
        draw_finals(replace(alone, metrics=only))


@pytest.mark.usefixtures("look")
def test_more_rows_than_can_be_read_are_left_out_and_said() -> None:
    alone = run((20,))
    only = alone.metrics[(alone.metrics["cell"] == 0) & (alone.metrics["model"] == "main")]
    cells = [only.assign(cell=cell, **{"privacy.epsilon": 1.0 + cell}) for cell in range(61)]
    figure = draw_finals(replace(alone, metrics=pd.concat(cells)))["finals-test_accuracy"]
    assert len(figure.axes[0].get_yticklabels()) == 60
    assert "The first 60 of 61 rows are drawn" in text_of(figure, "footnote")


@pytest.mark.usefixtures("look")
def test_the_distribution_over_agents() -> None:
    (axes,) = draw_ecdf(run((20,), each=True))["ecdf-test_accuracy"].axes
    line = lines_of(axes)["ε = 2"]
    # Four replicas of 80 agents, agent i with 2(i + 1)/1000.
    assert line.get_xdata()[::4] == pytest.approx([2 * (i + 1) / 1000 for i in range(AGENTS)])
    assert line.get_ydata() == pytest.approx(np.arange(1, 4 * AGENTS + 1) / (4 * AGENTS))


@pytest.mark.usefixtures("look")
def test_agents_without_a_value_count_in_the_distribution() -> None:
    source = run((20,), each=True)
    undefined = source.metrics["agent"] == AGENTS - 1
    source.metrics.loc[undefined, "value"] = np.nan
    figure = draw_ecdf(source)["ecdf-test_accuracy"]
    line = lines_of(figure.axes[0])["ε = 2"]
    defined = np.isfinite(line.get_xdata())
    assert max(line.get_ydata()[defined]) == pytest.approx((AGENTS - 1) / AGENTS)
    assert "values are undefined" in text_of(figure, "footnote")
