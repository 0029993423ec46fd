"""The page on how the simulation works quotes the source as it is."""

import ast
import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "simulation.md").read_text(encoding="utf-8")

#: File, name in it, and what the page shows.
QUOTES = re.findall(
    r"^`([\w/.]+\.py)`, `([\w.]+)`:\n\n```python\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL
)


def source_of(path: str, name: str) -> str:
    text = (ROOT / path).read_text(encoding="utf-8")
    node: ast.AST = ast.parse(text)
    for part in name.split("."):
        inner = ast.iter_child_nodes(node)
        node = next(n for n in inner if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name == part)
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    return textwrap.dedent("\n".join(text.splitlines()[node.lineno - 1 : node.end_lineno]))


@pytest.mark.parametrize(("path", "name", "shown"), QUOTES, ids=[name for _, name, _ in QUOTES])
def test_quotes_are_the_source(path: str, name: str, shown: str) -> None:
    assert shown == source_of(path, name)


def test_all_code_is_quoted() -> None:
    assert len(QUOTES) == PAGE.count("```python") > 8
