"""Tables for a terminal, for a pipe and as JSON."""

import json
import math
import os
import pty
import subprocess
import sys

import pytest

from p2psim.core.printing import plain, print_json, print_table, show

ROWS = [
    {"cell": 0, "metric": "relative_fitness", "median": 0.012345678, "epsilon": math.inf, "flags": ""},
    {"cell": 1, "metric": "relative_fitness", "median": 12345.678, "epsilon": 37.5, "flags": ""},
]


def test_a_pipe_gets_aligned_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(ROWS, "title")
    assert capsys.readouterr().out.splitlines() == [
        "title",
        "cell  metric               median  epsilon  flags",
        "   0  relative_fitness    0.01235      inf",
        "   1  relative_fitness  1.235e+04     37.5",
    ]


def test_long_tables_say_what_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([{"n": n} for n in range(50)], most=3)
    assert capsys.readouterr().out.splitlines() == ["n", "0", "1", "2", "… and 47 more rows"]


def on_a_terminal(width: int) -> str:
    """What a terminal of some width shows."""
    script = (
        f"from p2psim.core.printing import print_table; from math import inf; print_table({ROWS!r}, 'title')"
    )
    master, slave = pty.openpty()
    environment = os.environ | {"COLUMNS": str(width), "TERM": "xterm", "NO_COLOR": "1"}
    with subprocess.Popen([sys.executable, "-c", script], stdout=slave, env=environment) as process:
        os.close(slave)
        shown = b""
        try:
            while piece := os.read(master, 4096):
                shown += piece
        except OSError:
            pass  # Linux ends a closed terminal so.
        os.close(master)
    assert process.returncode == 0
    return shown.decode()


def test_a_terminal_is_told_once_what_all_rows_share() -> None:
    shown = on_a_terminal(80)
    assert shown.count("relative_fitness") == 1
    assert "flags" not in shown
    assert "1.235e+04" in shown


def test_a_narrow_terminal_breaks_no_number() -> None:
    shown = on_a_terminal(16)
    assert "1.235e+04" in shown
    assert "0.01235" in shown


def test_json_is_strict(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [math.inf, -math.inf, math.nan, 1.5], "b": (1, None, True)})
    tree = json.loads(capsys.readouterr().out, parse_constant=lambda constant: pytest.fail(constant))
    assert tree == {"a": [".inf", "-.inf", ".nan", 1.5], "b": [1, None, True]}
    assert plain({1: 2}) == {"1": 2}


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), (True, "yes"), (3, "3"), (0.1234567, "0.1235"), ("x", "x")]
)
def test_entries(value: object, text: str) -> None:
    assert show(value) == text
