"""Swept keys as colours, dashes and panels; words of a scenario; sizes for print, and numbers beside each figure."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_up_run import footnote, legend, lines_of, psi, run
from matplotlib.backends.backend_agg import FigureCanvasAgg

from p2psim.core.errors import InputError
from p2psim.core.figures import FIGURES
from p2psim.report import draw, style
from p2psim.report.channels import MOST_LINES, Plan
from p2psim.report.source import source

KINDS = ["none", "aloha", "slotted", "carrier-sense"]
SIZES = [1.0, 2.0, 3.0]

pytestmark = pytest.mark.usefixtures("look")


def fitness(path: Path, sweep: dict[str, list], **words):
    made = run(path, sweep, steps=range(0, 31, 10), law=lambda *_: 1.0, factors=(1.0,))
    made.metrics["value"] *= made.metrics["cell"] + 1.0
    for name, given in words.items():
        setattr(made, name, given)
    return FIGURES["fitness"].draw(source(made))["fitness"]


@pytest.mark.parametrize(
    "sweep",
    [
        {"a.b": SIZES},
        {"a.b": [float(k) for k in range(1, 9)]},
        {"a.b": KINDS, "c.d": [1.0, 2.0]},
        {"a.b": [1.0, 2.0], "c.d": ["one", "two"], "e.f": [True, False]},
        {"a.b": KINDS, "c.d": SIZES},
        {"a.b": [float(k) for k in range(12)]},
        {"a.b": [float(k) for k in range(12)], "c.d": KINDS},
    ],
)
def test_lines_of_a_panel_never_look_the_same(tmp_path: Path, sweep: dict[str, list]) -> None:
    figure = fitness(tmp_path, sweep)
    cells = int(np.prod([len(values) for values in sweep.values()]))
    assert sum(len(lines_of(axes)) for axes in figure.axes) == cells
    for axes in figure.axes:
        looks = {
            (str(line.get_color()), str(line._unscaled_dash_pattern)) for line in lines_of(axes).values()
        }
        assert len(looks) == len(lines_of(axes)) <= MOST_LINES


def test_the_first_key_is_colour_and_the_second_dashes(tmp_path: Path) -> None:
    figure = fitness(tmp_path, {"a.b": SIZES, "c.d": ["one", "two"]})
    (axes,) = figure.axes
    lines = lines_of(axes)
    assert str(lines["b = 1, one"].get_color()) == str(lines["b = 1, two"].get_color())
    assert str(lines["b = 1, one"].get_color()) != str(lines["b = 2, one"].get_color())
    assert lines["b = 1, two"]._unscaled_dash_pattern == lines["b = 3, two"]._unscaled_dash_pattern
    assert legend(figure) == ["b:", "1", "2", "3", "d:", "one", "two"]


def test_more_than_eight_lines_have_panels_of_the_second_key(tmp_path: Path) -> None:
    figure = fitness(tmp_path, {"a.b": KINDS, "c.d": SIZES})
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["d = 1", "d = 2", "d = 3"]
    assert legend(figure) == KINDS
    assert len({axes.get_ylim() for axes in figure.axes}) == 1


def test_equal_lines_are_drawn_once_and_said(tmp_path: Path) -> None:
    made = run(tmp_path, {"c.d": ["one", "two"], "privacy.epsilon": [1.0, 10.0]})
    figure = FIGURES["fitness"].draw(source(made))["fitness"]
    assert list(lines_of(figure.axes[0])) == ["one, ε = 1", "one, ε = 10"]
    (said,) = [text.get_text() for text in figure.texts if "they are the same" in text.get_text()]
    assert "one, ε = 1 and two, ε = 1" in " ".join(said.split())


def test_baselines_set_no_scale_and_the_run_has_the_name_of_its_algorithm(tmp_path: Path) -> None:
    made = run(tmp_path)
    made.scenario = {"name": "made-up", "learning": {"algorithm": {"kind": "async-star"}}}
    local = made.metrics.assign(model="local", value=1e9)
    made.metrics = pd.concat([made.metrics, local], ignore_index=True)
    away = FIGURES["fitness"].draw(source(made))["fitness"]
    (axes,) = away.axes
    assert axes.get_ylim()[1] < 100
    assert legend(away) == [text.get_text() for text in axes.texts] == []
    assert "Off the scale of relative fitness: local, 10⁹" in footnote(away)
    assert list(lines_of(axes)) == ["async star"]
    made.metrics.loc[made.metrics["model"] == "local", "value"] = 3.0
    figure = FIGURES["fitness"].draw(source(made))["fitness"]
    assert {text.get_text() for text in figure.axes[0].texts} | set(legend(figure)) == {"async star", "local"}


def test_keys_that_advance_together_are_one_channel_with_words_of_their_own(tmp_path: Path) -> None:
    sweep = {"zip": {"x.y": ["push", "push", "pull"], "z.w": ["p", "q", "p"]}, "a.b": [1.0, 2.0]}
    made = run(tmp_path, {"cells": [0, 1, 2], "a.b": [1.0, 2.0]}, factors=(1.0,))
    for key, values in reversed(sweep["zip"].items()):
        made.metrics.insert(0, key, made.metrics["cells"].map(dict(enumerate(values))))
    made.metrics = made.metrics.drop(columns="cells")
    made.scenario = {"name": "made-up", "sweep": sweep}
    assert [line.label for line in Plan(source(made)).lines][::2] == [
        "push, p, b = 1",
        "push, q, b = 1",
        "pull, p, b = 1",
    ]
    made.scenario["labels"] = {"zip": ["first", "second", "third"], "a.b": "load", "a.b=2": "heavy"}
    assert [line.label for line in Plan(source(made)).lines][:3] == [
        "first, load = 1",
        "first, heavy",
        "second, load = 1",
    ]


@pytest.mark.parametrize("width", ["column", "page"])
def test_print_is_as_wide_as_asked_and_its_text_large_enough(tmp_path: Path, width: str) -> None:
    made = run(tmp_path, {"a.b": KINDS, "privacy.epsilon": [1.0, 10.0, 100.0]}, extra=("test_accuracy",))
    made.ledger["not_private"] = True
    with style.look(width):
        for kind in ("fitness", "finals"):
            for figure in FIGURES[kind].draw(source(made)).values():
                assert figure.get_figwidth() == {"column": 3.4, "page": 7.0}[width]
                FigureCanvasAgg(figure).draw()
                texts = [text for text in figure.findobj(mpl_text) if text.get_text() and text.get_visible()]
                assert min(text.get_fontsize() for text in texts) >= 6


def mpl_text(artist: object) -> bool:
    return hasattr(artist, "get_fontsize") and hasattr(artist, "get_text")


def test_files_are_those_asked_for_the_same_each_time_with_the_numbers_drawn(tmp_path: Path) -> None:
    made = run(tmp_path, {"privacy.epsilon": [1.0, 10.0]})
    paths = draw(made, "fitness", format="pdf", width="column")
    assert [path.name for path in paths] == ["fitness.pdf", "fitness.csv"]
    before = paths[0].read_bytes()
    assert draw(made, "fitness", format="pdf", width="column")[0].read_bytes() == before
    table = pd.read_csv(paths[1])
    line = table[table["line"] == "ε = 10"]
    law = np.array([psi(10.0, 1000, k) for k in range(0, 301, 10)])
    np.testing.assert_allclose(line["x"], range(0, 301, 10))
    np.testing.assert_allclose(line[["y", "low", "high"]], np.stack([law, law / 2, law * 2], axis=1))
    with pytest.raises(InputError, match="format must be one of png, svg, pdf, got 'gif'"):
        draw(made, "fitness", format="gif")
    with pytest.raises(InputError, match="width must be one of page, column, got 'wide'"):
        draw(made, "fitness", width="wide")
