"""Which parts from outside p2psim this process knows: Python imports a module, and registers its parts, only once."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from p2psim.core import registry

# Where the example package lies, which is not installed.
sys.path.append(str(Path(__file__).parent / "plugins"))

#: A part's package, kind and name.
Key = tuple[str, str, str]

# All parts from outside that were ever registered here.
_KEPT: dict[Key, Any] = {}


def registered() -> dict[Key, Any]:
    """Parts from outside p2psim that are registered now."""
    parts = {
        (registry.package_of(part), kind, name): part
        for kind in registry.KINDS
        for name, part in registry.parts(kind).items()
        if registry.place_of(part) is not None
    }
    _KEPT.update(parts)
    return parts


def parts_of(*packages: str) -> dict[Key, Any]:
    """Parts of packages, as far as they were imported."""
    registered()
    return {key: part for key, part in _KEPT.items() if key[0] in packages}


def show(wanted: dict[Key, Any]) -> None:
    """Register these parts from outside p2psim, and no others."""
    now = registered()
    for _, kind, name in now.keys() - wanted.keys():
        registry.forget(kind, name)
    registry.register_all([part for key, part in wanted.items() if key not in now])


@contextmanager
def kept() -> Iterator[None]:
    """Know at the end what was known before: other tests know the parts of p2psim alone."""
    before, loaded = registered(), registry.LOADED.copy()
    try:
        yield
    finally:
        show(before)
        registry.LOADED.clear()
        registry.LOADED.update(loaded)


@contextmanager
def let_in(*modules: str) -> Iterator[None]:
    """Let modules in for a while."""
    with kept():
        registry.load_parts(*modules)
        show(registered() | parts_of(*(module.partition(".")[0] for module in modules)))
        yield
