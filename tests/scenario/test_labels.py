"""Labels of swept parts have every key that tells parts of one kind apart; columns stay what they were."""

from pathlib import Path

import pandas as pd
import pytest
from language import VALID

import p2psim
from p2psim.core.errors import InputError
from p2psim.report.source import relabelled, source
from p2psim.scenario.cells import cells, labels_of
from p2psim.scenario.figure import given_words
from p2psim.scenario.model import Scenario

SWEEP = "sweep:\n  privacy.epsilon: [10, 100]\n"


def labels(sweep: str) -> dict[str, dict[str, str]]:
    return labels_of(cells(Scenario.parse(VALID.replace(SWEEP, f"sweep:\n  {sweep}\n"))))


def test_a_default_is_named_where_others_of_the_kind_differ_in_it():
    key = "network.exchange"
    given = f"{key}: [request, {{kind: request, busy: queue, service: {{exponential: 0.5}}}}]"
    assert labels(given) == {key: {"request": "request(service=0, busy=refuse)"}}


def test_what_is_left_out_is_not_named():
    given = "learning.algorithm.theta_max: [1, 2]\n  network.channel: [{}, {bandwidth: 2.0}]"
    assert labels(given) == {}


def test_what_says_enough_keeps_its_name():
    assert labels("privacy.allocation: [horizon, {kind: cap, releases: 3}, {kind: cap, releases: 4}]") == {}
    assert labels("privacy.epsilon: [10, {0: 1, 1: 2, 2: 3}]") == {}
    assert labels("privacy.epsilon: [10, 100]") == {}
    # Of another kind, it is told apart by its kind.
    assert labels("privacy.allocation: [horizon, {kind: geometric, ratio: 0.9}]") == {}


def test_the_column_of_a_cell_does_not_depend_on_what_else_is_swept():
    key = "network.exchange"
    for others in ("request", "request, {kind: request, busy: queue, service: {exponential: 0.5}}"):
        scenario = Scenario.parse(VALID.replace(SWEEP, f"sweep:\n  {key}: [{others}]\n"))
        assert cells(scenario)[0].swept[key] == "request"


def test_labels_take_the_place_of_values_in_copies():
    table = pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]})
    assert relabelled(table, {"a": {"x": "x(k=1)"}, "c": {}})["a"].tolist() == ["x(k=1)", "y"]
    assert table["a"].tolist() == ["x", "y"]


def test_tables_and_figures_of_a_run_have_labels_and_files_have_values(tmp_path):
    given = "network.exchange: [request, {kind: request, busy: queue, service: {exponential: 0.5}}]"
    result = p2psim.run(
        Scenario.parse(VALID.replace(SWEEP, f"sweep:\n  {given}\n")), tmp_path / "run", progress=False
    )
    assert result.summary()["network.exchange"].iloc[0] == "request(service=0, busy=refuse)"
    assert set(result.metrics["network.exchange"]) == {
        "request",
        "request(service=exponential=0.5, busy=queue)",
    }
    drawn = source(result).metrics["network.exchange"]
    assert set(drawn) == {"request(service=0, busy=refuse)", "request(service=exponential=0.5, busy=queue)"}


KEY = "network.exchange"
TWO = f"{KEY}: [request, {{kind: request, busy: queue, service: {{exponential: 0.5}}}}]"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "network.exchang: turn",
            r"labels\.network\.exchang.*unknown swept key.*did you mean network\.exchange",
        ),
        ("'network.exchange=poll': polled", r"labels\.network\.exchange=poll"),
        ("network.exchange: [one]", "has 1 words for 2 values"),
        ("'network.exchange=request': waits", "request is the kind of 2 values"),
        ("zip: [one, two]", r"labels\.zip"),
    ],
)
def test_a_label_of_nothing_is_refused_with_its_place(given: str, message: str) -> None:
    text = VALID.replace(SWEEP, f"sweep:\n  {TWO}\n") + f"labels:\n  {given}\n"
    with pytest.raises(InputError, match=message) as caught:
        Scenario.parse(text, "a.yaml")
    assert caught.value.faults[0].line == len(text.splitlines())


def test_labels_are_words_of_figures_and_change_no_hash() -> None:
    plain = VALID.replace(SWEEP, f"sweep:\n  {TWO}\n")
    scenario = Scenario.parse(f"{plain}labels:\n  {KEY}: [at once, waits]\n")
    assert scenario.identity() == Scenario.parse(plain).identity()
    assert [cell.content for cell in cells(scenario)] == [
        cell.content for cell in cells(Scenario.parse(plain))
    ]
    table = pd.DataFrame([{**cell.swept, "cell": cell.index} for cell in cells(scenario)])
    assert list(given_words(scenario.resolved(), table)[1][KEY].values()) == ["at once", "waits"]
    named = Scenario.parse(
        plain.replace(TWO, "privacy.epsilon: [10, .inf]")
        + "labels: {privacy.epsilon: budget, 'privacy.epsilon=10': ten}\n"
    )
    table = pd.DataFrame([{**cell.swept, "cell": cell.index} for cell in cells(named)])
    assert given_words(named.resolved(), table) == (
        {"privacy.epsilon": "budget"},
        {"privacy.epsilon": {10: "ten"}},
    )


@pytest.mark.parametrize(
    "override",
    [
        "sweep={}",
        f"sweep={{{KEY}: [{{kind: request, busy: queue}}]}}",
        "sweep={privacy.epsilon: [1, 2]}",
        f"sweep.{KEY}=[request, {{kind: request, busy: queue}}]",
    ],
)
def test_labels_of_what_an_override_sweeps_no_more_are_left_out(override: str) -> None:
    text = VALID.replace(SWEEP, f"sweep:\n  {TWO}\n") + f"labels:\n  {KEY}: [at once, waits]\n"
    assert not Scenario.parse(text, "", [override]).labels


def test_words_in_a_list_stay_with_their_values() -> None:
    text = VALID.replace(SWEEP, "sweep:\n  privacy.epsilon: [10, 100, 1000]\n")
    text += "labels:\n  privacy.epsilon: [little, some, much]\n"
    for values, words in (([1000, 10], ["much", "little"]), ([100], ["some"]), ([10, 100, 1000], None)):
        labels = Scenario.parse(text, "", [f"sweep.privacy.epsilon={values}"]).labels
        assert labels == {"privacy.epsilon": words or ["little", "some", "much"]}
    # As many values as words, and others: their words would be wrong.
    assert not Scenario.parse(text, "", ["sweep.privacy.epsilon=[1, 2, 3]"]).labels
    given = ["sweep.privacy.epsilon=[1, 2]", "labels={privacy.epsilon: [a, b]}"]
    assert Scenario.parse(text, "", given).labels == {"privacy.epsilon": ["a", "b"]}


def test_words_of_values_that_advance_together_stay_with_them(tmp_path: Path) -> None:
    both = "sweep:\n  zip:\n    privacy.epsilon: [10, 100]\n    learning.algorithm.theta_max: [{}, {}]\n"
    text = VALID.replace(SWEEP, both.format(1, 2)) + "labels:\n  zip: [low, high]\n"
    (tmp_path / "base.yaml").write_text(text)
    for sweep, words in ((both.format(1, 2).replace("10, 100", "100, 10").replace("1, 2", "2, 1"), ["high", "low"]),
                         (both.format(2, 1), None)):  # fmt: skip
        (tmp_path / "other.yaml").write_text(f"name: other\nextends: base.yaml\n{sweep}")
        assert Scenario.load(tmp_path / "other.yaml").labels == ({"zip": words} if words else {})
