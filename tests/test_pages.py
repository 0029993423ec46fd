"""The built pages show what their sources and the docstrings say."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


class _Emphasis(HTMLParser):
    """Text around each begin and end of emphasis that is no code."""

    def __init__(self) -> None:
        super().__init__()
        self.before = ""
        self.just_ended = False
        self.lost: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("em", "strong") and re.search(r"\w\Z", self.before):
            self.lost.append(f"{self.before[-40:]}<{tag}>")
        self.just_ended = False

    def handle_endtag(self, tag: str) -> None:
        self.just_ended = tag in ("em", "strong")

    def handle_data(self, data: str) -> None:
        if self.just_ended and re.match(r"\w", data):
            self.lost.append(f"{self.before[-40:]}</em>{data[:40]}")
        self.before, self.just_ended = data, False


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


def test_no_page_has_lost_an_asterisk(site: Path) -> None:
    """Emphasis begins and ends at words: inside one, an asterisk of a formula was taken for it."""
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        parser = _Emphasis()
        parser.feed(page.read_text(encoding="utf-8"))
        assert parser.lost == [], page.relative_to(site)


def test_formulas_with_asterisks_are_on_the_pages(site: Path) -> None:
    def text(name: str) -> str:
        return re.sub(r"<[^>]+>", "", (site / name / "index.html").read_text(encoding="utf-8"))

    assert "f(θ)/f(θ*) − 1" in text("theory")
    assert "f(θ) − f(θ*) = ∇f(θ*)ᵀd" in text("reference/api")
