"""Swept keys as channels: the first is the colour of lines, the second their dashes, all others panels.

A dimension is a swept key, or keys that advance together, that tells cells apart. Baselines are no lines of a plan:
they are drawn as plain references.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.report import style
from p2psim.report.source import Source
from p2psim.report.words import labels_of_values, names_of, numbers_of

if TYPE_CHECKING:
    import pandas as pd

#: More lines than this in one panel cannot be told apart.
MOST_LINES = 8

#: More panels than this in one figure cannot be read.
MOST_PANELS = 24


@dataclass(frozen=True)
class Dimension:
    """What tells cells apart.

    Attributes
    ----------
    name : str
        Words of the key; empty for keys that advance together.
    position : mapping
        Which of the values each cell has.
    texts : tuple of str
        The values in words, under the name.
    labels : tuple of str
        The same where the name does not stand above them: ``ε = 10``.
    numbers : ndarray or None
        The values, where they are numbers; then they ascend.
    """

    name: str
    position: Mapping[int, int]
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    numbers: np.ndarray | None

    def __len__(self) -> int:
        return len(self.texts)


def dimensions(
    source: Source, without: Collection[str] = (), along: Mapping[int, float] | None = None
) -> list[Dimension]:
    """What tells the cells of a run apart, in the order of the sweep.

    Parameters
    ----------
    source : Source
    without : collection of str
        Keys that are an axis, and what follows from them.
    along : mapping, optional
        Place of each cell on the axis, where that is no key.
    """
    columns = list(dict.fromkeys([*source.swept, *without]))
    held = [key for key in columns if key in source.metrics]
    cells = source.metrics.drop_duplicates("cell").sort_values("cell").set_index("cell")[held]
    own = [key for key in without if key in cells]
    axis = cells[own].astype(str).agg("|".join, axis=1) if without else None
    if along is not None:
        axis = cells.index.map(lambda cell: str(along.get(cell))).to_series(index=cells.index)
    sweep = source.says("sweep") or {}
    together = list(sweep.get("zip", ())) if isinstance(sweep, Mapping) else []
    groups = [[key] for key in source.swept if key not in together]
    if zipped := [key for key in source.swept if key in together]:
        first = min(source.swept.index(key) for key in zipped)
        groups.insert(sum(group[0] in source.swept[:first] for group in groups), zipped)
    found: list[Dimension] = []
    codes: list[pd.Series[Any]] = []
    for keys in groups:
        known = {key for key in keys if axis is not None and _follows(cells[key], axis)}
        left = [key for key in keys if key not in without and key not in known]
        if not left:
            continue
        made = _dimension(source, left, cells[left])
        code = cells.index.to_series().map(made.position)
        if len(made) > 1 and not any(_follows(code, other) for other in codes):
            found.append(made)
            codes.append(code)
    return found


def _follows(values: pd.Series[Any], given: pd.Series[Any]) -> bool:
    """Whether what is given says which value a cell has."""
    return bool(values.astype(str).groupby(given.to_numpy()).nunique().max() <= 1)


def _dimension(source: Source, keys: list[str], cells: pd.DataFrame) -> Dimension:
    """One of keys that are left; of several, the one that says all of them, or their values side by side."""
    whole = cells.astype(str).agg("|".join, axis=1)
    given = source.values.get("zip", {})
    telling = [key for key in keys if _follows(whole, cells[key].astype(str))]
    if telling and not set(whole) <= set(given):
        keys = sorted(telling, key=lambda key: (key not in source.values, keys.index(key)))[:1]
    names = [source.names.get(key) or name for key, name in zip(keys, names_of(keys), strict=True)]
    if len(keys) == 1:
        names = [source.names.get(keys[0]) or names_of(source.swept)[source.swept.index(keys[0])]]
    known = list(dict.fromkeys(whole)) if len(keys) > 1 else list(dict.fromkeys(cells[keys[0]]))
    numbers = numbers_of(known) if len(keys) == 1 else None
    if numbers is not None:
        known = [known[i] for i in np.argsort(numbers, kind="stable")]
        numbers = np.sort(numbers)
    if len(keys) > 1:
        rows = [cells[(whole == value).to_numpy()].iloc[0] for value in known]
        columns = [
            _words(source, key, name, [row[key] for row in rows])[1]
            for key, name in zip(keys, names, strict=True)
        ]
        varying = [column for column in columns if len(set(column)) > 1]
        texts = [given.get(value) or ", ".join(part) for value, *part in zip(known, *varying, strict=True)]
        labels, name = texts, ""
    else:
        texts, labels = _words(source, keys[0], names[0], known)
        name = names[0]
    place = {value: i for i, value in enumerate(known)}
    of_cells = whole if len(keys) > 1 else cells[keys[0]]
    position = {int(cell): place[value] for cell, value in of_cells.items()}  # type: ignore[call-overload]
    return Dimension(name, position, tuple(texts), tuple(labels), numbers)


def _words(source: Source, key: str, name: str, values: Sequence[Any]) -> tuple[list[str], list[str]]:
    """Values in words, and where the key's name does not stand above them."""
    return labels_of_values(values, name, source.values.get(key, {}))


