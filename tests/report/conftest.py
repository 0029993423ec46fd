"""Figures are inspected inside the project's look, as they are drawn, and written with few pixels."""

from collections.abc import Iterator

import pytest

from p2psim.report import files, style


@pytest.fixture(autouse=True)
def few_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of the time of writing goes into pixels, and no test depends on how many there are."""
    monkeypatch.setattr(files, "DPI", 50)


@pytest.fixture
def look() -> Iterator[None]:
    with style.look():
        yield
