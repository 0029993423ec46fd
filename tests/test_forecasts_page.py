"""The page on forecasts runs as shown, and gives what is shown."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from p2psim.cli.main import main

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


def test_noisy_statistics_are_off_as_shown():
    (_, code), (_, shown) = [one for one in BLOCKS if one[0] in ("python", "text")][:2]
    assert rounded(printed(code)) == rounded(shown)


@pytest.mark.verification
def test_many_owners_reach_what_is_shown():
    """The rows of the table at N = 20, labels' noise .3."""
    (_, code), (_, shown) = [one for one in BLOCKS if one[0] in ("python", "text")][2:]
    assert rounded(printed(code)) == rounded(shown)
