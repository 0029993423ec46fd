"""The page of a run: what is in it, that it is the same each time, and that the command writes it."""

import argparse
import base64
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import small_study as small
from page_cases import CASES, Case

import p2psim
from p2psim.cli.main import main, parser
from p2psim.core.errors import InputError, SimulationError
from p2psim.core.events import COLUMNS, EVENT, KINDS, OUTCOMES
from p2psim.report.page import page
from p2psim.report.page.encoding import as_json, unpacked
from p2psim.report.page.recording import Recording
from p2psim.report.page.replica import left_behind
from p2psim.simulation.outcome import link_table

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", CASES)
def test_events_come_out_as_they_are_in_the_run_folder(cases: dict[str, Case], name: str) -> None:
    plain, arrays = unpacked(cases[name].file.read_text())
    events = cases[name].result.events
    assert events is not None
    size = plain["replica"]["events"]["count"]
    assert size == len(events)
    changes = np.unpackbits(arrays["time/changes"])[:size]
    found = {"seq": np.arange(size), "time": arrays["time/moments"][np.cumsum(changes) - 1]}
    found["cause"] = np.where(arrays["back"] == 0, -1, found["seq"] - arrays["back"])
    for column in COLUMNS:
        values = found.get(column, arrays.get(column))
        if column in ("kind", "outcome"):
            values = np.array(KINDS if column == "kind" else OUTCOMES)[values]
        assert values.tolist() == events[column].tolist(), column
    links = cases[name].result.links
    assert links is not None
    drawn = len(links) if plain["replica"]["links"]["drawn"] else 0
    assert arrays["link/b"].tolist() == links["b"].tolist()[:drawn]


@pytest.mark.parametrize("name", CASES)
def test_a_page_stands_alone_and_is_small(cases: dict[str, Case], name: str) -> None:
    text = cases[name].file.read_text()
    assert "http://" not in text
    assert "https://" not in text
    assert len(text.encode()) < 500_000
    assert '<link rel="stylesheet"' not in text
    assert " src=" not in text.partition('<script type="application/json"')[0]


def test_the_same_run_gives_the_same_bytes(cases: dict[str, Case]) -> None:
    case = cases["graph"]
    again = p2psim.Result.load(case.folder)
    assert page(again, question="What happened?").encode() == case.file.read_bytes()


def test_spending_is_that_of_the_ledger(cases: dict[str, Case]) -> None:
    for name, (_, cost) in CASES.items():
        _, arrays = unpacked(cases[name].file.read_text())
        ledger = cases[name].result.ledger.sort_values("agent")
        counts = arrays["spent/count"].reshape(len(ledger), -1)
        epsilon = arrays["spent/epsilon"].reshape(len(ledger), -1)
        assert counts[:, -1].tolist() == ledger["releases"].tolist()
        assert arrays["agent/wasted"].tolist() == ledger["lost"].tolist()
        np.testing.assert_allclose(epsilon[:, -1], ledger["epsilon_claimed"])
        if cost is not None:
            np.testing.assert_allclose(epsilon, counts * cost)


def test_findings_name_those_who_stayed_behind(tmp_path: Path) -> None:
    tree = small.tree(replicas=1, sweep={})
    tree["network"]["availability"] = {
        "kind": "scripted",
        "path": str(tmp_path / "away.csv"),
        "spans_are": "absent",
    }
    (tmp_path / "away.csv").write_text("agent,begin,end\n2,0,\n")
    p2psim.run(p2psim.Scenario.from_dict(tree), tmp_path / "run", progress=False)
    plain, _ = unpacked(page(p2psim.Result.load(tmp_path / "run")))
    behind, dropouts, collided, _ = plain["replica"]["findings"]
    assert behind["agents"] == [2]
    assert "agent 2 with 0 (offline 100% of the time)" in behind["text"]
    assert "most of all agent 2 (100%)" in dropouts["text"]
    assert collided["text"].startswith("Nowhere")


@pytest.mark.parametrize(
    ("updates", "behind"), [([0, 0, 0, 7], [0, 1, 2]), ([0, 0, 0, 0], []), ([4, 9, 9, 9], [0])]
)
def test_where_most_did_nothing_they_are_left_behind(updates: list[int], behind: list[int]) -> None:
    agents = pd.DataFrame({"label": ["a", "b", "c", "d"]})
    events = np.zeros(0, EVENT)
    nothing = pd.DataFrame(index=range(4))
    held = Recording(0, 0, events, pd.DataFrame({"a": [-1], "b": [0]}), agents, nothing, nothing, None)
    counts = {name: np.zeros(4) for name in ("away", "lost", "collided", "unheard", "late", "sent")}
    counts |= {"updates": np.array(updates), "spent_at": np.full(4, np.nan)}
    _, text, _, named = left_behind(held, counts)
    assert named == behind
    assert text.startswith("Nobody" if not behind else f"{len(behind)} agent")


