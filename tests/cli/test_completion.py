"""Shells complete commands, options and values, without a module that a run needs."""

import os
import subprocess
import sys

import pytest

from p2psim.cli.main import main


def completed(line: str) -> list[str]:
    """What bash gets, which passes file descriptor 8 and the line in its environment."""
    script = f"{sys.executable} -m p2psim 8>&1 9>/dev/null 1>/dev/null 2>/dev/null"
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    ran = subprocess.run(["bash", "-c", script], env=os.environ | asked, capture_output=True, text=True)
    return [word.strip() for word in ran.stdout.splitlines()]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("p2psim ver", ["verify"]),
        ("p2psim sch", ["schema"]),
        ("p2psim run --overw", ["--overwrite"]),
        ("p2psim show --format la", ["latex"]),
        ("p2psim account cal", ["calibrate"]),
    ],
)
def test_words_are_completed(line: str, words: list[str]) -> None:
    assert completed(line) == words


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_code_names_the_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "p2psim" in capsys.readouterr().out


def test_the_code_for_bash_is_code_of_bash(capsys: pytest.CaptureFixture[str]) -> None:
    main(["completion", "bash"])
    checked = subprocess.run(["bash", "-n"], input=capsys.readouterr().out, text=True, capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, "")
