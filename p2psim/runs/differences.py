"""How a scenario differs from the one whose results a run folder holds."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2psim.core.errors import InputError
from p2psim.scenario.faults import show
from p2psim.scenario.nodes import plain
from p2psim.scenario.sweep import swept_keys
from p2psim.scenario.yaml import read, read_file

if TYPE_CHECKING:
    from p2psim.scenario.model import Scenario

#: What may differ between scenarios that go into one folder; values of the sweep, too.
_FREE = ("replicas", "figure", "fitted", "network.engine", "sweep")


def differences(file: Path, scenario: "Scenario", most: int = 4) -> str:
    """Say which keys differ, ``seed: 5 → 6``, from a resolved scenario; empty where that cannot be read."""
    try:
        before, now = read_file(file), read(scenario.to_yaml())
    except InputError:
        return ""
    swept = [swept_keys(before), swept_keys(now)]
    free = (*_FREE, *swept[0], *swept[1])
    old, new = dict(_leaves(plain(before), free)), dict(_leaves(plain(now), free))
    if swept[0] != swept[1]:
        old["sweep"], new["sweep"] = swept
    keys = [key for key in old | new if old.get(key, ...) != new.get(key, ...)]
    # Of another kind of part all keys are others: what both have says more.
    keys.sort(key=lambda key: not (key in old and key in new))
    texts = [f"{key}: {_shown(old, key)} → {_shown(new, key)}" for key in keys[:most]]
    return "; ".join([*texts, *([f"and {len(keys) - most} more"] if len(keys) > most else [])])


def _leaves(tree: Any, free: tuple[str, ...], key: str = "") -> Iterator[tuple[str, Any]]:
    """Keys of values that are no mappings, and these values."""
    if key in free:
        return
    if not isinstance(tree, dict) or not tree:
        yield key, tree
        return
    for name, value in tree.items():
        yield from _leaves(value, free, f"{key}.{name}".removeprefix("."))


def _shown(values: dict[str, Any], key: str) -> str:
    text = _written(values[key]) if key in values else "not given"
    return text if len(text) <= 60 else f"{text[:59]}…"


def _written(value: Any) -> str:
    """Write a value on one line as YAML does."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_written(entry)}' for name, entry in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    return value if isinstance(value, str) else show(value)
