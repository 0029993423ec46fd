"""The guide's example of one's own data runs as shown, and gives what is shown."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from p2psim.cli import main

GUIDE = Path(__file__).parents[1] / "docs" / "guide.md"


def test_own_data_from_the_guide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    section = re.search(r"^## Your own data$(.*?)^## ", GUIDE.read_text(encoding="utf-8"), re.M | re.S)
    assert section is not None
    blocks = re.findall(r"```(\w+)\n(.*?)```", section[1], re.S)
    assert [language for language, _ in blocks] == ["python", "text", "yaml", "console"]
    (_, code), (_, lines), (_, scenario), (_, shown) = blocks
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue().strip() == lines.strip()
    Path("stays.yaml").write_text(scenario)
    command, *expected = shown.strip().splitlines()
    assert main([*command.removeprefix("$ p2psim ").split(), "--jobs", "1"]) == 0
    captured = capsys.readouterr()
    # Digits that may differ between platforms are not compared, beyond three.
    assert _rounded(captured.out) == _rounded("\n".join(expected))
    assert "warning" not in captured.err


def _rounded(text: str) -> list[str]:
    number = re.compile(r"\d*\.?\d+(e[+-]?\d+)?")
    return [
        f"{float(word):.3g}" if number.fullmatch(word) else word
        for line in text.splitlines()
        for word in line.split()
    ]
