"""Modules, names and files that pages and docstrings name exist."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES = sorted((ROOT / "p2psim").rglob("*.py"))

#: Names that are no modules: the group of entry points, and keys of the metadata of tables.
NO_MODULES = {"p2psim.parts", "p2psim.events", "p2psim.table", "p2psim.format"}

#: A dotted name, and a path, of p2psim.
DOTTED = re.compile(r"(?<![\w./-])p2psim(?:\.\w+)+(?![\w/])")
PATH = re.compile(r"(?<![\w./-])(?:p2psim|tests|docs|scenarios)(?:/[\w.*-]+)+/?")


def exists(dotted: str) -> bool:
    """Whether a dotted name leads to a module, or to something in one."""
    words = dotted.split(".")
    found = importlib.import_module(words[0])
    for place, word in enumerate(words[1:], 2):
        if not hasattr(found, word):
            try:
                importlib.import_module(".".join(words[:place]))
            except ImportError:
                fields = getattr(found, "model_fields", {}) | getattr(found, "__annotations__", {})
                return word in fields and place == len(words)
        found = getattr(found, word)
    return True


def prose(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return "\n".join(re.findall(r'"""(.*?)"""', text, re.S))
    return text


@pytest.mark.parametrize("path", [*PAGES, *SOURCES], ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_named_exists(path: Path) -> None:
    text = prose(path)
    dotted = {name for name in DOTTED.findall(text) if not name.endswith((".yaml", ".toml"))}
    assert sorted(name for name in dotted - NO_MODULES if not exists(name)) == []
    assert (
        sorted(
            name
            for name in set(PATH.findall(text))
            if "NAME" not in name and not any(ROOT.glob(name.rstrip("./")))
        )
        == []
    )


def test_functions_of_the_design_page_are_where_it_says() -> None:
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    named = re.findall(r"`p2psim/([\w/]+)\.py`,? \(?`([\w.]+)`", text)
    assert len(named) > 15
    for module, name in named:
        assert exists(f"p2psim.{module.replace('/', '.')}.{name}"), (module, name)


def test_each_room_is_on_the_design_page() -> None:
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    table = text[text.index("## Rooms") : text.index("## Five walks")]
    rooms = {path.parent.name for path in (ROOT / "p2psim").glob("*/__init__.py")}
    assert rooms <= set(re.findall(r"`(\w+)`", table))


def test_make_help_lists_every_target() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.search(r"^\.PHONY: (.*)$", text, re.M)
    assert targets is not None
    described = re.findall(r"^([a-z-]+):.*## \S", text, re.M)
    assert sorted(targets[1].split()) == sorted(described)
    mentioned = {name for path in PAGES for name in re.findall(r"make ([a-z-]+)", prose(path))}
    assert {"test", "verification", "lint"} <= mentioned
