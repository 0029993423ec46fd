"""The ``sweep`` section: which keys take which values, and how they combine.

Every key is an axis of a grid, except ``zip``, whose keys advance together as one axis, and searches (``random``,
``sobol``, ``halton``), which draw points in ranges and are one axis each. Axes are in file order; the last advances
fastest. The points of a search depend on its method, seed and keys alone: a larger count keeps the points, and so the
cells, of a smaller one. A resolved scenario holds the points under ``values``, and only missing ones are drawn, so that
it gives the same cells with other versions of the libraries.
"""

import json
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np

from p2psim.core.errors import Fault, show
from p2psim.core.faults import unknown
from p2psim.core.nodes import Node, Place, Steps, at, find, placed, plain, put

#: Cells that a sweep may have without being asked for again.
MOST_CELLS = 100_000
#: What differs between cells cannot be one of these: they belong to the whole study.
WHOLE = ("name", "replicas", "sweep", "figure", "labels", "tune", "fitted")


class SweptKey(NamedTuple):
    """A key that is swept, its values, and where it stands."""

    key: str
    values: Sequence[Node]
    place: Place


#: Keys that advance together: each has as many values.
Axis = list[SweptKey]


def steps_of(key: str) -> Steps:
    """Split a swept key."""
    return tuple(key.split("."))


def with_value(node: Node, key: str, value: Node, place: Place | None = None) -> Node:
    """Return the tree with a value at a dotted key; a hash beside a path was that of another file, and goes."""
    steps = split_key(key)
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
        places = node.keys
        if key == "zip":
            values, places = _read_zip(entry, faults), entry.keys
        elif key in METHODS:
            values, wrong = read_search(key, entry)
            faults += wrong
            places = entry.content["keys"].keys if values else {}
        else:
            values = {key: _values(f"sweep.{key}", entry, faults)}
        if values and all(values.values()):
            axes.append([SweptKey(name, nodes, places[name]) for name, nodes in values.items()])
    _refuse_strange(axes, faults)
    return axes, faults


def too_many(axes: list[Axis], place: Place) -> Fault | None:
    """Return what is wrong with a sweep that is too large to be meant, None when it is not."""
    lengths = [len(axis[0].values) for axis in axes]
    if (size := math.prod(lengths)) <= MOST_CELLS:
        return None
    limit = f"more than {MOST_CELLS:,} must be confirmed (--confirm-cells)"
    return at(place, "sweep", f"makes {size:,} cells ({' × '.join(map(str, lengths))}); {limit}")


def combinations(axes: list[Axis]) -> Iterator[dict[str, Node]]:
    """Yield, for each cell, the value of every swept key."""
    for positions in product(*(range(len(axis[0].values)) for axis in axes)):
        places = zip(axes, positions, strict=True)
        yield {key: values[position] for axis, position in places for key, values, _ in axis}


def swept_keys(axes: Iterable[Axis]) -> list[str]:
    """Return the keys that a sweep sets."""
    return [key for key, _, _ in chain.from_iterable(axes)]


def _read_zip(node: Node, faults: list[Fault]) -> dict[str, list[Node]]:
    if not isinstance(node.content, dict) or not node.content:
        message = f"must be a mapping from keys to lists, got {show(node.content)}"
        faults.append(at(node.place, "sweep.zip", message))
        return {}
    lists = {key: _values(f"sweep.zip.{key}", entry, faults) for key, entry in node.content.items()}
    if all(lists.values()) and len(set(map(len, lists.values()))) > 1:
        counted = ", ".join(f"{key} has {len(values)}" for key, values in lists.items())
        message = f"lists that advance together must be equally long; {counted}"
        faults.append(at(node.place, "sweep.zip", message))
        return {}
    return lists


def _values(key: str, node: Node, faults: list[Fault]) -> list[Node]:
    if isinstance(node.content, list) and node.content:
        return node.content
    what = "an empty list" if node.content == [] else show(node.content)
    faults.append(at(node.place, key, f"must be a list of at least one value, got {what}"))
    return []


