"""Points in ranges instead of a grid: random, or of a sequence that fills space evenly.

A search is a sequence of points that depends on its method, seed and keys alone: a larger count keeps the points that
a smaller one has, and so their cells. A resolved scenario holds the points under ``values``, so that it gives the same
cells even where another version of a library would draw others; only what is missing there is drawn.
"""

import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from p2psim.errors import Fault
from p2psim.study.faults import show, unknown
from p2psim.study.nodes import Node, Place, at, plain

if TYPE_CHECKING:
    import numpy as np

#: More points than anyone means.
MOST_POINTS = 1_000_000
#: Points of the sequence that are looked at for one that is new, before the ranges are said to hold no more.
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
    faults = list(_shape(key, node))
    if faults:
        return {}, faults
    count = _whole(plain(node.content["count"]))
    seed = _whole(plain(node.content["seed"])) if "seed" in node.content else 0
    ranges = {
        name: (_whole(plain(entry)), entry.place) for name, entry in node.content["keys"].content.items()
    }
    given = {name: list(entry.content) for name, entry in _entries(node, "values").items()}
    held = min(len(values) for values in given.values()) if given else 0
    values = {name: given.get(name, [])[:count] for name in ranges}
    if held < count:
        points = _distinct(method, [one for one, _ in ranges.values()], seed, count)
        if len(points) < count:
            said = f"asks for {count} points, and these ranges hold only {len(points)} that differ"
            return {}, [at(node.content["count"].place, f"{key}.count", said)]
        for point in points[held:]:
            for (name, (_, place)), value in zip(ranges.items(), point, strict=True):
                values[name].append(_as_node(value, place))
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


def _entries(node: Node, name: str) -> dict[str, Node]:
    return node.content[name].content if name in node.content else {}


def _as_node(value: Any, place: Place) -> Node:
    from p2psim.study.nodes import from_python

    return from_python(value, place)


def _distinct(method: str, ranges: Sequence[Any], seed: int, count: int) -> list[list[Any]]:
    """The first points of the sequence that differ from each other."""
    found: dict[str, list[Any]] = {}
    looked = count
    while True:
        found.clear()
        for row in METHODS[method](len(ranges), seed, looked).tolist():
            point = [_value(one, u) for one, u in zip(ranges, row, strict=True)]
            found.setdefault(json.dumps(point, sort_keys=True), point)
        if len(found) >= count or looked >= _TRIES * count + 1024:
            return list(found.values())[:count]
        looked *= 2


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
                said = f"must be a whole number from {least} to {most}, got {show(value)}"
                yield at(node.content[name].place, f"{key}.{name}", said)
    if "keys" in node.content:
        yield from _keys(f"{key}.keys", node.content["keys"])
        yield from _values(f"{key}.values", node)


def _keys(key: str, node: Node) -> Iterator[Fault]:
    if not isinstance(node.content, dict) or not node.content:
        yield at(node.place, key, f"must be a mapping from keys to ranges, got {show(node.content)}")
        return
    for name, entry in node.content.items():
        yield from _range(f"{key}.{name}", entry)


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


def _values(key: str, node: Node) -> Iterator[Fault]:
    """Points drawn earlier are of the same keys."""
    if "values" not in node.content:
        return
    entry, names = node.content["values"], plain(node.content["keys"])
    values = entry.content
    if not isinstance(values, dict) or not all(isinstance(one.content, list) for one in values.values()):
        yield at(entry.place, key, f"must be a mapping from keys to lists, got {show(plain(entry))}")
    elif isinstance(names, dict) and (
        set(values) != set(names) or len({len(one.content) for one in values.values()}) > 1
    ):
        said = "must have a list for each of keys, equally long; leave values out to draw them anew"
        yield at(entry.place, key, said)