@dataclass(frozen=True)
class Line:
    """A combination of what is swept, drawn as one line.

    Attributes
    ----------
    number : int
    label : str
        All that tells it from the others.
    short : str
        The same without what stands above its panel.
    look : dict
        Colour, dashes and marker.
    panel : int
    """

    number: int
    label: str
    short: str
    look: dict[str, Any]
    panel: int


class Plan:
    """Which line each cell belongs to, how lines look, and in which panel they are.

    Parameters
    ----------
    source : Source
    without, along
        As for `dimensions`.
    panels : bool
        Whether the figure can have a panel for each value of a key.

    Attributes
    ----------
    lines : list of Line
    titles : list of str
        Of panels.
    colour, dash : Dimension or None
    of_cell : dict
        The line of each cell.
    """

    def __init__(
        self,
        source: Source,
        without: Collection[str] = (),
        along: Mapping[int, float] | None = None,
        panels: bool = True,
    ):
        self.source = source
        self.all = dimensions(source, without, along)
        cells = [int(cell) for cell in sorted(source.metrics["cell"].unique())]
        combos = {cell: tuple(dim.position[cell] for dim in self.all) for cell in cells}
        found = sorted(set(combos.values()))
        self.colour, self.dash, self.over = _assigned(self.all, len(found), panels)
        titles = dict.fromkeys(tuple(c[self.all.index(dim)] for dim in self.over) for c in found)
        self.titles = [
            ", ".join(dim.labels[i] for dim, i in zip(self.over, part, strict=True)) for part in titles
        ]
        places = {part: number for number, part in enumerate(titles)}
        self.lines = []
        for number, combo in enumerate(found):
            labels = [dim.labels[i] for dim, i in zip(self.all, combo, strict=True)]
            brief = [label for dim, label in zip(self.all, labels, strict=True) if dim not in self.over]
            panel = places[tuple(combo[self.all.index(dim)] for dim in self.over)]
            line = Line(number, ", ".join(labels), ", ".join(brief), self._look(combo, number), panel)
            self.lines.append(line)
        numbers = {combo: number for number, combo in enumerate(found)}
        self.of_cell = {cell: self.lines[numbers[combo]] for cell, combo in combos.items()}

    def _look(self, combo: tuple[int, ...], number: int) -> dict[str, Any]:
        if self.colour is None:
            # Rows have no colours; figures of lines refuse more than there are colours.
            at, ordered, count = (number % MOST_LINES, False, MOST_LINES) if not self.over else (0, False, 1)
        else:
            at, ordered = combo[self.all.index(self.colour)], self.colour.numbers is not None
            count = len(self.colour)
        look = {"color": style.colours(count, ordered)[at], "marker": style.MARKERS[at % len(style.MARKERS)]}
        dashes = combo[self.all.index(self.dash)] if self.dash is not None else 0
        if self.dash is None and not ordered and count <= len(style.DASHES):
            dashes = at  # readable in grey as well
        return {**look, "linestyle": style.DASHES[dashes % len(style.DASHES)]}

    @cached_property
    def is_alone(self) -> bool:
        """Whether there is one line in every panel, and several panels."""
        return len(self.titles) > 1 and len(self.lines) == len(self.titles)

    def legend(self) -> list[tuple[str, Any]]:
        """Entries of the legend: words and a handle; a handle of None is a heading."""
        from matplotlib.lines import Line2D

        if self.colour is None or self.is_alone:
            return []
        looks: dict[int, dict[str, Any]] = {}
        for cell, line in self.of_cell.items():
            looks.setdefault(self.colour.position[cell], line.look)
        out: list[tuple[str, Any]] = [(self.colour.name, None)] if self.colour.name else []
        for at, text in enumerate(self.colour.texts):
            if at in looks:
                dashes: Any = "-" if self.dash is not None else looks[at]["linestyle"]
                out.append((text, Line2D([], [], color=looks[at]["color"], linestyle=dashes)))
        if self.dash is not None:
            out += [(self.dash.name, None)] if self.dash.name else []
            out += [
                (text, Line2D([], [], color="0.3", linestyle=style.DASHES[at]))
                for at, text in enumerate(self.dash.texts)
            ]
        return out


def _assigned(
    dims: list[Dimension], lines: int, panels: bool
) -> tuple[Dimension | None, Dimension | None, list[Dimension]]:
    """Dimensions of the colour, of the dashes, and of panels."""
    if not dims:
        return None, None, []
    few = [dim for dim in dims if len(dim) <= MOST_LINES]
    if not few:
        return (None, None, dims) if panels else (None, None, [])
    colour = few[0]
    rest = [dim for dim in dims if dim is not colour]
    if len(rest) == 1 and lines <= MOST_LINES and len(rest[0]) > len(style.DASHES):
        colour, rest = rest[0], [colour]
    fits = bool(rest) and len(rest[0]) <= len(style.DASHES) and len(colour) * len(rest[0]) <= MOST_LINES
    if fits and (len(rest) > 1 or lines <= MOST_LINES):
        return colour, rest[0], rest[1:] if panels else []
    return colour, None, rest if panels else []
