"""What p2psim says of a study: its manifest when it begins, its failures, and how it differs from an earlier one."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from p2psim.core import registry
from p2psim.core.errors import InputError, MissingPartError, show
from p2psim.core.nodes import plain
from p2psim.core.printing import key_values
from p2psim.runs import manifest, store
from p2psim.runs.invocations import Invocation, earlier
from p2psim.runs.manifest import PRINTED, CellEntry, Manifest
from p2psim.runs.parts import RunKey
from p2psim.scenario.cells import display, value_at
from p2psim.scenario.model import Cell, Scenario
from p2psim.scenario.notices import Warned
from p2psim.scenario.record import metric_named
from p2psim.scenario.sweep import read_sweep, steps_of, swept_keys
from p2psim.scenario.yaml import cells_named, read, read_file
from p2psim.simulation.outcome import differing


def describe(
    scenario: Scenario,
    grid: Sequence[Cell],
    content: store.Content | None,
    folder: Path,
    fitted: dict[str, dict[str, Any]],
    facts: dict[str, dict[str, Any]],
    invocation: Invocation,
) -> Manifest:
    """The manifest of the study that begins: the present grid, then earlier cells."""
    from p2psim.scenario.fields import explicit

    replicas = explicit(scenario.replicas)
    new = Manifest(scenario.name, scenario.identity(), scenario.seed, replicas, "running", (), 0)
    old = content.manifest if content is not None else new
    present = {cell.content for cell in grid}
    # Of cells that need no work nothing was found out anew.
    known = old.fitted | fitted
    facts = {cell.content: cell.facts for cell in old.cells} | facts
    entries = []
    for cell in grid:
        notes: tuple[str, ...] = (PRINTED,) if cell.scenario.learning.algorithm.is_printed else ()
        if (tune := cell.scenario.tune) is not None:
            notes += (f"tuned: {tune.key} = {display(value_at(cell.scenario, steps_of(tune.key)))}",)
        entries.append(CellEntry(cell.content, dict(cell.swept), notes, facts.get(cell.content, {})))
    entries += _left_over([cell for cell in old.cells if cell.content not in present], folder, old.made_by)
    origins = registry.origins(name for cell in grid for name in _parts_of(cell))
    origins = old.made_by.get("parts", {}) | origins
    return replace(
        new,
        cells=tuple(entries),
        grid=len(grid),
        stored=old.stored,
        runs=old.runs,
        warnings=old.warnings | {message: Warned(1) for message in version_warnings(content)},
        # The scenario is written anew, after this.
        files={name: seal for name, seal in old.files.items() if name != store.SCENARIO},
        fitted={cell.content: known.get(cell.content, {}) for cell in entries},
        made_by=manifest.versions() | ({"parts": origins} if origins else {}),
        invocations=(*earlier(old.invocations), invocation),
    )


def version_warnings(content: store.Content | None) -> list[str]:
    """What tells results that a folder holds, in tables or in parts, from those that would be made now."""
    if content is None or not content.sources():
        return []
    warnings, now, old = [], manifest.versions(), content.manifest
    if any(old.made_by.get(key) != now[key] for key in ("p2psim", "libraries", "platform")):
        warnings.append(
            f"part of the results was made by p2psim {old.made_by.get('p2psim')} with other libraries or on "
            "another platform: the same bytes are promised for the same versions only"
        )
    if other := differing(old.made_by.get("arithmetic")):
        warnings.append(
            f"part of the results was made with other arithmetic, and differs by rounding: {other}"
        )
    for module, origin in old.made_by.get("parts", {}).items():
        version = origin["version"], origin["sha256"]
        if module in registry.loaded() and registry.version_of(module) != version:
            warnings.append(f"part of the results was made with another version of the module {module}")
    return warnings


def _parts_of(cell: Cell) -> list[str]:
    """``module:OBJECT`` of the parts from outside p2psim that a cell uses."""
    record = cell.scenario.record
    accountants = [registry.parts("accountant")[name] for name in cell.scenario.privacy.accountants]
    metrics = map(metric_named, (*record.metrics, *record.per_agent))
    used = filter(None, (*_models_in(cell.scenario), *metrics, *accountants))
    return [place for part in used if (place := registry.place_of(part)) is not None]


def _models_in(value: Any) -> Iterator[type]:
    """Types of all models inside a scenario."""
    if isinstance(value, BaseModel):
        yield type(value)
        value = [entry for _, entry in value]
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for entry in value:
            yield from _models_in(entry)


def _left_over(cells: Sequence[CellEntry], folder: Path, made_by: Mapping[str, Any]) -> list[CellEntry]:
    """Earlier cells, each with its own scenario, since the grid no longer says what it was."""
    if all(cell.scenario for cell in cells):
        return list(cells)
    from p2psim.scenario.cells import cells as cells_of

    if missing := registry.missing_of(made_by):
        raise MissingPartError([], missing)
    texts: dict[str, str] = {}
    with contextlib.suppress(InputError, OSError):
        old = Scenario.load(folder / store.SCENARIO, confirm_cells=True)
        texts = {cell.content: cell.scenario.to_yaml() for cell in cells_of(old, confirm_cells=True)}
    return [replace(cell, scenario=cell.scenario or texts.get(cell.content, "")) for cell in cells]


#: Entries of the longest list under ``fitted`` in a resolved scenario; the manifest has longer ones.
_MOST_LISTED = 1_000


def resolved_text(scenario: Scenario, grid: Sequence[Cell], described: Manifest) -> str:
    """The resolved scenario, with the fitted numbers, if these are the same in all cells of the grid.

    Without long lists, such as the records of each of a million agents: a scenario is a file that people read, and
    whose size is limited when it is read.
    """
    first = described.fitted[grid[0].content]
    if first and all(described.fitted[cell.content] == first for cell in grid):
        scenario = scenario.model_copy(update={"fitted": _without_long(first)})
    return scenario.to_yaml()


def _without_long(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_long(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    kept = (key for key, one in value.items() if not (isinstance(one, list) and len(one) > _MOST_LISTED))
    return {key: _without_long(value[key]) for key in kept}


def cells_at_end(
    described: Manifest, content: store.Content, stopped: dict[str, dict[str, Any]]
) -> tuple[CellEntry, ...]:
    """Cells without earlier ones of which nothing was finished, each with why it has so many replicas."""
    held = {key[0] for key in content.sources()}
    kept = (cell for i, cell in enumerate(described.cells) if i < described.grid or cell.content in held)
    return tuple(replace(cell, stopped=stopped.get(cell.content, {})) for cell in kept)


def describe_failures(failed: dict[RunKey, str], grid: Sequence[Cell], folder: Path, most: int = 5) -> str:
    """One line a failure, with the command that shows it alone."""
    numbers = {cell.content: cell for cell in grid}
    lines = [f"{len(failed)} of the simulations failed; the others are kept in {folder}"]
    ordered = sorted(failed.items(), key=lambda entry: (numbers[entry[0][0]].index, entry[0][1]))
    for (content, replica), text in ordered[:most]:
        cell = numbers[content]
        swept = f" ({key_values(cell.swept)})" if cell.swept else ""
        lines.append(f"  cell {cell.index}{swept}, replica {replica}: {text.strip().splitlines()[-1]}")
        alone = f"--cell {cell.index} --replica {replica}"
        lines.append(f"    alone: p2psim run {folder / store.SCENARIO} --out {folder} {alone}")
    if len(failed) > most:
        lines.append(f"  … and {len(failed) - most} more, all in {folder / manifest.NAME}")
    return "\n".join(lines)


def stop_notes(cells: Sequence[CellEntry]) -> Iterator[str]:
    """Which cells have not got their interval narrow enough, and why."""
    messages = {
        "most": "the interval is still wider than asked for at the most replicas; raise replicas.most",
        "failed": "every replica failed",
    }
    for why, message in messages.items():
        numbers = [number for number, cell in enumerate(cells) if cell.stopped.get("why") == why]
        if numbers:
            yield f"{cells_named(numbers)}: {message}"


#: What may differ between scenarios that go into one folder; values of the sweep, too.
_FREE = ("replicas", "figure", "labels", "fitted", "network.engine", "sweep")


def differences(file: Path, scenario: Scenario, most: int = 4) -> str:
    """Say which keys differ, ``seed: 5 → 6``, from a resolved scenario; empty where that cannot be read."""
    try:
        before, now = read_file(file), read(scenario.to_yaml())
    except InputError:
        return ""
    swept = [swept_keys(read_sweep(node.child("sweep"))[0]) for node in (before, now)]
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
    else:
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
