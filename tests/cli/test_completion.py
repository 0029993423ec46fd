"""Shells complete commands, options and values, without a module that a run needs."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from p2psim.cli.main import main

#: Shells that not every machine has.
OTHERS = [
    pytest.param(
        shell,
        marks=pytest.mark.skipif(
            shutil.which(shell) is None and os.environ.get("P2PSIM_TEST_SHELLS") != "required",
            reason=f"without {shell}: apt-get install {shell}",
        ),
    )
    for shell in ("zsh", "fish")
]


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
        ("p2psim new mine --part topo", ["topology"]),
        ("p2psim new mine --from three", ["three_banks"]),
        ("p2psim list gossip-l", ["gossip-learning"]),
        ("p2psim plot runs/a --kind spac", ["spacetime"]),
        ("p2psim show runs/a --metric test_r", ["test_rmse"]),
        ("p2psim account releases --accountant zc", ["zcdp"]),
        ("p2psim run a.yaml --set privacy.del", ["privacy.delta="]),
        ("p2psim data fetch movie", ["movielens-100k"]),
    ],
)
def test_words_are_completed(line: str, words: list[str]) -> None:
    assert completed(line) == words


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files, runs, a home for shells, and the command on the path."""
    for name in (
        "study.yaml",
        "odd name.yaml",
        "stays.csv",
        "runs/one/metrics.parquet",
        "bin/p2psim",
        "home/x",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "bin" / "p2psim").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m p2psim "$@"\n')
    (tmp_path / "bin" / "p2psim").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "HOME": str(tmp_path / "home"),
        "ZDOTDIR": str(tmp_path / "home"),
        "TERM": "dumb",
    }.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def test_files_of_the_right_kind_are_offered(here: Path) -> None:
    scenarios = {word for word in completed("p2psim check ") if not word.startswith("-")}
    assert {"study.yaml", "odd name.yaml"} <= {word.replace("\\ ", " ") for word in scenarios}
    assert "stays.csv" not in scenarios
    assert "stays.csv" in completed("p2psim data describe ")
    runs = completed("p2psim plot ")
    assert "runs/" in runs
    assert "study.yaml" not in runs


def code_for(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", *OTHERS])
def test_the_code_is_code_of_the_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = code_for(shell, capsys)
    checked = subprocess.run([shell, "-n"], input=code, text=True, capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_code_names_the_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "p2psim" in code_for(shell, capsys)


def typed_in_zsh(line: str, folder: Path) -> str:
    """What stands on the screen of an interactive zsh once a line and a tab are typed."""
    (folder / "home" / ".zshrc").write_text('PS1="READY> "\neval "$(p2psim completion zsh)"\n')
    child, screen = pty.fork()
    if child == 0:
        os.execvp("zsh", ["zsh", "-i", "-o", "NO_PROMPT_SP"])

    def until(word: str, seconds: float = 60.0) -> str:
        seen, end = "", time.monotonic() + seconds
        while word not in seen and time.monotonic() < end:
            if select.select([screen], [], [], 0.2)[0]:
                seen += os.read(screen, 65536).decode(errors="replace")
        return seen

    try:
        until("READY> ")
        os.write(screen, f"{line}\t".encode())
        # Completed, what was typed is followed by a blank; marked, to know where it ends.
        shown = until(line)
        os.write(screen, b"Z")
        return shown + until("Z")
    finally:
        os.write(screen, b"\x03\x15exit\n")
        os.close(screen)
        os.waitpid(child, 0)


@pytest.mark.parametrize("shell", [OTHERS[0]])
@pytest.mark.parametrize(
    ("line", "whole"),
    [
        ("p2psim sch", "p2psim schema "),
        ("p2psim run stu", "p2psim run study.yaml "),
        ("p2psim run odd", "p2psim run odd\\ name.yaml "),
        ("p2psim new mine --part topo", "p2psim new mine --part topology "),
        ("p2psim run study.yaml --exec", "p2psim run study.yaml --executor "),
    ],
)
def test_zsh_completes_a_line(shell: str, line: str, whole: str, here: Path) -> None:
    """With nothing else in its start file."""
    assert whole in typed_in_zsh(line, here)


@pytest.mark.parametrize("shell", [OTHERS[1]])
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("p2psim sch", {"schema"}),
        ("p2psim run stu", {"study.yaml"}),
        ("p2psim run odd", {"odd name.yaml"}),
        ("p2psim new mine --part topo", {"topology"}),
        ("p2psim new mine --from three", {"three_banks"}),
        ("p2psim run study.yaml --exec", {"--executor"}),
        ("p2psim run study.yaml --engine ", {"auto", "simpy", "array"}),
    ],
)
def test_fish_completes_a_line(shell: str, line: str, words: set[str], here: Path) -> None:
    asked = subprocess.run(
        ["fish", "-c", f"p2psim completion fish | source; complete -C '{line}'"],
        capture_output=True,
        text=True,
    )
    assert {offered.partition("\t")[0] for offered in asked.stdout.splitlines()} == words
