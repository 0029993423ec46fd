"""Fillers and turns that stop a reader stay out of pages, help texts and docstrings of public names."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import p2psim
from p2psim.cli.main import parser

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

#: What is not written, and what is written instead.
BANNED = {
    r"\b(?:is|are|was|were) told\b(?! apart)": "is reported, is printed, learns of",
    r"\b(?:is|are|was) said\b": "is printed, is stated",
    r"\btells?\b(?! :|\s+(?:\w+\s+){0,3}apart)": "reports, prints, predicts",
    r"\bforetell": "predict",
    r"\bvain\b": "failed",
    r"\bWho (?:does|looks|knows|comes|answers) ": "a subject: owners that, checking repeatedly",
    r", one an? (?:agent|core|line|owner|run)\b": "one per",
    r"\bworth it\b": "where it pays",
}

#: Public names whose docstrings wait for their next change.
KNOWN = {"AllOf", "Gossip", "Round"}


def faults(text: str) -> list[str]:
    """Places of a text that use a banned turn, outside of code."""
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    return [
        f"{prose[max(0, found.start() - 30) : found.end() + 20]!r}: {instead}"
        for pattern, instead in BANNED.items()
        for found in re.finditer(pattern, prose)
    ]


def helps(of: argparse.ArgumentParser) -> Iterator[str]:
    """Help of a command and of the commands below it."""
    yield of.format_help()
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from helps(below)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages(page: Path) -> None:
    assert faults(page.read_text(encoding="utf-8")) == []


def test_help_of_commands() -> None:
    texts = list(helps(parser()))
    assert len(texts) > 14
    assert [fault for text in texts for fault in faults(text)] == []


def test_docstrings_of_public_names() -> None:
    found = {name: faults(getattr(p2psim, name).__doc__ or "") for name in p2psim.__all__}
    assert {name: places for name, places in found.items() if places and name not in KNOWN} == {}


def test_what_is_found() -> None:
    assert len(faults("The rest is told. Who looks often foretells in vain, one a line.")) == 5
    assert faults("Cells are told apart, and ranks tell agents apart; `what is told` is code.") == []
