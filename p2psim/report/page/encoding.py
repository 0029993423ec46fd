"""Arrays and plain values as text inside a page, and the page around them.

The same values give the same bytes. Nothing in a page names another host: text with ``://`` is written with escapes.
"""

import base64
import json
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

#: Scripts in the order in which they stand in a page.
SCRIPTS = (
    "data", "theme", "recording", "state", "scale", "network", "lanes", "medium", "strip", "player", "tables", "curves",
    "results", "privacy", "agents", "main",
)  # fmt: skip
_NO_FIGURES = '<script type="application/json" id="drawn">[]'
_LIBRARY = "uPlot.iife.min.js"


class Packer:
    """Arrays one after the other, and where each one is."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self.places: dict[str, list[Any]] = {}

    def add(self, name: str, values: np.ndarray) -> None:
        """Add an array; whole numbers take as few bytes as they need."""
        values = np.ascontiguousarray(values).ravel()
        if values.dtype.kind in "iu" and values.size:
            low, high = int(values.min()), int(values.max())
            kinds = ("u1", "u2", "u4") if low >= 0 else ("i1", "i2", "i4")
            fits = [kind for kind in kinds if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max]
            values = values.astype(f"<{fits[0]}" if fits else "<f8")
        elif values.dtype.kind in "iub":
            values = values.astype("u1")
        content = values.tobytes()
        self.places[name] = [values.dtype.str[1:], self._size, int(values.size)]
        # Typed arrays begin at multiples of their size.
        content += bytes(-len(content) % 8)
        self._parts.append(content)
        self._size += len(content)

    def text(self) -> str:
        """All arrays, compressed, as text."""
        return base64.b64encode(zlib.compress(b"".join(self._parts), 9)).decode()


def unpacked(page: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What a page holds: plain values, and arrays by name."""

    def content(name: str) -> str:
        found = re.search(rf'<script type="[^"]*" id="{name}">(.*?)</script>', page, re.DOTALL)
        assert found is not None
        return found[1]

    plain = json.loads(content("plain"))
    raw = zlib.decompress(base64.b64decode(content("arrays")))
    arrays = {
        name: np.frombuffer(raw, f"<{kind}", size, at) for name, (kind, at, size) in plain["places"].items()
    }
    return plain, arrays


def as_json(value: Any) -> str:
    """Plain values as strict JSON that may stand in a page; what is no finite number is text."""
    text = json.dumps(_strict(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("</", "<\\/").replace("<!--", "<\\u0021--").replace("://", ":\\/\\/")


def _strict(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _strict(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("∞" if value > 0 else "−∞")
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def assembled(plain: dict[str, Any], packer: Packer, title: str) -> str:
    """A page: its frame with styles, values, arrays and scripts put in."""
    folder = files("p2psim.report.page") / "assets"

    def read(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    # The first line of the library is a comment with its address; its licence is in the page instead.
    licence, library = read("uPlot.LICENSE"), read(_LIBRARY).partition("\n")[2]
    scripts = "\n".join(read(f"{name}.js") for name in SCRIPTS)
    entries = {
        "title": title.replace("&", "&amp;").replace("<", "&lt;"),
        "styles": f"{read('uPlot.min.css')}\n{read('page.css')}",
        "plain": as_json(plain | {"places": packer.places}),
        "arrays": packer.text(),
        "library": f"/* uPlot\n{licence}*/\n{library}",
        "scripts": f'"use strict";\n(() => {{\n{scripts}\n}})();',
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: entries[found[1]], read("page.html"))


def with_figures(page: str, figures: Sequence[Mapping[str, Any]]) -> str:
    """A page with figures put in, whose images are text in base 64."""
    return page.replace(_NO_FIGURES, f"{_NO_FIGURES[:-2]}{as_json(figures)}", 1)
