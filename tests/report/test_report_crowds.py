"""Figures of more cells than there is room for lines: rows and columns of panels, and notes on what is left out."""

from pathlib import Path

import numpy as np
import pytest
from made_up_run import footnote, legend, lines_of, run
from matplotlib.backends.backend_agg import FigureCanvasAgg

from p2psim.report.figures.bands import draw_network
from p2psim.report.figures.finals import draw_finals
from p2psim.report.figures.targets import draw_targets
from p2psim.report.source import source

NETWORK = ("delivery", "loss_rate", "collision_rate")
GRID = {
    "network.channel.collision": ["none", "aloha", "slotted"],
    "network.channel.airtime": [0.1, 0.2, 0.3, 0.4, 0.5],
}

pytestmark = pytest.mark.usefixtures("look")


def test_many_cells_have_rows_of_the_time_to_a_target(tmp_path: Path) -> None:
    """ψ = f·ε/(k + 10) falls to 1/2 at k = 2fε − 10, and is recorded at every tenth k.

    Of nine replicas, with f = 1/4 … 4, the third, fifth and seventh are the first with a quarter, half, and three
    quarters of them; with ε = 200 only the first four get there by k = 300.
    """
    budgets = [*map(float, range(1, 15)), 200.0]
    made = run(
        tmp_path,
        {"privacy.epsilon": budgets},
        law=lambda epsilon, _, step: epsilon / (step + 10),
    )
    (figure,) = draw_targets(source(made, "relative_fitness", target=0.5)).values()
    (axes,) = figure.axes
    assert [text.get_text().replace("\N{NO-BREAK SPACE}", " ") for text in axes.get_yticklabels()] == [
        *(f"ε = {budget:g} (9 of 9)" for budget in budgets[:-1]),
        "ε = 200 (4 of 9)",
    ]

    def reached(factor: float, budget: float) -> float:
        return max(0.0, 10 * np.ceil((2 * factor * budget - 10) / 10 - 1e-9))

    bars = {line.get_ydata()[0]: line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2}
    dots = {line.get_ydata()[0]: line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"}
    for row, budget in enumerate(budgets[:-1]):
        assert bars[row] == pytest.approx([reached(0.5, budget), reached(2.0, budget)])
        assert dots[row] == pytest.approx(reached(1.0, budget))
    assert bars[14] == pytest.approx([190.0, 300.0])
    assert 14 not in dots
    (arrow,) = [line for line in axes.lines if line.get_marker() == ">"]
    assert (arrow.get_xdata()[0], arrow.get_ydata()[0]) == (300.0, 14)
    assert "arrow: less than three quarters by the end" in footnote(figure)


def test_the_network_of_many_cells_has_a_column_for_each_value_of_a_key(tmp_path: Path) -> None:
    made = run(tmp_path, GRID, extra=NETWORK)
    figures = draw_network(source(made))
    assert set(figures) == {"network", "network-causes"}
    axes = figures["network"].axes
    # The first key is the colour, the second is panels: a row for each metric.
    assert len(axes) == 15
    assert [one.get_title(loc="left") for one in axes[:5]] == [
        f"airtime = {value:g}" for value in GRID["network.channel.airtime"]
    ]
    assert [one.get_ylabel().split()[0] for one in axes[::5]] == ["delivery", "loss", "collision"]
    assert all(len(lines_of(one)) == 1 for one in axes)  # the same for all: drawn once
    # Labels stand upright, so that an arrow to the right is seen pointing up: more is better.
    assert all(one.yaxis.label.get_rotation() == 90 for one in axes[::5])
    assert [one.get_ylabel()[-1] for one in axes[::5]] == ["→", "←", "←"]
    assert legend(figures["network"]) == ["none", "aloha", "slotted"]
    end = 0.6 * (1 - np.exp(-300 / 60))  # the mean of three agents
    (line,) = lines_of(axes[4]).values()
    assert line.get_ydata()[-1] == pytest.approx(end)

    (bars,) = figures["network-causes"].axes
    assert len(bars.get_yticklabels()) == 15
    lost, collided = bars.containers
    assert [bar.get_width() for bar in lost] == pytest.approx([end] * 15)
    assert [bar.get_x() for bar in collided] == pytest.approx([end] * 15)


def test_where_columns_are_too_many_each_metric_has_a_figure(tmp_path: Path) -> None:
    made = run(tmp_path, {"network.channel.airtime": [0.01 * k for k in range(12)]}, extra=NETWORK[:2])
    figures = draw_network(source(made))
    assert set(figures) == {"network-delivery", "network-loss_rate", "network-causes"}
    assert len(figures["network-delivery"].axes) == 12


@pytest.mark.parametrize("cells", [2, 15])
def test_ends_of_the_network_are_panels_of_one_figure(cells: int, tmp_path: Path) -> None:
    made = run(
        tmp_path,
        {"network.channel.airtime": [0.1 * k for k in range(cells)]},
        extra=(*NETWORK, "objective_gap"),
    )
    rows = made.metrics["metric"] == "loss_rate"
    made.metrics.loc[rows, "value"] = 0.25
    figures = draw_finals(source(made))
    assert set(figures) == {"finals-network", "finals-objective_gap"}
    figure = figures["finals-network"]
    assert [" ".join(axes.get_xlabel().split()) for axes in figure.axes] == [
        "collision rate (fraction of deliveries) lower is better",
        "delivery (fraction) higher is better",
    ]
    assert "Always the same, so not drawn: loss rate 0.25." in footnote(figure)
    assert len(figure.axes[0].get_yticklabels()) == cells
    # A median for each cell, and bars.
    assert all(len(lines_of(axes)) == cells for axes in figure.axes)
    assert set(draw_finals(source(made, "delivery"))) == {"finals-delivery"}


def test_ends_of_the_network_against_a_number_of_the_data(tmp_path: Path) -> None:
    made = run(tmp_path, {"data.partition.records": [100, 200, 300]}, extra=NETWORK)
    figure = draw_finals(source(made))["finals-network"]
    assert [axes.get_title(loc="left").rstrip(" ↓↑") for axes in figure.axes] == [
        name.replace("_", " ") for name in sorted(NETWORK)
    ]
    assert all(axes.lines[0].get_xdata().tolist() == [100.0, 200.0, 300.0] for axes in figure.axes)
    assert {axes.get_xlabel() for axes in figure.axes} == {"records"}


def test_nothing_of_a_crowded_figure_lies_outside(tmp_path: Path) -> None:
    made = run(tmp_path, GRID, extra=NETWORK)
    asked = source(made, against="time")
    for figure in (*draw_network(asked).values(), *draw_finals(asked).values()):
        FigureCanvasAgg(figure).draw()
        for axes in figure.axes:
            for label in (axes.xaxis.label, axes.yaxis.label, axes._left_title, *axes.get_yticklabels()):
                if label.get_text() and label.get_visible():
                    box = label.get_window_extent()
                    assert figure.bbox.x0 <= box.x0
                    assert box.x1 <= figure.bbox.x1
