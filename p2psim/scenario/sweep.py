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
from dataclasses import dataclass
from itertools import chain, product
from typing import TYPE_CHECKING, Any

from p2psim.core.errors import Fault
from p2psim.core.faults import show, unknown
from p2psim.core.nodes import Node, Place, Steps, at, find, placed, plain, put

if TYPE_CHECKING:
    import numpy as np

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

    def __iter__(self) -> Iterator[tuple[str, tuple[Node, ...], Place]]:
        return zip(self.keys, self.values, self.places, strict=True)


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
        if key == "zip":
            _read_zip(entry, axes, faults)
        elif key in METHODS:
            points, wrong = read_search(key, entry)
            faults += wrong
            if points:
                axes.append(_axis(points, entry.content["keys"].keys))
        else:
            values = _values(f"sweep.{key}", entry, faults)
            if values:
                axes.append(_axis({key: values}, node.keys))
    _refuse_strange(axes, faults)
    return axes, faults


def _axis(values: Mapping[str, Iterable[Node]], places: Mapping[str, Place]) -> Axis:
    return Axis(tuple(values), tuple(map(tuple, values.values())), tuple(places[key] for key in values))


def too_many(axes: list[Axis], place: Place) -> Fault | None:
    """Return what is wrong with a sweep that is too large to be meant, None when it is not."""
    if (size := math.prod(map(len, axes))) <= MOST_CELLS:
        return None
    lengths = " × ".join(str(len(axis)) for axis in axes)
    limit = f"more than {MOST_CELLS:,} must be confirmed (--confirm-cells)"
    return at(place, "sweep", f"makes {size:,} cells ({lengths}); {limit}")


def combinations(axes: list[Axis]) -> Iterator[dict[str, tuple[int, Node]]]:
    """Yield, for each cell, the position and the node of every swept key's value."""
    for positions in product(*(range(len(axis)) for axis in axes)):
        yield {
            key: (position, values[position])
            for axis, position in zip(axes, positions, strict=True)
            for key, values, _ in axis
        }


def swept_keys(axes: Iterable[Axis]) -> list[str]:
    """Return the keys that a sweep sets."""
    return [key for axis in axes for key in axis.keys]


def _read_zip(node: Node, axes: list[Axis], faults: list[Fault]) -> None:
    if not isinstance(node.content, dict) or not node.content:
        message = f"must be a mapping from keys to lists, got {show(node.content)}"
        faults.append(at(node.place, "sweep.zip", message))
        return
    lists = {key: _values(f"sweep.zip.{key}", entry, faults) for key, entry in node.content.items()}
    if not all(lists.values()):
        return
    if len(set(map(len, lists.values()))) > 1:
        counted = ", ".join(f"{key} has {len(values)}" for key, values in lists.items())
        message = f"lists that advance together must be equally long; {counted}"
        faults.append(at(node.place, "sweep.zip", message))
    else:
        axes.append(_axis(lists, node.keys))


def _values(key: str, node: Node, faults: list[Fault]) -> tuple[Node, ...]:
    if isinstance(node.content, list) and node.content:
        return tuple(node.content)
    what = "an empty list" if node.content == [] else show(node.content)
    faults.append(at(node.place, key, f"must be a list of at least one value, got {what}"))
    return ()


def _refuse_strange(axes: list[Axis], faults: list[Fault]) -> None:
    """Refuse keys that cannot be swept, that are swept twice, and that lie inside one another."""
    known: list[str] = []
    for key, _, place in chain.from_iterable(axes):
        wrong: list[str] = []
        if not all(steps_of(key)):
            wrong.append(f"must be a dotted key, got {key!r}")
        elif steps_of(key)[0] in _WHOLE:
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


def _random(dimensions: int, seed: int, count: int) -> "np.ndarray":
    import numpy as np

    return np.random.default_rng(seed).random((count, dimensions))


def _sequence(name: str) -> Callable[[int, int, int], "np.ndarray"]:
    def points(dimensions: int, seed: int, count: int) -> "np.ndarray":
        import numpy as np
        from scipy.stats import qmc

        random = np.random.default_rng(seed)
        with warnings.catch_warnings():
            # Numbers of points that are no power of two are balanced less well, and are what adding points needs.
            warnings.simplefilter("ignore", UserWarning)
            drawn: np.ndarray = getattr(qmc, name)(dimensions, scramble=True, seed=random).random(count)
        return drawn

    return points


#: From (dimensions, seed, count) to points in [0, 1)^dimensions; the first ones do not depend on the count.
#: Sequences: Sobol (1967) with Owen's scrambling, and Halton (1960) with random permutations of digits.
METHODS: Mapping[str, Callable[[int, int, int], "np.ndarray"]] = {
    "random": _random,
    "sobol": _sequence("Sobol"),
    "halton": _sequence("Halton"),
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
    count = _whole(plain(node.content["count"]))
    seed = _whole(plain(node.content["seed"])) if "seed" in node.content else 0
    ranges = {name: _whole(plain(entry)) for name, entry in node.content["keys"].content.items()}
    drawn = node.content["values"].content if "values" in node.content else {}
    given = {name: list(entry.content) for name, entry in drawn.items()}
    held = min(map(len, given.values()), default=0)
    values = {name: given.get(name, [])[:count] for name in ranges}
    if held < count:
        points = _distinct(method, list(ranges.values()), seed, count)
        if len(points) < count:
            message = f"asks for {count} points, and these ranges hold only {len(points)} that differ"
            return {}, [at(node.content["count"].place, f"{key}.count", message)]
        for point in points[held:]:
            for name, value in zip(ranges, point, strict=True):
                values[name].append(placed(value, node.content["keys"].content[name].place))
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
        yield at(
            node.place, key, f"must be a mapping of count, seed and keys to ranges, got {show(node.content)}"
        )
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
    if "keys" in node.content:
        ranges = node.content["keys"]
        if not isinstance(ranges.content, dict) or not ranges.content:
            message = f"must be a mapping from keys to ranges, got {show(ranges.content)}"
            yield at(ranges.place, f"{key}.keys", message)
        else:
            for name, entry in ranges.content.items():
                yield from _range(f"{key}.keys.{name}", entry)
        yield from _faults_of_values(f"{key}.values", node)


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


def _faults_of_values(key: str, node: Node) -> Iterator[Fault]:
    """Points drawn earlier are of the same keys."""
    if "values" not in node.content:
        return
    entry, names = node.content["values"], plain(node.content["keys"])
    values = entry.content
    if not isinstance(values, dict) or not all(
        isinstance(column.content, list) for column in values.values()
    ):
        yield at(entry.place, key, f"must be a mapping from keys to lists, got {show(plain(entry))}")
    elif isinstance(names, dict) and (
        set(values) != set(names) or len({len(column.content) for column in values.values()}) > 1
    ):
        message = "must have a list for each of keys, equally long; leave values out to draw them anew"
        yield at(entry.place, key, message)


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
