"""What docs/privacy.md shows the calculator to print is what it prints."""

import re
import shlex
from pathlib import Path

import pytest

from p2psim.cli.main import main

PAGE = Path(__file__).parents[2] / "docs" / "privacy.md"
NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e-?\d+)?")

#: Commands whose output is not shown, but which others need.
BEFORE = re.findall(r"^```bash\np2psim (run .*)\n```", PAGE.read_text(), re.MULTILINE)

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
    assert {command.split()[1] for command, _ in SHOWN} >= {"releases", "run", "calibrate", "network"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory with the scenarios, and the runs that the page makes."""
    made = tmp_path_factory.mktemp("shown")
    (made / "scenarios").symlink_to(PAGE.parents[1] / "scenarios")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        for command in BEFORE:
            assert main([*shlex.split(command), "--quiet"]) == 0
    return made


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[command for command, _ in SHOWN])
def test_outputs_are_as_shown(
    command: str,
    output: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    capsys.readouterr()
    assert main(shlex.split(command)) == 0
    printed = capsys.readouterr().out
    assert words(printed) == words(output)
    assert numbers(printed) == pytest.approx(numbers(output), rel=1e-4)
