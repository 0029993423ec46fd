"""What docs/privacy.md shows the calculator to print is what it prints."""

import re
import shlex
from pathlib import Path

import pytest

from p2psim.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "privacy.md"
NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e-?\d+)?")

SHOWN = [
    (command, output)
    for command, output in re.findall(
        r"^```console\n\$ p2psim (account .*)\n([^`]*?)```", PAGE.read_text(), re.MULTILINE
    )
]


def words(text: str) -> list[str]:
    return NUMBER.sub("#", text).split()


def numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in NUMBER.findall(text)]


def test_something_is_shown_of_every_action() -> None:
    assert {command.split()[1] for command, _ in SHOWN} >= {"releases", "calibrate", "network"}


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_outputs_are_as_shown(command: str, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(command)) == 0
    printed = capsys.readouterr().out
    assert words(printed) == words(output)
    assert numbers(printed) == pytest.approx(numbers(output), rel=1e-4)
