"""What the pages on theory compute is what they show, and tests that they name exist."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

#: Blocks of code that are followed by what they print, and take no finished run from a folder.
BLOCKS = [
    pytest.param(code, shown, id=f"{page}-{number}")
    for page in ("bounds.md", "theory.md", "topologies.md")
    for number, (code, shown) in enumerate(
        re.findall(r"```python\n([^`]*)```\n\n```text\n([^`]*)```", (DOCS / page).read_text(encoding="utf-8"))
    )
    if "Result.load" not in code
]


def rounded(text):
    """Words, and numbers to three digits: more may differ between platforms."""
    number = re.compile(r"[-+]?\d*\.?\d+(e[+-]?\d+)?")
    return [f"{float(w):.3g}" if number.fullmatch(w) else w for w in re.split(r"[\s,\[\]]+", text) if w]


@pytest.mark.parametrize(("code", "shown"), BLOCKS)
def test_blocks_print_what_is_shown(code, shown, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert rounded(printed.getvalue()) == rounded(shown)


def test_there_are_blocks():
    assert len(BLOCKS) >= 10


@pytest.mark.parametrize("page", ["theory.md", "graph.md"])
def test_errata_name_tests_that_exist(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert named
    for path, test in named:
        assert f"def {test}" in (ROOT / path).read_text(encoding="utf-8"), (path, test)
