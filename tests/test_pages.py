"""The built pages show what their sources and the docstrings say."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from pairs import few

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


@pytest.fixture(scope="module")
def phone() -> Iterator[Any]:
    """A window as narrow as a phone's; without Chromium, tests that need it are skipped unless they are required."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if os.environ.get("P2PSIM_TEST_CHROMIUM") != "required":
        pytest.importorskip("playwright", reason='without playwright: pip install "p2psim[browser]"')
        if chromium is None:
            pytest.skip("without Chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield browser.new_page(viewport={"width": 390, "height": 844})
        browser.close()


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
    shipped = sorted(path.stem for path in (ROOT / "scenarios").glob("*.yaml"))
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


#: Pages with the widest tables, formulas and code of each kind.
WIDE = (
    "index",
    "benchmarks",
    "gallery",
    "theory",
    "notebooks/three_banks",
    "papers/w",
    "reference/scenario-language",
)


@pytest.mark.parametrize("pages", [WIDE, pytest.param((), id="all", marks=pytest.mark.verification)])
def test_no_page_is_wider_than_a_phone(site: Path, phone: Any, pages: tuple[str, ...]) -> None:
    complaints: list[str] = []
    phone.on("console", lambda message: message.type == "error" and complaints.append(message.text))
    phone.on("pageerror", lambda error: complaints.append(str(error)))
    for page in [site / f"{page}.html" for page in pages] or sorted(site.rglob("*.html")):
        if page.name == "404.html":  # its links begin at the root of a server
            continue
        phone.goto(page.as_uri(), wait_until="domcontentloaded")
        excess = "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
        assert phone.evaluate(excess) <= 0, page.relative_to(site)
        assert phone.locator(".md-footer__link").count() > 0, f"{page.relative_to(site)}: no previous or next"
    assert complaints == []


def test_a_figure_can_be_enlarged_and_closed(site: Path, phone: Any) -> None:
    phone.goto((site / "index.html").as_uri())
    figure = phone.locator("article img").first
    small = figure.bounding_box()["width"]
    figure.focus()
    phone.keyboard.press("Enter")
    assert phone.locator("dialog.enlarged img").bounding_box()["width"] > 2 * small
    phone.keyboard.press("Escape")
    phone.locator("dialog.enlarged").wait_for(state="detached")  # a browser closes it a moment later
    figure.click()
    phone.locator("dialog.enlarged").click()
    phone.locator("dialog.enlarged").wait_for(state="detached")


@pytest.mark.parametrize(
    "word", few(["federated", "noise multiplier", "straggler", "client", "server", "DP-SGD"], 2)
)
def test_search_finds_words_of_others_in_the_glossary(word: str, site: Path, phone: Any) -> None:
    phone.goto((site / "index.html").as_uri())
    phone.keyboard.press("Control+k")
    phone.keyboard.type(word)
    phone.locator("a[href*='glossary.html?h=']").first.wait_for(state="attached", timeout=20_000)
