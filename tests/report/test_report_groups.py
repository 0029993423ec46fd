"""Groups of agents and the worst tenth beside all agents."""

import pandas as pd
import pytest
from made_up_run import legend, lines_of

from p2psim.core.errors import InputError
from p2psim.report.figures.bands import draw_curves, draw_groups
from p2psim.report.source import Source

LEVELS = {
    "test_accuracy": 0.8,
    "test_accuracy[big]": 0.9,
    "test_accuracy[few]": 0.7,
    "worst_decile_accuracy": 0.4,
}


def run(levels: dict[str, float] = LEVELS, asked: str | None = None) -> Source:
    """Two cells of three replicas; each metric rises to its level, less .1 in the second cell."""
    rows = [
        {
            "network.channel.loss": [0.0, 0.5][cell],
            "cell": cell,
            "replica": replica,
            "step": step,
            "time": float(step),
            "agent": None,
            "model": "main",
            "metric": metric,
            "value": (level - 0.1 * cell) * step / 20 + 0.01 * replica,
        }
        for cell in (0, 1)
        for replica in (0, 1, 2)
        for step in (0, 10, 20)
        for metric, level in levels.items()
    ]
    table = pd.DataFrame(rows)
    table["agent"] = table["agent"].astype("Int32")
    return Source(metrics=table, ledger=pd.DataFrame(columns=["cell"]), agents=pd.DataFrame(), metric=asked)


@pytest.mark.usefixtures("look")
def test_a_panel_for_each_cell_with_a_line_for_each_part() -> None:
    figures = draw_groups(run())
    assert set(figures) == {"groups-test_accuracy"}
    (figure,) = figures.values()
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["loss = 0", "loss = 0.5"]
    assert legend(figure) == [
        "all agents",
        "big",
        "few",
        "worst tenth",
    ]
    for cell, axes in enumerate(figure.axes):
        ends = [line.get_ydata()[-1] for line in lines_of(axes).values()]
        assert ends == pytest.approx([level - 0.1 * cell + 0.01 for level in LEVELS.values()])
        low, high = axes.get_ylim()
        assert (low, high) == figure.axes[0].get_ylim()
        assert all(((low < line.get_ydata()) & (line.get_ydata() < high)).all() for line in axes.lines)


@pytest.mark.usefixtures("look")
def test_groups_are_drawn_together_and_by_themselves_only_if_asked_for() -> None:
    assert set(draw_curves(run())) == {"curves-test_accuracy", "curves-worst_decile_accuracy"}
    assert set(draw_curves(run(asked="test_accuracy[few]"))) == {"curves-test_accuracy[few]"}


@pytest.mark.usefixtures("look")
def test_the_worst_tenth_alone_is_shown_too_and_nothing_is_refused() -> None:
    two = {name: LEVELS[name] for name in ("test_accuracy", "worst_decile_accuracy")}
    (figure,) = draw_groups(run(two)).values()
    assert legend(figure) == ["all agents", "worst tenth"]
    with pytest.raises(InputError, match="recorded nothing of groups; set record"):
        draw_groups(run({"test_accuracy": 0.8}))
