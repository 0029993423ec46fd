"""What is printed never decides how a command ends: not its characters, nor a reader that goes, nor a closed stream."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pairs import few

from p2psim.cli.streams import Outlet, spelled

STAR = """
name: star
network: {topology: {kind: star, agents: 3}, exchange: request}
data: {source: {kind: linear-regression, dimension: 3, points: 20}}
learning:
  algorithm: {kind: async-star, horizon: 20, rho: {h: .5}, theta_max: 3}
  loss: squared
  regularizer: {l2: 1.0e-3}
"""
COMMAND = f"{sys.executable} -m p2psim"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a good scenario and a bad one."""
    monkeypatch.chdir(tmp_path)
    Path("star.yaml").write_text(STAR)
    Path("bad.yaml").write_text(STAR.replace("20", "many"))
    return tmp_path


def shell(line: str) -> tuple[list[int], str]:
    """Exit codes of a pipeline of bash, in which P is the command, and everything that reaches a terminal."""
    script = f'{line.replace("P ", COMMAND + " ")}; echo "codes ${{PIPESTATUS[*]}}" >&9'
    ran = subprocess.run(
        ["bash", "-c", f"exec 9>codes; {script}"], capture_output=True, encoding="utf-8", errors="replace"
    )
    codes = [int(code) for code in Path("codes").read_text().split()[1:]]
    return codes, ran.stdout + ran.stderr


@given(st.characters())
def test_every_character_can_be_spelled(character: str) -> None:
    assert spelled(character).isascii()
    assert spelled(character).isprintable() or character.isascii()
    assert spelled(character)


@pytest.mark.parametrize(
    ("character", "ascii"),
    [
        ("ε", "epsilon"),
        ("Θ", "Theta"),
        ("λ", "lambda"),
        ("≤", "<="),
        ("²", "^2"),
        ("é", "e"),
        ("\udcff", "\\xff"),
    ],
)
def test_spellings(character: str, ascii: str) -> None:
    assert spelled(character) == ascii


@pytest.mark.parametrize("encoding", ["ascii:strict", "latin-1"])
def test_an_encoding_that_lacks_characters(here: Path, encoding: str) -> None:
    for line, code, part in (
        ("P check star.yaml --no-pilot", 0, "lambda_min"),
        ("P check bad.yaml", 2, "bad.yaml:4:64: data.source.points"),
        ("P schema", 0, "\\u03b5"),
    ):
        codes, said = shell(f"PYTHONIOENCODING={encoding} {line}")
        assert codes == [code]
        assert part in said


@pytest.mark.parametrize(
    ("line", "code"),
    few(
        [
            ("P list | true", 0),
            ("P list | head -1", 0),
            ("P --help | true", 0),
            ("P schema --help | true", 0),
            ("P check bad.yaml 2>&1 | true", 2),
            ("P nonsense 2>&1 | true", 2),
            ("P list >&-", 0),
            ("P check star.yaml --no-pilot >&- 2>&- <&-", 0),
            ("P check bad.yaml >&- 2>&-", 2),
            ("P run bad.yaml --progress json 2>&-", 2),
            ("P check bad.yaml 2>/dev/full", 2),
            ("P list >/dev/full", 1),
        ],
        6,
    ),
)
def test_streams_that_nobody_reads(here: Path, line: str, code: int) -> None:
    codes, said = shell(line)
    assert codes[0] == code
    assert "Traceback" not in said
    assert "Exception ignored" not in said
    assert sorted(path.name for path in here.iterdir()) == ["bad.yaml", "codes", "star.yaml"]


