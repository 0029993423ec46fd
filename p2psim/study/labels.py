"""What swept parts are called in tables and figures for people.

A column's value says of a part its kind and the keys that differ from their defaults. It names a cell also in other
runs, so it may not depend on what else is swept. Beside parts of the same kind that differ in some key, this leaves
out just what tells them apart where one of them has the default: a label has that key too.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from p2psim.study.cells import Cell, display, value_at
from p2psim.study.sweep import steps_of

#: For each swept key, from a column's value to its label, where the two differ.
Labels = dict[str, dict[str, str]]


def labels_of(grid: Sequence[Cell]) -> Labels:
    """Labels of the swept parts of a study's cells: with every key in which parts of the same kind differ."""
    found: Labels = {}
    for key in grid[0].swept:
        parts: dict[str, BaseModel] = {}
        for cell in grid:
            text, value = cell.swept[key], value_at(cell.scenario, steps_of(key))
            if isinstance(text, str) and isinstance(value, BaseModel):
                parts[text] = value
        written = {text: display(part, _telling(part, list(parts.values()))) for text, part in parts.items()}
        changed = {text: label for text, label in written.items() if label != text}
        if changed:
            found[key] = changed
    return found


def _telling(part: BaseModel, parts: Sequence[BaseModel]) -> list[str]:
    """Keys in which parts of the same class differ, and of which this one says something."""
    alike = [other for other in parts if type(other) is type(part)]
    keys = [key for key in type(part).model_fields if key != "kind"]
    said = [key for key in keys if getattr(part, key) is not None]
    return [key for key in said if any(getattr(other, key) != getattr(part, key) for other in alike)]
