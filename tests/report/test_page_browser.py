"""The page of a run in a real browser, opened from disk, without a network.

These tests are skipped without playwright or Chromium, unless P2PSIM_TEST_CHROMIUM=required.
"""

import json
import os
import shutil
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_study as small
from page_cases import CASES, Case, replayed
from pairs import few

import p2psim
from p2psim.report.page import page as html
from p2psim.scenario.model import Scenario

REQUIRED = os.environ.get("P2PSIM_TEST_CHROMIUM") == "required"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if REQUIRED:
    import playwright.sync_api as playwright
else:
    playwright = pytest.importorskip(
        "playwright.sync_api",
        reason='tests of pages need playwright and Chromium: pip install "p2psim[browser]"',
    )
    if CHROMIUM is None:
        pytest.skip("tests of pages need Chromium: apt-get install chromium", allow_module_level=True)

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip
#: Marks that a frame may draw, whatever the number of events.
MOST_MARKS = 20_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    assert CHROMIUM is not None
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Any]:
    """Opens pages; afterwards nothing was complained of, and nothing was asked of a network."""
    contexts, faults = [], []

    def open_page(case: Case | Path, hash: str = "", **settings: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}, **settings})
        contexts.append(context)

        def refuse(route: Any) -> None:
            faults.append(route.request.url)
            route.abort()

        context.route(lambda url: not url.startswith(("file:", "data:", "blob:")), refuse)
        page = context.new_page()
        page.on(
            "console", lambda message: message.type in ("error", "warning") and faults.append(message.text)
        )
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"{(case if isinstance(case, Path) else case.file).as_uri()}{hash}")
        page.evaluate("window.p2psim.ready")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not faults


@pytest.mark.parametrize("name", few(CASES, 3))
def test_the_state_at_an_event_is_that_of_a_replay(opened: Any, cases: dict[str, Case], name: str) -> None:
    case = cases[name]
    page, events = opened(case), case.result.events
    assert events is not None
    for k in np.linspace(0, len(events) - 1, 7).astype(int).tolist():
        state, expected = page.evaluate(f"window.p2psim.seek({k})"), replayed(case, k)
        assert (state["seq"], state["time"], state["kind"]) == (k, expected["time"], events["kind"].iloc[k])
        for entry in ("inFlight", "collided", "delivered", "queue", "present", "releases"):
            assert state[entry] == expected[entry], (k, entry)
        assert (state["learnerVersion"] or 0) == expected["learner"]
        if case.cost is not None:
            np.testing.assert_allclose(state["epsilon"], np.array(expected["releases"]) * case.cost)
        frame = page.evaluate("window.p2psim.frame()")
        assert 0 < frame["marks"] < MOST_MARKS


