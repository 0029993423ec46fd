"""Fillers and turns that stop a reader stay out of pages, help texts, messages and docstrings of public names."""

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import p2psim
from p2psim.cli.main import parser

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / "README.md", ROOT / "CONTRIBUTING.md"),
    *sorted(
        page for place in (".", "notebooks", "reference") for page in (ROOT / "docs" / place).glob("*.md")
    ),
]

#: What is not written, and what is written instead.
BANNED = {
    r"\b(?:is|are|was|were) told\b(?! apart)": "is reported, is printed, learns of",
    r"\b(?:is|are|was) said\b": "is printed, is stated",
    r"\btells?\b(?!:| :|\s+(?:\w+\s+){0,3}apart)": "reports, prints, predicts",
    r"\bforetell": "predict",
    r"\bvain\b": "failed",
    r"(?<!anybody )(?<!Anybody )\b[Ww]ho (?:does|looks|knows|comes|answers|asks|waits|sends|hears)\b": "a subject: "
    "owners that answer, checking repeatedly",
    r"\b[Ww]hoever\b": "anybody who, an agent that",
    r"\bnobody's\b": "of no owner",
    r", one an? (?:agent|core|line|owner|run)\b": "one per",
    r"\b(?:one|a) (?:row|line|file|entry|array) a (?!\d)\w+": "one per",
    r"\bso many (?:as|of|owners|agents|rows|regions)\b": "this many, a number of",
    r"\bworth it\b": "where it pays",
    r"\b(?:its|their|a \w+|\w+s) of (?:its|their) own\b": "its own model, a separate stream",
    r"\bcall(?:ed)? (?:it |one of them )?otherwise\b": "rename, choose another name",
    r"\btake(?:n)? (?:it |the noise )?off\b": "remove",
    r"\bgiven again\b": "may be repeated",
    r"\bwhat was finished\b": "finished simulations",
    r"\bfor want of\b": "for lack of",
    r"\blaws? of\b": "distribution of",
    r"(?<![\w./…%)\]*:])[-−±]?\.\d": "a leading zero",
    r"\b(?:thereof|therein|whereof|hitherto|nought)\b": "a plain word",
}


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
    text = page.read_text(encoding="utf-8")
    if page.parent.name == "notebooks":  # what cells print is indented, or HTML
        text = re.sub(r"^    .*$|<[^>]*>", "", text, flags=re.MULTILINE)
    if page.name == "scenario-language.md":  # descriptions of keys, which are looked at with all messages
        text = text.partition("\n## The file")[0]
    assert faults(text) == []


def test_comments_of_scenarios() -> None:
    papers = ("b_", "f_", "w_")
    paths = sorted(path for path in (ROOT / "scenarios").glob("*.yaml") if not path.name.startswith(papers))
    comments = {
        path.name: "\n".join(re.findall(r"(?:^|\s)# (.*)", path.read_text(encoding="utf-8")))
        for path in paths
    }
    assert len(comments) > 20
    assert {name: faults(text) for name, text in comments.items() if faults(text)} == {}


def test_help_of_commands() -> None:
    texts = list(helps(parser()))
    assert len(texts) > 14
    assert [fault for text in texts for fault in faults(text)] == []


def test_docstrings_of_public_names() -> None:
    found = {name: faults(getattr(p2psim, name).__doc__ or "") for name in p2psim.__all__}
    assert {name: places for name, places in found.items() if places} == {}


def messages(path: Path) -> Iterator[str]:
    """Texts of a module with more than a word, but for docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {
        ast.get_docstring(node, clean=False) for node in ast.walk(tree) if isinstance(node, documented)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield from () if node.value in docstrings else (node.value,)


def test_messages() -> None:
    package = ROOT / "p2psim"
    files = {str(path.relative_to(package)): path for path in sorted(package.rglob("*.py"))}
    found = {
        name: [fault for text in messages(path) for fault in faults(text)] for name, path in files.items()
    }
    assert {name: places for name, places in found.items() if places} == {}


def test_what_is_found() -> None:
    assert len(faults("The rest is told. Who looks often foretells in vain, one a line.")) == 5
    assert len(faults("From .5 [−.02, .6], not 0.5, v1.2, or 5.")) == 3
    assert len(faults("Whoever sends models of their own, a row a record, may call it otherwise.")) == 4
    assert faults("Cells are told apart, and ranks tell agents apart; `what is told` is code.") == []
