"""Modules with parts of one's own, let in for a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from p2psim.core import registry

# Parts of modules that were let in before: Python does not import them again.
_KEPT: dict[tuple[str, ...], list[Any]] = {}


@contextmanager
def let_in(*modules: str) -> Iterator[None]:
    """Let modules in, and forget their parts at the end: other tests know those of p2psim alone."""
    before = {(kind, name) for kind in registry.KINDS for name in registry.parts(kind)}
    known = set(registry._LOADED)
    try:
        registry.load_parts(*modules)
        registry.register_all(_KEPT.get(modules, []))
        yield
    finally:
        new = [
            (kind, name)
            for kind in registry.KINDS
            for name in registry.parts(kind)
            if (kind, name) not in before and registry.place_of(registry.parts(kind)[name]) is not None
        ]
        _KEPT[modules] = [registry.parts(kind)[name] for kind, name in new]
        with registry.registering():
            for kind, name in new:
                registry.forget(kind, name)
        for module in set(registry._LOADED) - known:
            del registry._LOADED[module]
