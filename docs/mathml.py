"""Write a block of TeX as MathML while the pages are built: browsers draw it without a script or a font."""

from typing import Any

from latex2mathml.converter import convert


def block(source: str, *_: Any, **__: Any) -> str:
    """Return the MathML of a fenced block whose language is ``math``."""
    return f'<div class="math">{convert(source.strip(), display="block")}</div>'
