"""Figures are inspected inside the project's look, as they are drawn."""

from collections.abc import Iterator

import pytest

from p2psim.report import style


@pytest.fixture
def look() -> Iterator[None]:
    with style.look():
        yield
