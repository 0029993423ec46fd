"""What p2psim says beside results: warnings, names that are allowed, differences of a replay, and comparability.

Each warning is written once, with the cells that it concerns.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from p2psim.core.printing import show
from p2psim.core.registry import parts

#: Values of one key, or cells one by one, that a person is shown.
_MOST = 6


@dataclass(frozen=True)
class Warned:
    """Where a warning was given.

    Attributes
    ----------
    times : int
        In how many simulations.
    cells : frozenset of str
        Content hashes of their cells; empty for what concerns no cell.
    """

    times: int
    cells: frozenset[str] = frozenset()

    def __add__(self, other: Warned) -> Warned:
        return Warned(self.times + other.times, self.cells | other.cells)


def lines(notices: Iterable[tuple[str, Collection[int]]], swept: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write each distinct text once, with the cells that it concerns, unless it concerns all.

    Parameters
    ----------
    notices : iterable of (text, numbers of cells)
    swept : sequence of mapping
        Swept values of every cell.

    Returns
    -------
    list of str
        In the order of the first occurrence.
    """
    cells: dict[str, set[int]] = {}
    for text, numbers in notices:
        cells.setdefault(text, set()).update(numbers)
    return [text + _label(numbers, swept) for text, numbers in cells.items()]


def in_order(notices: Iterable[tuple[str, Collection[int]]]) -> list[tuple[str, Collection[int]]]:
    """Sort texts by the first cell that they concern, then by themselves: the same before a run and after it."""
    return sorted(notices, key=lambda notice: (min(notice[1], default=-1), notice[0]))


def without_variants(notices: Iterable[tuple[str, Collection[int]]]) -> list[tuple[str, Collection[int]]]:
    """Leave out texts that differ in numbers alone from an earlier one about the same cells.

    With data that every replica draws anew, each replica may give a text of its own.
    """
    kept: dict[tuple[str, frozenset[int]], tuple[str, Collection[int]]] = {}
    for text, numbers in notices:
        kept.setdefault((_without_numbers(text), frozenset(numbers)), (text, numbers))
    return list(kept.values())


def is_repeated(line: str, lines: Iterable[str]) -> bool:
    """Whether one of the lines says the same of the same cells, perhaps with other numbers."""
    text, label = _split(line)
    return any(
        label == other_label and _without_numbers(text) == _without_numbers(other)
        for other, other_label in map(_split, lines)
    )


def _split(line: str) -> tuple[str, str]:
    place = line.rfind(" (cell")
    return (line, "") if place < 0 else (line[:place], line[place:])


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+([.,]\d+)*(e[+-]?\d+)?", "#", text)


def _label(cells: Collection[int], swept: Sequence[Mapping[str, Any]]) -> str:
    numbers = sorted(cells)
    if not numbers or len(numbers) == len(swept):
        return ""
    shown = ", ".join(map(str, numbers[:_MOST])) + (", …" if len(numbers) > _MOST else "")
    return f" (cell{'s' if len(numbers) > 1 else ''} {shown}: {_values(numbers, swept)})"


def _values(numbers: Sequence[int], swept: Sequence[Mapping[str, Any]]) -> str:
    """The values that set these cells apart where some do; otherwise those of one cell after the other."""
    values_of = {key: dict.fromkeys(swept[number][key] for number in numbers) for key in swept[numbers[0]]}
    count = {key: len({cell.get(key) for cell in swept}) for key in values_of}
    telling = {key: values for key, values in values_of.items() if len(values) < count[key]}
    alike = [i for i, cell in enumerate(swept) if all(cell.get(key) in telling[key] for key in telling)]
    if alike == list(numbers):
        return " and ".join(f"{key} = {_some(map(show, values))}" for key, values in telling.items())
    each = (", ".join(f"{key} = {show(value)}" for key, value in swept[number].items()) for number in numbers)
    return _some(each, "; ")


def _some(texts: Iterable[str], between: str = ", ") -> str:
    listed = list(texts)
    more = [f"… ({len(listed)} in all)"] if len(listed) > _MOST else []
    return between.join(listed[:_MOST] + more)


#: A study's name is also that of its folder and its file.
PATTERN = r"^\w[\w .+=-]{0,99}$"
#: Windows has devices of these names in every folder, whatever the case and whatever follows a dot.
DEVICES = re.compile(r"(con|prn|aux|nul|(com|lpt)[0-9¹²³])\s*(\..*)?", re.IGNORECASE)


def checked_name(name: str) -> str:
    """Return the name if it can be a folder's on any system.

    Raises
    ------
    ValueError
        If it cannot.
    """
    if not re.fullmatch(PATTERN, name) or name.endswith((" ", ".", "\n")):
        allowed = "at most 100 letters, digits, _ - + = and, inside, spaces and dots"
        raise ValueError(f"must be a name of {allowed}, got {name[:120]!r}")
    if DEVICES.fullmatch(name):
        raise ValueError(f"must not be the name of a device of Windows, got {name!r}")
    return name


@dataclass(frozen=True)
class Compared:
    """Recorded numbers and recomputed ones.

    Attributes
    ----------
    recorded, again : ndarray of one shape
    scale : ndarray or float
        Positive; differences are relative to it.
    """

    recorded: np.ndarray
    again: np.ndarray
    scale: np.ndarray | float

    @classmethod
    def of(
        cls, recorded: np.ndarray, again: np.ndarray, least: float = float(np.finfo(float).tiny)
    ) -> Compared:
        """Relative to the largest number on either side, and to ``least`` where all are smaller."""
        return cls(
            recorded, again, max(least, *(np.abs(side).max(initial=0.0) for side in (recorded, again)))
        )

    @property
    def difference(self) -> float:
        """Largest relative difference; infinite where the shapes differ, or a number is undefined on one side."""
        if self.recorded.shape != self.again.shape:
            return float("inf")
        with np.errstate(invalid="ignore"):
            relative = np.abs(self.recorded - self.again) / self.scale
        apart = np.where(self.recorded == self.again, 0.0, relative)
        return float(np.where(np.isnan(apart), np.inf, apart).max(initial=0.0))


def drift(first: Iterable[Compared], second: Iterable[Compared]) -> float:
    """How far two replays of the same records are apart, as `Compared.difference` measures it."""
    pairs = zip(first, second, strict=True)
    return max((replace(before, recorded=after.again).difference for before, after in pairs), default=0.0)


#: Sums over agents and links, which grow with the graph and its weights.
_OF_THE_GRAPH = ("objective", "objective_gap")


def comparability(metrics: Collection[str], swept: Collection[str], scenario: Mapping[str, Any]) -> list[str]:
    """Notes on metrics that differ between the cells because the graphs do.

    Parameters
    ----------
    metrics : collection of str
        Recorded, or drawn.
    swept : collection of str
        Dotted keys that differ between the cells.
    scenario : mapping
        The scenario as a plain tree; empty when it is not known.
    """
    kind = scenario.get("learning", {}).get("algorithm", {}).get("kind")
    algorithm = parts("algorithm").get(kind)
    if algorithm is not None and algorithm.objective != "personalised":
        return []
    grown = [name for name in _OF_THE_GRAPH if name in metrics]
    if not grown or not any(key.startswith("network.topology") for key in swept):
        return []
    return [
        f"{' and '.join(grown)} {'grow' if len(grown) > 1 else 'grows'} with the number of links and their weights, "
        "so that cells with different graphs cannot be compared by that; record mean_objective_gap"
    ]