def test_badges_name_their_cells(tmp_path: Path) -> None:
    sweep = {"privacy.scale_records": [1, 10], "learning.algorithm.form": ["printed", "corrected"]}
    tree = small.tree(replicas=1, sweep=sweep)
    tree["learning"]["algorithm"]["horizon"] = 10
    result = p2psim.run(p2psim.Scenario.from_dict(tree), tmp_path / "run", jobs=1, progress=False)
    badges = {text: meaning for text, meaning, _ in unpacked(page(result))[0]["study"]["badges"]}
    assert set(badges) >= {"SCALED RECORDS: cells 2, 3", "FORM AS PRINTED: cells 0, 2"}
    meaning = badges["SCALED RECORDS: cells 2, 3"]
    assert "cell 2: scale records = 10, printed; cell 3: scale records = 10, corrected" in meaning
    assert "over_budget" not in badges
    # Every agent has releases left, and has yet spent more than it promised: nothing of that is green.
    over = result.ledger.query("cell == 2")["over_budget"]
    assert over.all()
    budgets = unpacked(page(result, cell=2))[0]["replica"]["findings"][3]
    assert f"charges {over.sum()} of {len(over)} agents more than their budgets" in budgets["text"]
    assert budgets["tone"] == "bad"
    assert unpacked(page(result, cell=0))[0]["replica"]["findings"][3]["tone"] == "good"


def test_curves_begin_with_the_model_and_say_what_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = {"metrics": ["epsilon_spent", "messages", "relative_fitness"], "every": 10, "events": True}
    result = p2psim.run(small.scenario(replicas=1, record=record), tmp_path / "run", jobs=1, progress=False)
    plain, _ = unpacked(page(result))
    order = ["relative_fitness", "messages", "epsilon_spent"]
    for curves in (plain["study"]["curves"], plain["replica"]["series"]):
        assert list(dict.fromkeys(curve["metric"] for curve in curves)) == order
    assert plain["study"]["summary"]["metrics"] == order
    assert plain["study"]["curves_left_out"] == 0
    cells = len(plain["study"]["cells"])
    monkeypatch.setattr(sys.modules["p2psim.report.page.study"], "MOST_CURVES", cells)
    plain, _ = unpacked(page(result))
    assert {curve["metric"] for curve in plain["study"]["curves"]} == {"relative_fitness"}
    assert plain["study"]["curves_left_out"] == 2 * cells


