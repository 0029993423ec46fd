"""The built pages show what their sources and the docstrings say."""

import importlib.util
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONFIGURATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


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
    place = tmp_path_factory.mktemp("pages")
    shutil.copytree(ROOT / "docs", place / "docs")
    (place / "mkdocs.yml").write_text(CONFIGURATION.replace("[.]", f"[{ROOT}]"), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "zensical",
        "build",
        "--strict",
        "--config-file",
        str(place / "mkdocs.yml"),
    ]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return place / "site"


def test_navigation_names_each_page_once() -> None:
    """A strict build refuses dead links, and neither a page outside of the navigation nor an entry without a page."""
    named = re.findall(r": ([\w/-]+\.md)$", CONFIGURATION, re.MULTILINE)
    assert sorted(named) == sorted(
        str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")
    )


def test_gallery_shows_each_scenario() -> None:
    specification = importlib.util.spec_from_file_location("make_gallery", ROOT / "docs" / "make_gallery.py")
    assert specification is not None
    assert specification.loader is not None
    gallery = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(gallery)
    page = gallery.PAGE.read_text(encoding="utf-8")
    assert page == gallery.text(), "run python docs/make_gallery.py"
    shipped = sorted(path.stem for path in (ROOT / "scenarios").iterdir())
    assert sorted(re.findall(r"^### (\w+)$", page, re.MULTILINE)) == shipped


def test_formulas_become_mathml(site: Path) -> None:
    page = (site / "glossary.html").read_text(encoding="utf-8")
    assert page.count("<math ") == 2
    assert "<mfrac><mrow><mi>f</mi>" in page


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|link|img)[^>]* (?:src|href)=\"?(https?:[^\" >]+)", text)
        assert loaded == [], page.relative_to(site)


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
        return re.sub(r"<[^>]+>", "", (site / f"{name}.html").read_text(encoding="utf-8"))

    assert "f(θ)/f(θ*) − 1" in text("theory")
    assert "f(θ) − f(θ*) = ∇f(θ*)ᵀd" in text("reference/api")
