"""The page on forecasts runs as shown, and gives what is shown."""

import contextlib
import io
import re
from pathlib import Path

import pytest
import yaml

from p2psim.analysis.forecasts.study import forecast_scenario
from p2psim.cli.main import main
from p2psim.scenario.model import Scenario

PAGE = Path(__file__).parents[1] / "docs" / "forecasts.md"
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)


def rounded(text):
    """Words; digits that may differ between platforms are not compared, beyond three; nothings are nothing."""
    number = re.compile(r"(\d*\.?\d+(?:e[+-]?\d+)?)([%,]?)")
    found = []
    for word in text.split():
        met = number.fullmatch(word)
        found.append(f"{float(met[1]):.3g}{met[2]}" if met else word)
    return found


def printed(code):
    """What a block of Python prints."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        exec(code, {})
    return told.getvalue()


@pytest.fixture(autouse=True)
def loans(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("loans.yaml").write_text(next(text for language, text in BLOCKS if language == "yaml"))


def test_the_page_has_all_its_parts():
    kinds = [language for language, _ in BLOCKS]
    assert kinds.count("console") == 4
    assert kinds.count("python") == kinds.count("text") == 2


@pytest.mark.parametrize("shown", [text for language, text in BLOCKS if language == "console"])
def test_commands_tell_what_is_shown(shown, capsys):
    command, expected = shown.split("\n", 1)
    assert main(command.removeprefix("$ p2psim ").split()) == 0
    assert rounded(capsys.readouterr().out) == rounded(expected)


@pytest.mark.verification
def test_noisy_statistics_are_off_as_shown():
    (_, code), (_, shown) = [one for one in BLOCKS if one[0] in ("python", "text")][:2]
    assert rounded(printed(code)) == rounded(shown)


@pytest.mark.verification
def test_as_many_hospitals_gain_as_the_page_says():
    """Owners whose ψ alone, without noise, lies above the expected ψ of all, with budgets for the answers given."""
    text = (PAGE.parents[1] / "scenarios" / "f_hospitals.yaml").read_text(encoding="utf-8")
    said = re.search(r"at ε = 1 (\w+) of\nthem gains, at 10 it is (\d+)", PAGE.read_text(encoding="utf-8"))
    tree = yaml.safe_load(text) | {"sweep": {"privacy.epsilon": [1, 10]}, "figure": [], "labels": {}}
    tree["privacy"]["allocation"] = {"kind": "cap", "tail": 1e-6}
    found = [
        int((one.forecast.alone > one.forecast.curve.expected[-1]).sum())
        for one in forecast_scenario(Scenario.from_dict(tree))
    ]
    assert found == [{"one": 1, "none": 0}[said[1]], int(said[2])]


@pytest.mark.verification
def test_many_owners_reach_what_is_shown():
    """The rows of the table at N = 20, labels' noise .3."""
    (_, code), (_, shown) = [one for one in BLOCKS if one[0] in ("python", "text")][2:]
    assert rounded(printed(code)) == rounded(shown)