def test_a_stretch_of_time_knows_what_was_before(cases: dict[str, Case]) -> None:
    result = cases["dropouts"].result
    events = result.events
    assert events is not None
    middle = float(events["time"].iloc[len(events) // 2])
    plain, arrays = unpacked(page(result, begin=middle))
    first = plain["replica"]["events"]["first"]
    assert first == int((events["time"] < middle).sum())
    before = events[:first]
    by_agent = (
        before[before["kind"].isin(["join", "leave"]) & (before["agent"] >= 0)]
        .groupby("agent")["kind"]
        .last()
    )
    for agent, kind in by_agent.items():
        assert arrays["before/present"][agent] == (kind == "join")
    assert arrays["before/sums"][2] == (before["kind"] == "deliver").sum()
    with pytest.raises(InputError, match="no event lies between these times"):
        page(result, begin=1e9)
    with pytest.raises(InputError, match="the first must be the earlier"):
        page(result, begin=2.0, end=1.0)
    with pytest.raises(InputError, match="cell 0 has the replicas 0 to 0; got 7"):
        page(result, replica=7)


def test_the_command_writes_it(
    cases: dict[str, Case], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "page.html"
    assert main(["report", str(cases["star"].folder), "--verify", "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(out), "bytes": out.stat().st_size}
    plain, _ = unpacked(out.read_text())
    assert "recomputed 1 simulation from their events" in plain["study"]["verified"]["text"]
    assert plain["study"]["verified"]["wrong"] is False
    assert main(["report", str(cases["star"].folder), "--cell", "3"]) == 2


def test_without_events_there_is_a_page_without_a_player(tmp_path: Path) -> None:
    record = {"metrics": ["relative_fitness"], "every": 10}
    result = p2psim.run(small.scenario(replicas=1, record=record), tmp_path / "run", progress=False)
    plain, arrays = unpacked(page(result))
    assert plain["replica"] is None
    assert len(plain["study"]["curves"]) == 2
    assert arrays["curve/0/step"].tolist() == [0, 10, 20, 30, 40]
    with pytest.raises(InputError, match="has no events to play"):
        page(result, replica=0)


def test_notebooks_show_it(cases: dict[str, Case]) -> None:
    shown = cases["star"].result.report()._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert "<pre>" in cases["star"].result.scenario._repr_html_()
    assert "<table" in cases["star"].result._repr_html_()


def test_broadcasts_reach_those_who_are_linked_at_that_moment() -> None:
    topology = p2psim.OnePeerExponential(agents=8, interval=1.0)
    network = p2psim.Network.of_graph(topology, p2psim.Broadcast())
    events = p2psim.simulate_events(network, seed=1, time=6.0, engine="simpy").read()
    nothing = pd.DataFrame(index=range(8))
    links = pd.DataFrame(link_table(network.links, 6.0, 6.0))
    held = Recording(0, 0, events, links, nothing, nothing, nothing, None)
    assert held.receivers.tolist() == p2psim.ActiveLinks(network.links).receivers(events).tolist()


def test_its_documentation_names_every_option() -> None:
    documented = set(re.findall(r"`(--\w+)", (ROOT / "docs/report.md").read_text()))
    (commands,) = (action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    options = {name for action in commands.choices["report"]._actions for name in action.option_strings}
    assert options - {"-h", "--help", "--parts"} <= documented


def test_text_cannot_end_a_script() -> None:
    text = as_json({"a": "</script><!-- https://x", "b": float("inf"), "c": float("nan")})
    assert "</" not in text
    assert "<!--" not in text
    assert "://" not in text
    assert json.loads(text) == {"a": "</script><!-- https://x", "b": "∞", "c": None}


@pytest.mark.parametrize(
    ("out", "message"),
    [("manifest.json", "is a file of the run"), ("verified.json", "is a file of the run"),
     ("metrics.parquet", "is a file of the run"), (".", "is a folder"),
     ("nowhere/page.html", "there is no folder")],
)  # fmt: skip
def test_no_file_of_the_run_is_written_over(
    out: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    p2psim.run(small.scenario(replicas=1), folder, jobs=1, progress=False)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert main(["report", str(folder), "--out", str(folder / out)]) == 2
    assert message in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_figures_of_the_run_folder_are_on_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = p2psim.run(p2psim.Scenario.from_dict(small.tree()), tmp_path / "run", jobs=1, progress=False)
    before = page(result)
    drawn = result.plot(kind="fitness") + result.plot(kind="epsilon", format="svg")

    def figures(text: str) -> list[dict[str, Any]]:
        found = re.search(r'<script type="application/json" id="drawn">(.*?)</script>', text, re.DOTALL)
        assert found is not None
        entries: list[dict[str, Any]] = json.loads(found[1])
        return entries

    assert figures(before) == []
    text = page(result)
    assert text == page(p2psim.Result.load(tmp_path / "run"))
    shown = figures(text)
    assert [one["name"] for one in shown] == ["epsilon", "fitness"]
    assert sorted(name for one in shown for name in one["files"]) == sorted(path.name for path in drawn)
    image = (tmp_path / "run" / "figures" / "fitness.png").read_bytes()
    assert [base64.b64decode(one["image"]) for one in shown] == [b"", image]
    assert "http://" not in text
    # A page stays below its size: what has no room is named.
    monkeypatch.setattr("p2psim.report.page.LARGEST", len(before.encode()) + 10)
    assert [one["image"] for one in figures(page(result))] == ["", ""]


def test_a_run_whose_first_cell_failed_has_a_page_of_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = small.tree(replicas=1, sweep={"learning.algorithm.rho": [1e9, 1.0]})
    tree["learning"]["algorithm"] |= {"theta_max": 1e300}
    tree["privacy"] = {"mechanism": "none"}
    tree["record"]["metrics"] = ["relative_fitness", "objective"]
    with pytest.raises(SimulationError, match="not finite"):
        p2psim.run(p2psim.Scenario.from_dict(tree), tmp_path / "run", jobs=1, progress=False)
    assert main(["report", str(tmp_path / "run")]) == 0
    plain, _ = unpacked((tmp_path / "run" / "report.html").read_text())
    assert plain["replica"]["cell"] == 1
    capsys.readouterr()
    assert main(["report", str(tmp_path / "run"), "--cell", "0"]) == 2
    assert "cell 0 has no recorded events yet; cells that have some: 1" in capsys.readouterr().err