def _refuse_strange(axes: list[Axis], faults: list[Fault]) -> None:
    """Refuse keys that cannot be swept, that are swept twice, and that lie inside one another."""
    known: list[str] = []
    for key, _, place in chain.from_iterable(axes):
        wrong: list[str] = []
        if not all(steps_of(key)):
            wrong.append(f"must be a dotted key, got {key!r}")
        elif steps_of(key)[0] in WHOLE:
            wrong.append("belongs to the whole study and cannot differ between cells")
        for other in known:
            if f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}."):
                wrong.append("is swept twice" if key == other else f"and {other} overlap; sweep one of them")
        faults += (at(place, f"sweep.{key}", message) for message in wrong)
        known.append(key)


#: More points than anyone means.
MOST_POINTS = 1_000_000
#: Points of the sequence that are tried for one that is new, before the ranges are said to hold no more.
_TRIES = 64
_KEYS = ("count", "seed", "keys", "values")


def _points(sequence: str, dimensions: int, seed: int, count: int) -> np.ndarray:
    """Points of a sequence of ``scipy.stats.qmc``, or independent ones."""
    random = np.random.default_rng(seed)
    if not sequence:
        return random.random((count, dimensions))
    from scipy.stats import qmc

    with warnings.catch_warnings():
        # Numbers of points that are no power of two are balanced less well, and are what adding points needs.
        warnings.simplefilter("ignore", UserWarning)
        drawn: np.ndarray = getattr(qmc, sequence)(dimensions, scramble=True, seed=random).random(count)
    return drawn


#: From (dimensions, seed, count) to points in [0, 1)^dimensions; the first ones do not depend on the count.
#: Sequences: Sobol (1967) with Owen's scrambling, and Halton (1960) with random permutations of digits.
METHODS: Mapping[str, Callable[[int, int, int], "np.ndarray"]] = {
    "random": partial(_points, ""),
    "sobol": partial(_points, "Sobol"),
    "halton": partial(_points, "Halton"),
}


def _log_uniform(low: float, high: float, u: float) -> float:
    value = math.exp(math.log(low) + u * (math.log(high) - math.log(low)))
    return min(max(value, low), high)  # rounding alone can leave the range


#: What a range is called, and its value at u in [0, 1): each of equal width in u is equally likely.
RANGES: Mapping[str, Callable[..., Any]] = {
    "uniform": lambda low, high, u: float(low + u * (high - low)),
    "log-uniform": _log_uniform,
    "integers": lambda low, high, u: min(low + math.floor(u * (high - low + 1)), high),
    "log-integers": lambda low, high, u: min(max(math.floor(_log_uniform(low, high + 1, u)), low), high),
}


def read_search(method: str, node: Node) -> tuple[dict[str, list[Node]], list[Fault]]:
    """Read one search of a sweep.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    node : Node
        ``{count, seed, keys: {KEY: {RANGE: [low, high]} or {choice: [...]}}, values: {KEY: [...]}}``.

    Returns
    -------
    values : dict of str to list of Node
        Of each key, as many as there are points; empty when something is wrong.
    faults : list of Fault
    """
    key = f"sweep.{method}"
    if faults := list(_shape(key, node)):
        return {}, faults
    entries = {"seed": Node(0), "values": Node({})} | node.content
    count, seed = (_whole(plain(entries[name])) for name in ("count", "seed"))
    named = entries["keys"].content
    ranges = [_whole(plain(entry)) for entry in named.values()]
    drawn = entries["values"].content
    values = {name: list(drawn[name].content[:count]) if drawn else [] for name in named}
    if (held := len(next(iter(values.values())))) < count:
        points = _distinct(method, ranges, seed, count)
        if len(points) < count:
            message = f"asks for {count} points, and these ranges hold only {len(points)} that differ"
            return {}, [at(entries["count"].place, f"{key}.count", message)]
        for point in points[held:]:
            for (name, entry), value in zip(named.items(), point, strict=True):
                values[name].append(placed(value, entry.place))
    return values, []


