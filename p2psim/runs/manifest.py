"""``manifest.json``: what a run folder holds, how it was made, and how each simulation ended."""

import json
import math
import platform
import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any
from uuid import uuid4

from p2psim.core import __version__
from p2psim.core.errors import FolderError
from p2psim.core.files import fault_of, write_text
from p2psim.core.printing import plain
from p2psim.runs.invocations import Invocation, from_tree, to_tree
from p2psim.runs.parts import RunKey
from p2psim.runs.seals import DamagedError, of_one_folder, opened, sealed
from p2psim.scenario.notices import Warned
from p2psim.scenario.yaml import from_ranges, to_ranges
from p2psim.simulation.outcome import arithmetic

#: Raised whenever the layout of a run folder changes.
FOLDER_FORMAT = 3
#: Formats whose results can be read. The first had no seal, no hash of the scenario, and other counts of lost messages;
#: the second no table of links.
_READ = (1, 2, FOLDER_FORMAT)
NAME = "manifest.json"
#: Note on a cell whose algorithm has the form that its paper prints.
PRINTED = "form: printed"

#: Packages whose version may change a result.
_LIBRARIES = ("numpy", "scipy", "numba", "simpy", "networkx", "pandas", "pyarrow", "pydantic")
#: Attributes that are written as they are.
_AS_THEY_ARE = ("name", "identity", "state", "seed", "replicas", "made_by")
_NON_FINITE = {".inf": math.inf, "-.inf": -math.inf, ".nan": math.nan}


@dataclass(frozen=True)
class CellEntry:
    """A cell as the manifest knows it.

    Attributes
    ----------
    content : str
        Hash of what determines its results.
    swept : dict
        Value of each swept key.
    notes : tuple of str
        Choices that every output repeats, such as ``form: printed``.
    facts : dict
        What ``p2psim check`` says of it: sizes, step, stability, noise; of the first replica where they differ.
    stopped : dict
        Why it has so many replicas, where their number was not given: the last look of
        :class:`p2psim.runs.work.Verdict`.
    scenario : str
        YAML of a cell that is no longer in the scenario's grid; empty for the others.
    """

    content: str
    swept: dict[str, Any]
    notes: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    stopped: dict[str, Any] = field(default_factory=dict)
    scenario: str = ""


@dataclass(frozen=True)
class RunEntry:
    """How one simulation ended, how long it took, and which prepared data it used."""

    ended: str
    seconds: float
    problem: str


@dataclass(frozen=True)
class Manifest:
    """Everything in ``manifest.json``.

    Attributes
    ----------
    name, identity : str
        The scenario's name, and the hash of what may not change in this folder.
    seed : int
        The study's seed.
    replicas : int or dict
        Asked for last: a number, or the rule that decides on it.
    state : str
        ``running`` (also after a kill), ``interrupted``, ``finished``, or ``failed`` when a simulation did.
    cells : tuple of CellEntry
        The present grid in its order, then earlier cells that are kept.
    grid : int
        Number of cells in the present grid.
    stored : tuple of str
        Content hash of each cell number that the tables use; empty before there are any.
    runs : dict
        The simulations that are in the tables.
    failed : dict
        Message of each simulation that failed.
    warnings : dict of str to Warned
        Messages, how often, and in which cells.
    files : dict
        Size and SHA-256 of each table and archive, and of the scenario once the study is finished.
    fitted : dict
        What the preparation of the data found, by content hash; empty for data that every replica redraws.
    made_by : dict
        Versions and platform.
    invocations : tuple of Invocation
        Each run on the folder, the first one first.
    format : int
        Of the folder, whose results may be of an earlier version.
    """

    name: str
    identity: str
    seed: int
    replicas: int | dict[str, Any]
    state: str
    cells: tuple[CellEntry, ...]
    grid: int
    stored: tuple[str, ...] = ()
    runs: dict[RunKey, RunEntry] = field(default_factory=dict)
    failed: dict[RunKey, str] = field(default_factory=dict)
    warnings: dict[str, Warned] = field(default_factory=dict)
    files: dict[str, tuple[int, str]] = field(default_factory=dict)
    fitted: dict[str, dict[str, Any]] = field(default_factory=dict)
    made_by: dict[str, Any] = field(default_factory=dict)
    invocations: tuple[Invocation, ...] = ()
    format: int = FOLDER_FORMAT


@cache
def _installed(name: str) -> str:
    """Version of a library, from the line that says it: the rest of its metadata is long."""
    written = re.search(
        r"^Version: *(\S+)", metadata.distribution(name).read_text("METADATA") or "", re.MULTILINE
    )
    return written[1] if written else metadata.version(name)


