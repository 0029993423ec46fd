"""What the page on forecasts of graphs shows is what its commands print."""

import re
from pathlib import Path

import pytest

from p2psim.cli.main import main

PAGE = Path(__file__).parents[2] / "docs" / "forecasts_graph.md"
SECTIONS = ["Coordinate descent", "Gossip averaging", "Decentralised SGD"]


@pytest.mark.parametrize("section", SECTIONS)
def test_the_page_shows_what_is_printed(section, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = re.search(rf"^## {section}$(.*?)^## ", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert found is not None
    (_, scenario), (_, shown) = re.findall(r"```(yaml|console)\n(.*?)```", found[1], re.S)
    command, *expected = shown.strip().splitlines()
    name, *arguments = command.removeprefix("$ p2psim ").split()
    Path(arguments[0]).write_text(scenario)
    assert main([name, *arguments]) == 0
    # Digits that may differ between platforms are not compared, beyond three.
    assert _rounded(capsys.readouterr().out) == _rounded("\n".join(expected))


def _rounded(text: str) -> list[str]:
    number = re.compile(r"\d*\.?\d+(e[+-]?\d+)?")
    return [
        f"{float(word):.3g}" if number.fullmatch(word) else word
        for line in text.splitlines()
        for word in line.split()
    ]