def _whole(value: Any) -> Any:
    """The same with whole numbers in place of floats of their value, as ``1e2`` is; also within ranges of integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {
            name: list(map(_whole, ends)) if name.endswith("integers") else ends
            for name, ends in value.items()
        }
    return value


def _distinct(method: str, ranges: Sequence[Any], seed: int, count: int) -> list[list[Any]]:
    """The first points of the sequence that differ from each other."""
    points: dict[str, list[Any]] = {}
    tried = count
    while True:
        points.clear()
        for row in METHODS[method](len(ranges), seed, tried).tolist():
            point = [_value(choices, u) for choices, u in zip(ranges, row, strict=True)]
            points.setdefault(json.dumps(point, sort_keys=True), point)
        if len(points) >= count or tried >= _TRIES * count + 1024:
            return list(points.values())[:count]
        tried *= 2


def _value(written: Mapping[str, Any], u: float) -> Any:
    ((name, entry),) = written.items()
    if name == "choice":
        return entry[min(math.floor(u * len(entry)), len(entry) - 1)]
    return RANGES[name](*entry, u)


def _shape(key: str, node: Node) -> Iterator[Fault]:
    """What is wrong with how a search is written."""
    if not isinstance(node.content, dict):
        message = f"must be a mapping of count, seed and keys to ranges, got {show(node.content)}"
        yield at(node.place, key, message)
        return
    for name in node.content:
        if name not in _KEYS:
            yield at(node.keys[name], f"{key}.{name}", unknown("key", name, _KEYS))
    for name in ("count", "keys"):
        if name not in node.content:
            yield at(node.place, f"{key}.{name}", "is required")
    for name, least, most in (("count", 1, MOST_POINTS), ("seed", 0, 2**63 - 1)):
        if name in node.content:
            value = _whole(plain(node.content[name]))
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                message = f"must be a whole number from {least} to {most}, got {show(value)}"
                yield at(node.content[name].place, f"{key}.{name}", message)
    if (ranges := node.child("keys")) is None:
        return
    if not isinstance(ranges.content, dict) or not ranges.content:
        message = f"must be a mapping from keys to ranges, got {show(ranges.content)}"
        yield at(ranges.place, f"{key}.keys", message)
        return
    for name, entry in ranges.content.items():
        yield from _range(f"{key}.keys.{name}", entry)
    if "values" in node.content:
        yield from _faults_of_values(f"{key}.values", node.content["values"], set(ranges.content))


def _range(key: str, node: Node) -> Iterator[Fault]:
    known = (*RANGES, "choice")
    if not isinstance(node.content, dict) or len(node.content) != 1:
        yield at(node.place, key, f"must be a range, one of {', '.join(known)}; got {show(plain(node))}")
        return
    ((name, entry),) = node.content.items()
    ends = plain(entry)
    if name not in known:
        yield at(node.keys[name], key, unknown("range", name, known))
    elif name == "choice":
        if not isinstance(ends, list) or not ends:
            yield at(entry.place, key, f"choice must be a list of at least one value, got {show(ends)}")
    else:
        whole, positive = name.endswith("integers"), name.startswith("log")
        kind = f"{'positive ' if positive else ''}{'whole ' if whole else ''}numbers"
        numbers = isinstance(ends, list) and all(
            isinstance(_whole(end), int if whole else int | float)
            and not isinstance(end, bool)
            and math.isfinite(end)
            for end in ends
        )
        if not numbers or len(ends) != 2 or not ends[0] < ends[1] or (positive and ends[0] <= 0):
            given = "[" + ", ".join(map(show, ends)) + "]" if isinstance(ends, list) else show(ends)
            yield at(entry.place, key, f"{name} must be [low, high], two {kind} with low < high; got {given}")


def _faults_of_values(key: str, node: Node, names: set[str]) -> Iterator[Fault]:
    """Points drawn earlier are of the same keys."""
    values = plain(node)
    if not isinstance(values, dict) or not all(isinstance(column, list) for column in values.values()):
        yield at(node.place, key, f"must be a mapping from keys to lists, got {show(values)}")
    elif values.keys() != names or len(set(map(len, values.values()))) > 1:
        message = "must have a list for each of keys, equally long; leave values out to draw them anew"
        yield at(node.place, key, message)


#: After these comes a swept key.
_BEFORE_SWEPT = (
    "sweep.zip.",
    *(f"sweep.{method}.{part}." for method in METHODS for part in ("keys", "values")),
)


def split_key(key: str) -> Steps:
    """Split a dotted key; a swept key is one step, since it is dotted itself, wherever it stands."""
    for prefix in _BEFORE_SWEPT:
        if key.startswith(prefix):
            return (*prefix.rstrip(".").split("."), key.removeprefix(prefix))
    if key.startswith("sweep.") and key.split(".")[1] not in METHODS:
        return "sweep", key.removeprefix("sweep.")
    return tuple(key.split("."))