def versions() -> dict[str, Any]:
    """Versions of the package, Python and the libraries, the platform, and the kernels of its arithmetic."""
    return {
        "p2psim": __version__,
        "python": platform.python_version(),
        "libraries": {name: _installed(name) for name in _LIBRARIES},
        "platform": platform.platform(),
        "machine": platform.machine(),
        "byte_order": sys.byteorder,
        "arithmetic": arithmetic(),
    }


def write(folder: Path, manifest: Manifest) -> None:
    """Write ``manifest.json``, whole or not at all."""
    write_text(folder / NAME, dump(manifest))


def dump(manifest: Manifest) -> str:
    """Text of ``manifest.json``: strict JSON under a seal, a cell in each line, replicas as ranges."""
    runs, failed = _by_cell(manifest.runs), _by_cell(manifest.failed)
    cells = [
        _strict(_cell_tree(number, cell, runs[cell.content], failed[cell.content]))
        for number, cell in enumerate(manifest.cells)
    ]
    tree = {
        "format": FOLDER_FORMAT,
        **{name: getattr(manifest, name) for name in _AS_THEY_ARE},
        "invocations": [to_tree(invocation) for invocation in manifest.invocations],
        "grid": manifest.grid,
        "stored": list(manifest.stored),
        "cells": [],
        "warnings": [
            {"message": text, "times": warned.times, "cells": to_ranges(numbers_in(manifest.cells, warned))}
            for text, warned in sorted(manifest.warnings.items())
        ],
        "preparation": plain(_if_equal(manifest.fitted)),
        "files": {
            name: {"bytes": size, "sha256": sha} for name, (size, sha) in sorted(manifest.files.items())
        },
    }
    head, empty, rest = indented(tree).partition('\n  "cells": [')
    return sealed(head + empty + ",".join(f"\n    {cell}" for cell in cells) + "\n  " + rest)


def _strict(tree: Any, indent: int | None = None, separators: tuple[str, str] | None = None) -> str:
    """JSON without numbers that are none; with an indent, Python's own slow encoder writes it."""
    return json.dumps(tree, indent=indent, ensure_ascii=False, allow_nan=False, separators=separators)


#: Lists of more numbers or words are encoded apart from the rest.
_LONG = 1000


def indented(tree: dict[str, Any]) -> str:
    """Strict JSON text with an entry on each line.

    With indentation Python's encoder is not compiled, and would take seconds for a list with an entry per agent: long
    lists are encoded without, and the indentation is part of what separates their entries.
    """
    mark, long = uuid4().hex, list[list[Any]]()

    def short(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: short(entry) for key, entry in value.items()}
        if not isinstance(value, list):
            return value
        if len(value) <= _LONG or not set(map(type, value)) <= {int, float, str}:
            return [short(entry) for entry in value]
        long.append(value)
        return f"{mark}{len(long) - 1}"

    def encoded(found: re.Match[str]) -> str:
        outer = "\n" + found[1]
        inner = outer + "  "
        text = _strict(long[int(found[3])], separators=("," + inner, ""))
        return f"{found[1]}{found[2]}[{inner}{text[1:-1]}{outer}]"

    text = _strict(short(tree), indent=2)
    return re.sub(rf'^( *)(.*)"{mark}(\d+)"', encoded, text, flags=re.MULTILINE) if long else text


def _by_cell(entries: Mapping[RunKey, Any]) -> dict[str, dict[int, Any]]:
    """Entries of each cell, by content hash, then by replica."""
    by_cell = defaultdict[str, dict[int, Any]](dict)
    for (content, replica), entry in entries.items():
        by_cell[content][replica] = entry
    return by_cell


def _cell_tree(
    number: int, cell: CellEntry, runs: Mapping[int, RunEntry], failed: Mapping[int, str]
) -> dict[str, Any]:
    tree: dict[str, Any] = {
        "cell": number,
        "content": cell.content,
        "swept": {key: plain(value) for key, value in cell.swept.items()},
        "finished": to_ranges(runs),
        "ended": _by_value({replica: run.ended for replica, run in runs.items()}),
        "data": _by_value({replica: run.problem for replica, run in runs.items()}),
        "seconds": round(sum(run.seconds for run in runs.values()), 3),
    }
    extras = {
        "facts": plain(cell.facts),
        "stopped": plain(cell.stopped),
        "failed": {str(replica): text for replica, text in sorted(failed.items())},
        "notes": list(cell.notes),
        "scenario": cell.scenario,
    }
    return tree | {name: value for name, value in extras.items() if value}