@pytest.mark.parametrize("name", ["star", "dropouts"])
def test_a_stretch_begins_where_the_run_stood(opened: Any, cases: dict[str, Case], name: str) -> None:
    case = cases[name]
    events = case.result.events
    assert events is not None
    begin = float(events["time"].iloc[len(events) // 3])
    file = case.folder.parent / f"{name}-stretch.html"
    file.write_text(html(case.result, begin=begin), encoding="utf-8")
    page, first = opened(file), int((events["time"] < begin).sum())
    for k in (first, first + 17, len(events) - 1):
        state, expected = page.evaluate(f"window.p2psim.seek({k})"), replayed(case, k)
        for entry in ("inFlight", "collided", "delivered", "queue", "present", "releases"):
            assert state[entry] == expected[entry], (k, entry)
        assert (state["seq"], state["learnerVersion"]) == (k, expected["learner"])


def test_medians_of_what_is_infinite_or_undefined(opened: Any, cases: dict[str, Case]) -> None:
    """Infinities count; between a number and infinity there is nothing, so that the lower one is the median."""
    page = opened(cases["star"])
    script = (Path(p2psim.__file__).parent / "report/page/assets/results.js").read_text(encoding="utf-8")
    for values, expected in (
        ("1, Infinity, 3", "3"), ("1, 2, Infinity, Infinity", "2"), ("Infinity, 1, Infinity", "Infinity"),
        ("NaN, 4, null, 2", "3"), ("-Infinity, 5", "-Infinity"), ("10, 9", "9.5"), ("NaN", "NaN"),
    ):  # fmt: skip
        found = page.evaluate(f"(() => {{ {script}\n return String(median([{values}])); }})()")
        assert found == expected, values


def test_lines_of_cells_have_a_colour_by_the_first_swept_key_and_a_dash_by_the_second(
    opened: Any, cases: dict[str, Case]
) -> None:
    page = opened(cases["star"])
    assets = Path(p2psim.__file__).parent / "report/page/assets"
    script = (assets / "results.js").read_text(encoding="utf-8")
    colours = (assets / "theme.js").read_text(encoding="utf-8").split("theme.start")[0]

    def lines(*cells: tuple[Any, ...]) -> list[tuple[str, Any]]:
        rows = [[*values, number] for number, values in enumerate(cells)]
        table = {"columns": ["access", "airtime", "size", "cell"], "rows": rows}
        study = json.dumps({"summary": table | {"swept": table["columns"][:3]}})
        found = page.evaluate(
            f"(() => {{ {colours}\n{script}\n const of = lineOfCell({study});"
            f" return [...Array({len(cells)}).keys()].map((cell) => of(cell, cell)); }})()"
        )
        return [(one["stroke"], one.get("dash")) for one in found]

    # Sizes advance with the first key, and are no dash of their own.
    six = lines(*((access, airtime, size) for access, size in (("a", 1), ("b", 2)) for airtime in (1, 2, 3)))
    assert len({stroke for stroke, _ in six}) == 2
    assert [stroke for stroke, _ in six[:3]] == [six[0][0]] * 3
    assert [dash for _, dash in six] == [None, [6, 3], [2, 3]] * 2
    # Seven values are too many dashes: they are colours, and the two of the first key are dashes.
    many = lines(*((access, airtime, 1) for access in "ab" for airtime in range(7)))
    assert [stroke for stroke, _ in many[:7]] == [stroke for stroke, _ in many[7:]]
    assert len({stroke for stroke, _ in many}) == 7
    assert [dash for _, dash in many] == [None] * 7 + [[6, 3]] * 7
    # One value of the first key: each line has the colour of the second.
    assert len({stroke for stroke, _ in lines(*(("a", airtime, 1) for airtime in range(4)))}) == 4


def test_very_many_agents_are_drawn_in_squares(opened: Any, tmp_path: Path) -> None:
    tree = small.tree(replicas=1, sweep={}, privacy={"mechanism": "none"})
    tree["network"]["topology"]["agents"] = 2500
    tree["data"]["source"]["points"] = 1
    tree["learning"]["algorithm"]["horizon"] = 300
    result = p2psim.run(Scenario.from_dict(tree), tmp_path / "run", jobs=1, progress=False)
    (tmp_path / "many.html").write_text(html(result), encoding="utf-8")
    page = opened(tmp_path / "many.html")
    assert page.evaluate("window.p2psim.seek(1000).present.length") == 2500
    assert 1250 < page.evaluate("window.p2psim.frame().marks") < MOST_MARKS
    assert "2 agents" in page.locator("#network-key").inner_text()


def test_there_are_such_events_to_look_at(cases: dict[str, Case]) -> None:
    ends = {name: replayed(case, len(case.result.events) - 1) for name, case in cases.items()}  # type: ignore[arg-type]
    assert ends["shared channel"]["collided"] > 5
    assert not all(ends["dropouts"]["present"])
    kinds = set(cases["rounds"].result.events["peer"])  # type: ignore[index]
    assert -3 in kinds


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("name", few(["shared channel", "graph"], 1))
def test_a_page_fits_its_window(
    opened: Any, cases: dict[str, Case], name: str, width: int, scheme: str
) -> None:
    page = opened(cases[name], viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
    assert dark == (scheme == "dark")
    # Something is drawn, in ink that can be told from the paper.
    colours = page.evaluate(
        "(() => { const c = document.getElementById('lanes'); const d = c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data; const s = new Set();"
        " for (let i = 0; i < d.length; i += 4) s.add(d.slice(i, i + 4).join()); return s.size; })()"
    )
    assert colours > 5


#: Texts that an edge of their canvas cuts are kept.
CUT = """
window.cut = [];
const draw = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
  const size = this.measureText(text), at = (dx) => this.getTransform().transformPoint(new DOMPoint(x + dx, y));
  for (const { x, y } of [at(-size.actualBoundingBoxLeft), at(size.actualBoundingBoxRight)])
    if (this.canvas.clientWidth && (x < -1 || y < -1 || x > this.canvas.width + 1 || y > this.canvas.height + 1))
      window.cut.push(text);
  return draw.call(this, text, x, y);
};
"""


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("name", ["star", "graph"])
def test_no_edge_cuts_a_label(
    opened: Any, cases: dict[str, Case], tmp_path: Path, name: str, width: int
) -> None:
    result = copy(cases[name].result)
    labels = [f"St Bartholomew's General Hospital of town {i}" for i in range(len(result.agents))]
    vars(result)["agents"] = result.agents.assign(label=labels)
    (tmp_path / "named.html").write_text(html(result), encoding="utf-8")
    page = opened(tmp_path / "named.html", viewport={"width": width, "height": 800})
    page.add_init_script(CUT)
    page.reload()
    page.evaluate("window.p2psim.ready")
    for k in (0, 20):
        page.evaluate(f"window.p2psim.seek({k})")
    assert page.evaluate("window.cut") == []


def test_each_of_few_agents_has_its_colour_of_spending(opened: Any, cases: dict[str, Case]) -> None:
    page = opened(cases["star"])
    shown = page.evaluate(
        "[...document.querySelectorAll('#spent-key span')].map((e) => [e.textContent, e.firstChild.style.borderColor])"
    )
    assert [text for text, _ in shown] == ["0", "1", "2", "3", "budget"]
    assert len({colour for _, colour in shown}) == 5


def test_a_keyboard_is_enough(opened: Any, cases: dict[str, Case]) -> None:
    page = opened(cases["shared channel"])
    place = "window.p2psim.state().k"
    page.keyboard.press("ArrowRight")
    assert page.evaluate(place) == 1
    page.keyboard.press("End")
    last = page.evaluate(place)
    page.keyboard.press("Home")
    assert (page.evaluate(place), last) == (0, len(cases["shared channel"].result.events) - 1)  # type: ignore[arg-type]
    page.keyboard.press("c")
    state = page.evaluate("window.p2psim.state()")
    events = cases["shared channel"].result.events
    assert events is not None
    first = int(events.index[events["outcome"] == "collision"][0])
    assert (state["k"], state["event"], state["collided"]) == (first, first, 1)
    page.keyboard.press("n")
    assert page.evaluate("window.p2psim.state().selected") == [0]
    page.keyboard.press("Escape")
    assert page.evaluate("window.p2psim.state().selected") == []
    wide = "(([a, b]) => b - a)(window.p2psim.state().window)"
    before = page.evaluate(wide)
    page.keyboard.press("+")
    assert page.evaluate(wide) == pytest.approx(before / 2)
    # Every control has a name, and Tab reaches them.
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, select, input, canvas')].filter((e) => !(e.textContent.trim()"
        " || e.getAttribute('aria-label') || e.closest('label, [role=img][aria-label]'))).length"
    )
    assert unnamed == 0


def test_a_selection_is_linked_and_kept_in_the_address(opened: Any, cases: dict[str, Case]) -> None:
    page = opened(cases["dropouts"])
    page.locator("#agent-table tbody tr").first.click()
    (chosen,) = page.evaluate("window.p2psim.state().selected")
    assert page.locator("#ledger tr[aria-selected=true]").count() == 1
    page.evaluate("window.p2psim.seek(40)")
    page.wait_for_function("location.hash.includes('k=40')")
    address = page.evaluate("location.hash")
    again = opened(cases["dropouts"], address)
    state = again.evaluate("window.p2psim.state()")
    assert (state["k"], state["selected"]) == (40, [chosen])


def test_it_plays_and_waits_where_motion_is_not_wanted(opened: Any, cases: dict[str, Case]) -> None:
    page = opened(cases["star"])
    page.keyboard.press(" ")
    page.wait_for_function("window.p2psim.state().k > 3")
    page.keyboard.press(" ")
    still = opened(cases["star"], reduced_motion="reduce")
    still.keyboard.press(" ")
    still.wait_for_function("window.p2psim.state().k === 1", timeout=3000)


def test_figures_of_the_run_folder_are_shown_and_can_be_saved(opened: Any, tmp_path: Path) -> None:
    result = p2psim.run(Scenario.from_dict(small.tree()), tmp_path / "run", jobs=1, progress=False)
    bare = opened(result_page(result, tmp_path / "bare.html"))
    assert bare.is_hidden("#drawn-figures")
    assert "p2psim plot RUN" in bare.inner_text("#undrawn")
    result.plot(kind="fitness", format="png")
    result.plot(kind="epsilon", format="svg")
    page = opened(result_page(result, tmp_path / "drawn.html"), viewport={"width": 390, "height": 800})
    assert page.evaluate(
        "[...document.querySelectorAll('#figures img')].map((one) => one.naturalWidth > 100)"
    ) == [True]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert "epsilon (csv, svg)" in page.inner_text("#undrawn")
    with page.expect_download() as saved:
        page.click("#figures a")
    image = (tmp_path / "run" / "figures" / "fitness.png").read_bytes()
    assert saved.value.suggested_filename == "fitness.png"
    assert Path(saved.value.path()).read_bytes() == image
    page.click("#undrawn button")
    page.wait_for_function("document.querySelector('#undrawn button').textContent !== 'Copy'")


def result_page(result: p2psim.Result, file: Path) -> Path:
    """The page of a run in a file."""
    file.write_text(html(result), encoding="utf-8")
    return file