@pytest.mark.parametrize("lines", [[], ["--progress", "json"]])
def test_an_interrupt_during_start_up(here: Path, lines: list[str]) -> None:
    for module in ("p2psim.cli.arguments", "pydantic", "numpy", "p2psim.runs.result"):
        # Interrupted in the middle of an import, as by Ctrl-C.
        script = (
            "import sys, os, signal\n"
            "class Finder:\n"
            "    def find_spec(self, name, path, target=None):\n"
            f"        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)\n"
            "sys.meta_path.insert(0, Finder())\n"
            "from p2psim.cli.main import main\n"
            f"sys.exit(main(['run', 'star.yaml', *{lines}]))\n"
        )
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert ran.returncode == 130
        assert ran.stderr == "p2psim: interrupted\n" or lines
        assert "Traceback" not in ran.stderr
        assert not Path("runs").exists()


@pytest.mark.parametrize(
    "arguments", [["list"], ["list", "nothing-is-called-so"], ["list", "--no-such-option"]]
)
def test_an_interrupt_while_python_ends_changes_no_exit_code(arguments: list[str]) -> None:
    # An object that dies when Python has given the signal back to the system.
    script = (
        "import os, signal, sys\n"
        "class Last:\n"
        "    def __del__(self, kill=os.kill, own=os.getpid(), interrupt=signal.SIGINT): kill(own, interrupt)\n"
        "sys.modules['last'] = last = Last()\n"
        "sys.last = last\n"
        "from p2psim.cli.main import main\n"
        "sys.exit(main())\n"
    )
    ends = [
        subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
        for code in (script, script.replace("kill(own, interrupt)", "None"))
    ]
    assert ends[0].returncode == ends[1].returncode
    assert ends[0].stderr == ends[1].stderr


def test_an_interrupt_while_schemas_are_built_stays_an_interrupt() -> None:
    script = (
        "import os, signal, sys, threading\n"
        "from p2psim.core import part_types, registry\n"
        "from p2psim.scenario.model import Scenario\n"
        "for seconds in (0.001, 0.01, 0.05, 0.1):\n"
        "    try:\n"
        "        threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "        while True:\n"
        "            Scenario.model_rebuild(force=True)\n"
        "            part_types._validator.cache_clear()\n"
        "            part_types._validator(registry.parts('topology')['ring'], 'ring')\n"
        "    except KeyboardInterrupt: print('interrupted')\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert ran.stdout.split() == ["interrupted"] * 4, ran.stderr


def ready(process: subprocess.Popen[str]) -> None:
    """Wait until p2psim handles signals, which Python handles in its own way until then."""
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status").read_text()
        if int(status.split("SigCgt:")[1].split()[0], 16) & 1 << signal.SIGTERM - 1:
            return
        time.sleep(0.01)


def test_an_interrupt_in_code_that_is_given_as_text_ends_as_any_other(here: Path) -> None:
    """As of data classes and of named tuples: Python would have the process die of the signal in the end."""
    (here / "texts.py").write_text('exec("raise KeyboardInterrupt")')
    ran = subprocess.run(
        [sys.executable, "-m", "p2psim", "check", "star.yaml", "--parts", "texts"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(here), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 130
    assert ran.stderr.startswith("p2psim: interrupted")


def test_an_interrupt_at_any_moment_of_a_short_command(here: Path) -> None:
    for tenths in range(1, 6):
        with subprocess.Popen(
            [*COMMAND.split(), "check", "star.yaml", "--no-pilot"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            ready(process)
            time.sleep(0.05 * tenths)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate()
        assert process.returncode in (0, 130)
        assert "Traceback" not in said
        assert process.returncode == 0 or said.startswith("p2psim: interrupted")


@pytest.mark.parametrize(("descriptor", "escape"), [(1, r"\x1b"), (2, "\x1b")])
def test_a_terminal_gets_no_commands_out_of_names(
    descriptor: int, escape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = os.openpty()
    monkeypatch.setattr(Outlet, "fileno", lambda self: descriptor)
    monkeypatch.setattr(Outlet, "isatty", lambda self: True)
    with Outlet(theirs, "wb") as outlet:
        text = "bell \x07, ε\tnext \x1b[2J\n".encode()
        assert outlet.write(text) == len(text)
        assert os.read(ours, 100).decode() == f"bell \\x07, ε\tnext {escape}[2J\r\n"
    os.close(ours)