def _by_value(values: Mapping[int, str]) -> dict[str, str]:
    replicas = defaultdict[str, list[int]](list)
    for replica, value in values.items():
        replicas[value].append(replica)
    return {value: to_ranges(replicas[value]) for value in sorted(replicas)}


def read(folder: Path) -> Manifest:
    """Read ``manifest.json``.

    Raises
    ------
    FolderError
        If it is missing, damaged, or of another format.
    """
    path = folder / NAME
    if (fault := fault_of(path)) is not None:
        raise FolderError(f"{fault}; restore it from a copy, or run into another folder with --out")
    try:
        with opened(path) as tree:
            version = tree["format"]
            if version in _READ and (version == 1 or tree["sha256"]):
                return _from_tree(tree)
    except FileNotFoundError:
        raise FolderError(f"{folder}: not a run folder (it has no {NAME})") from None
    except DamagedError as error:
        message = f"{path}: damaged ({error}); restore it from a copy, or run into another folder with --out"
        raise FolderError(message) from None
    except OSError as error:
        raise FolderError(f"{path}: cannot be read ({error.strerror or error})") from None
    message = f"{path}: folder format {version}, this p2psim reads {FOLDER_FORMAT}; use another --out"
    raise FolderError(message)


def check_format(folder: Path, stored: Manifest) -> None:
    """Refuse results of an earlier version, which can be read, but neither added to nor verified.

    Raises
    ------
    FolderError
    """
    if stored.format != FOLDER_FORMAT:
        raise FolderError(
            f"{folder}: folder format {stored.format}, written by p2psim {stored.made_by.get('p2psim', 'unknown')}; "
            f"this p2psim reads its results, but only format {FOLDER_FORMAT} has the hashes and links by which it can "
            "verify them or add to them. Use the p2psim that wrote it, or run it again: into another folder with "
            "--out, or in its place with --overwrite"
        )


def _from_tree(tree: dict[str, Any]) -> Manifest:
    runs: dict[RunKey, RunEntry] = {}
    failed: dict[RunKey, str] = {}
    for cell in tree["cells"]:
        replicas = from_ranges(cell["finished"])
        ended, data = _by_replica(cell["ended"]), _by_replica(cell["data"])
        # Only the sum over a cell is kept; each of its runs stands for an equal share of it.
        share = cell["seconds"] / max(len(replicas), 1)
        for replica in replicas:
            runs[cell["content"], replica] = RunEntry(ended[replica], share, data[replica])
        failed.update({(cell["content"], int(r)): text for r, text in cell.get("failed", {}).items()})
    return Manifest(
        **{name: tree[name] for name in (*_AS_THEY_ARE, "grid", "format")},
        cells=tuple(
            CellEntry(
                cell["content"],
                notes=tuple(cell.get("notes", ())),
                scenario=cell.get("scenario", ""),
                **{name: _numbers(cell.get(name, {})) for name in ("swept", "facts", "stopped")},
            )
            for cell in tree["cells"]
        ),
        stored=tuple(tree["stored"]),
        runs=runs,
        failed=failed,
        warnings={
            entry["message"]: Warned(
                entry["times"],
                frozenset(tree["cells"][number]["content"] for number in from_ranges(entry.get("cells", ""))),
            )
            for entry in tree["warnings"]
        },
        files={
            name: (entry["bytes"], entry["sha256"]) for name, entry in of_one_folder(tree["files"]).items()
        },
        fitted=_of_each(tree["preparation"], [cell["content"] for cell in tree["cells"]]),
        invocations=tuple(from_tree(entry) for entry in tree.get("invocations", ())),
    )


def _if_equal(fitted: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """What is the same for all cells once, under ``all``."""
    values = list(fitted.values())
    if any(value != values[0] for value in values):
        return dict(fitted)
    return {"all": values[0]} if values and values[0] else {}


def _of_each(preparation: dict[str, Any], contents: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The inverse of `_if_equal`."""
    of_all = preparation.get("all")
    return {content: (of_all or preparation.get(content, {})) for content in contents}


def _by_replica(values: Mapping[str, str]) -> dict[int, str]:
    return {replica: value for value, ranges in values.items() for replica in from_ranges(ranges)}


def _numbers(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Entries of a mapping, with infinities and NaN as numbers."""
    return {
        key: _NON_FINITE.get(value, value) if isinstance(value, str) else value for key, value in tree.items()
    }


def numbers_in(cells: Sequence[CellEntry], warned: Warned) -> list[int]:
    """Numbers of the cells that a warning concerns."""
    return [number for number, cell in enumerate(cells) if cell.content in warned.cells]
