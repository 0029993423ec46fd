"""Scenarios of the page for users of other tools run and print what is shown; code of the others can be read."""

import ast
import re
import shlex
from pathlib import Path

import pytest

from p2psim.cli.main import main

PAGE = (Path(__file__).parents[1] / "docs" / "coming-from.md").read_text(encoding="utf-8")

SCENARIOS = re.findall(r"```yaml\n(name: (\w+)\n.*?)```", PAGE, re.S)
COMMANDS = re.findall(r"```console\n\$ p2psim (run (\w+)\.yaml[^\n]*)\n(.*?)```", PAGE, re.S)

#: Code of other tools has a title, code of p2psim none.
OTHERS = re.findall(r'```python title="([^"]+)"\n(.*?)```', PAGE, re.S)

NUMBER = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.-])")


def words(text: str) -> list[str]:
    return NUMBER.sub("#", text).split()


def numbers(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text)]


def test_every_scenario_is_run_and_every_tool_has_code() -> None:
    names = {name for _, name in SCENARIOS}
    assert (
        names
        == {name for _, name, _ in COMMANDS}
        == {"fedavg_digits", "digits_late", "gossip_breast", "dpsgd_ring"}
    )
    assert PAGE.count("\n```yaml") == len(SCENARIOS)
    assert PAGE.count("\n```console") == len(COMMANDS)
    text = " ".join(code for _, code in OTHERS)
    for package in ("flwr", "pfl", "gossipy", "decentralizepy"):
        assert f"from {package}." in text


@pytest.mark.parametrize(("title", "code"), OTHERS, ids=[title for title, _ in OTHERS])
def test_code_of_other_tools_is_python(title: str, code: str) -> None:
    ast.parse(code, title)


@pytest.mark.verification
@pytest.mark.parametrize(("command", "name", "shown"), COMMANDS, ids=[command for command, *_ in COMMANDS])
def test_outputs_are_as_shown(
    command: str,
    name: str,
    shown: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for text, written in SCENARIOS:
        Path(f"{written}.yaml").write_text(text)
    assert main([*shlex.split(command), "--quiet"]) == 0
    printed = capsys.readouterr().out
    assert words(printed) == words(shown)
    assert numbers(printed) == pytest.approx(numbers(shown), rel=0.02)
