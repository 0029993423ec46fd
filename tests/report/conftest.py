"""Figures are inspected inside the project's look, as they are drawn, and written with few pixels.

Runs whose pages are inspected are shared by the files that do so.
"""

from collections.abc import Iterator

import pytest
from page_cases import Case, make_cases

from p2psim.report import files, style


@pytest.fixture(autouse=True)
def few_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of the time of writing goes into pixels, and no test depends on how many there are."""
    monkeypatch.setattr(files, "DPI", 50)


@pytest.fixture
def look() -> Iterator[None]:
    with style.look():
        yield


@pytest.fixture(scope="session")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    """Runs of each kind that a page plays."""
    return make_cases(tmp_path_factory.mktemp("pages"))
