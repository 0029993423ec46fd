"""What the guide shows runs as shown, and gives what is shown."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from p2psim import compiled
from p2psim.cli import main
from p2psim.data import downloads

GUIDE = Path(__file__).parents[1] / "docs" / "guide.md"


def blocks_of(title: str) -> list[tuple[str, str]]:
    """Language and text of each block in a section."""
    section = re.search(rf"^## {title}$(.*?)^## ", GUIDE.read_text(encoding="utf-8"), re.M | re.S)
    assert section is not None
    return re.findall(r"```(\w+)\n(.*?)```", section[1], re.S)


def test_own_data_from_the_guide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = blocks_of("Your own data")
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


def test_faults_from_the_guide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (language, scenario), (_, shown) = blocks_of("Errors and exit codes")
    assert language == "yaml"
    Path("bad.yaml").write_text(scenario)
    command, *expected = shown.splitlines()
    assert main(command.removeprefix("$ p2psim ").split()) == 2
    assert capsys.readouterr().err.splitlines() == expected


def test_check_from_the_guide(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """All but the time, which is of the machine; of that, the words."""
    monkeypatch.chdir(GUIDE.parents[1])
    monkeypatch.setattr(compiled, "is_compiled", lambda: True)
    ((_, shown),) = blocks_of("Check before running")
    command, *expected = shown.splitlines()
    assert main([*command.removeprefix("$ p2psim ").split(), "--jobs", "2"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert _words(printed[1]) == _words(expected[1])
    del printed[1], expected[1]
    # An ellipsis stands for lines that are left out, also at the end.
    for part in "\n".join(expected).split("…"):
        lines = _rounded(part)
        assert lines == [] or "\n".join(lines) in "\n".join(_rounded("\n".join(printed)))


def test_fetching_from_the_guide(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It asks nobody. What comes from elsewhere stays there: the test of fetching itself is another."""
    command, *_ = dict(blocks_of("Personalised models on a graph"))["console"].splitlines()
    fetched: list[str] = []

    def fetch(name: str) -> Path:
        fetched.append(name)
        return tmp_path / name

    monkeypatch.setattr(downloads, "fetch", fetch)
    assert main(command.removeprefix("$ p2psim ").split()) == 0
    assert fetched == ["movielens-100k"]
    assert "ready" in capsys.readouterr().out


def _words(text: str) -> str:
    """Text without its numbers; a range of them is one. A slow machine has minutes, or one stretch."""
    text = re.sub(r"[\d,.]+( (seconds|minutes)(?= to))?( to [\d,.]+)?", "#", text)
    return text.replace("# minutes", "# seconds").replace("stretches", "stretch")


def _rounded(text: str) -> list[str]:
    number = re.compile(r"\d*\.?\d+(e[+-]?\d+)?")
    return [
        f"{float(word):.3g}" if number.fullmatch(word) else word
        for line in text.splitlines()
        for word in line.split()
    ]
