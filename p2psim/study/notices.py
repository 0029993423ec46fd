"""Warnings as a person is told them: each text once, with the cells that it concerns."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from p2psim.printing import show

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

    def __add__(self, other: "Warned") -> "Warned":
        return Warned(self.times + other.times, self.cells | other.cells)


def lines(found: Iterable[tuple[str, Collection[int]]], swept: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write each distinct text once, with the cells that it concerns, unless it concerns all.

    Parameters
    ----------
    found : iterable of (text, numbers of cells)
    swept : sequence of mapping
        Swept values of every cell.

    Returns
    -------
    list of str
        In the order of the first occurrence.
    """
    cells: dict[str, set[int]] = {}
    for text, numbers in found:
        cells.setdefault(text, set()).update(numbers)
    return [text + _label(numbers, swept) for text, numbers in cells.items()]


def in_order(found: Iterable[tuple[str, Collection[int]]]) -> list[tuple[str, Collection[int]]]:
    """Sort texts by the first cell that they concern, then by themselves: the same before a run and after it."""
    return sorted(found, key=lambda one: (min(one[1], default=-1), one[0]))


def one_of_each(found: Iterable[tuple[str, Collection[int]]]) -> list[tuple[str, Collection[int]]]:
    """Leave out texts that differ in numbers alone from an earlier one about the same cells.

    With data that every replica draws anew, each replica may give a text of its own.
    """
    kept: dict[tuple[str, frozenset[int]], tuple[str, Collection[int]]] = {}
    for text, numbers in found:
        kept.setdefault((_without_numbers(text), frozenset(numbers)), (text, numbers))
    return list(kept.values())


def is_told(line: str, told: Iterable[str]) -> bool:
    """Whether one of the lines says the same of the same cells, perhaps with other numbers."""
    text, label = _split(line)
    return any(
        label == other_label and _without_numbers(text) == _without_numbers(other)
        for other, other_label in map(_split, told)
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
    own = {key: _distinct(swept[number][key] for number in numbers) for key in swept[numbers[0]]}
    telling = {
        key: values
        for key, values in own.items()
        if len(values) < len(_distinct(cell.get(key) for cell in swept))
    }
    alike = [i for i, cell in enumerate(swept) if all(cell.get(key) in telling[key] for key in telling)]
    if alike == list(numbers):
        return " and ".join(f"{key} = {_some(map(show, values))}" for key, values in telling.items())
    each = (", ".join(f"{key} = {show(value)}" for key, value in swept[number].items()) for number in numbers)
    return _some(each, "; ")


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def _some(texts: Iterable[str], between: str = ", ") -> str:
    listed = list(texts)
    more = [f"… ({len(listed)} in all)"] if len(listed) > _MOST else []
    return between.join(listed[:_MOST] + more)
