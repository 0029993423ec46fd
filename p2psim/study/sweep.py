"""The ``sweep`` section: which keys take which values, and how they combine.

Every key of the section is an axis of a grid, except ``zip``, whose keys advance together as one axis, and searches
(``random``, ``sobol``, ``halton``), whose points are one axis each. Axes are in file order; the last advances fastest.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from p2psim.errors import Fault
from p2psim.study.faults import show
from p2psim.study.nodes import Node, Place, Steps, at, find, put
from p2psim.study.search import METHODS, read_search

#: Cells that a sweep may have without being asked for again.
MOST_CELLS = 100_000
#: What differs between cells cannot be one of these: they belong to the whole study.
_WHOLE = ("name", "replicas", "sweep", "figure", "fitted")


@dataclass(frozen=True)
class Axis:
    """Keys that advance together, and the values of each; all lists have the same length."""

    keys: tuple[str, ...]
    values: tuple[tuple[Node, ...], ...]
    places: tuple[Place, ...]

    def __len__(self) -> int:
        return len(self.values[0])


def steps_of(key: str) -> Steps:
    """Split a swept key."""
    return tuple(key.split("."))


def with_value(node: Node, key: str, value: Node, place: Place | None = None) -> Node:
    """Return the tree with a value at a swept key; a hash beside a path was that of another file, and goes."""
    steps = steps_of(key)
    node, seal = put(node, steps, value, place), (*steps[:-1], "sha256")
    return put(node, seal, Node("", value.place)) if steps[-1] == "path" and find(node, seal) else node


def read_sweep(node: Node | None) -> tuple[list[Axis], list[Fault]]:
    """Read the section; what is wrong is left out of the axes and told in the faults."""
    if node is None or node.content is None:
        return [], []
    if not isinstance(node.content, dict):
        return [], [at(node.place, "sweep", f"must be a mapping, got {show(node.content)}")]
    axes: list[Axis] = []
    faults: list[Fault] = []
    for key, entry in node.content.items():
        if key == "zip":
            _read_zip(entry, axes, faults)
        elif key in METHODS:
            found, wrong = read_search(key, entry)
            faults += wrong
            if found:
                places = entry.content["keys"].keys
                axes.append(
                    Axis(
                        tuple(found), tuple(map(tuple, found.values())), tuple(places[name] for name in found)
                    )
                )
        else:
            values = _values(f"sweep.{key}", entry, faults)
            if values:
                axes.append(Axis((key,), (values,), (node.keys[key],)))
    _refuse_strange(axes, faults)
    return axes, faults


def size(axes: list[Axis]) -> int:
    """Count cells, without making them."""
    return math.prod(len(axis) for axis in axes)


def too_many(axes: list[Axis], place: Place) -> Fault | None:
    """Return what is wrong with a sweep that is too large to be meant, None when it is not."""
    if size(axes) <= MOST_CELLS:
        return None
    lengths = " × ".join(str(len(axis)) for axis in axes)
    limit = f"more than {MOST_CELLS:,} must be confirmed (--confirm-cells)"
    return at(place, "sweep", f"makes {size(axes):,} cells ({lengths}); {limit}")


def combinations(axes: list[Axis]) -> Iterator[dict[str, tuple[int, Node]]]:
    """Yield, for each cell, the position and the node of every swept key's value."""
    for positions in product(*(range(len(axis)) for axis in axes)):
        yield {
            key: (position, values[position])
            for axis, position in zip(axes, positions, strict=True)
            for key, values in zip(axis.keys, axis.values, strict=True)
        }


def swept_keys(node: Node) -> list[str]:
    """Return the keys that the sweep of a scenario sets, as far as it can be read."""
    return [key for axis in read_sweep(node.child("sweep"))[0] for key in axis.keys]


def _read_zip(node: Node, axes: list[Axis], faults: list[Fault]) -> None:
    if not isinstance(node.content, dict) or not node.content:
        faults.append(
            at(node.place, "sweep.zip", f"must be a mapping from keys to lists, got {show(node.content)}")
        )
        return
    lists = {key: _values(f"sweep.zip.{key}", entry, faults) for key, entry in node.content.items()}
    if not all(lists.values()):
        return
    lengths = {key: len(values) for key, values in lists.items()}
    if len(set(lengths.values())) > 1:
        counted = ", ".join(f"{key} has {length}" for key, length in lengths.items())
        faults.append(
            at(node.place, "sweep.zip", f"lists that advance together must be equally long; {counted}")
        )
        return
    axes.append(Axis(tuple(lists), tuple(lists.values()), tuple(node.keys[key] for key in lists)))


def _values(key: str, node: Node, faults: list[Fault]) -> tuple[Node, ...]:
    if isinstance(node.content, list) and node.content:
        return tuple(node.content)
    what = "an empty list" if node.content == [] else show(node.content)
    faults.append(at(node.place, key, f"must be a list of at least one value, got {what}"))
    return ()


def _refuse_strange(axes: list[Axis], faults: list[Fault]) -> None:
    """Refuse keys that cannot be swept, that are swept twice, and that lie inside one another."""
    seen: list[str] = []
    for axis in axes:
        for key, place in zip(axis.keys, axis.places, strict=True):
            if not all(steps_of(key)):
                faults.append(at(place, f"sweep.{key}", f"must be a dotted key, got {key!r}"))
            elif steps_of(key)[0] in _WHOLE:
                faults.append(
                    at(place, f"sweep.{key}", "belongs to the whole study and cannot differ between cells")
                )
            for other in seen:
                if f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}."):
                    what = "is swept twice" if key == other else f"and {other} overlap; sweep one of them"
                    faults.append(at(place, f"sweep.{key}", what))
            seen.append(key)
