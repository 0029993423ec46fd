"""The cells of a study: one scenario for each combination of swept values, with its hashes and labels.

The value of a swept part in a table names its kind and the keys that differ from their defaults. It names the cell in
other runs too, so it does not depend on what else is swept. Labels, which people read, add every key in which the swept
parts of one kind differ.
"""

import hashlib
import json
import math
import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Generic

from pydantic import BaseModel

from p2psim.core.errors import InputError
from p2psim.core.faults import ordered
from p2psim.core.nodes import Node, at, place_of, plain
from p2psim.core.options import INT64
from p2psim.scenario.fields import AnyScenario, ScenarioFields, explicit, said, validated
from p2psim.scenario.sweep import combinations, read_sweep, steps_of, swept_keys, too_many, with_value
from p2psim.scenario.tuning import with_choice

#: Written in front of what is hashed; changes only when the meaning of a scenario does.
HASH_VERSION = "p2psim-scenario-1"


@dataclass(frozen=True)
class GridCell(Generic[AnyScenario]):
    """One combination of swept values.

    Attributes
    ----------
    index : int
        Position in the grid, from zero; it moves when values are added to the sweep.
    swept : dict
        For each swept key, in file order, what a table's column holds: a number, or text for anything else.
    scenario : AnyScenario
        Complete and valid, without a sweep.
    content : str
        Hash of what determines the results; it does not move when values are added to the sweep.
    warnings : tuple of str, optional
        Of its first replica, where it was assessed; of all where replicas draw nothing that they depend on.
    """

    index: int
    swept: dict[str, object]
    scenario: AnyScenario
    content: str
    warnings: tuple[str, ...] | None = field(default=None, compare=False)


#: The grid that was made last, by the id of its scenario: whoever reads a scenario checks its cells, and then runs the
#: same ones. It is forgotten when the scenario is.
_latest: dict[int, list[Any]] = {}


def cells(scenario: AnyScenario, *, confirm_cells: bool = False) -> list[GridCell[AnyScenario]]:
    """Make all cells, and check that each of them makes sense.

    Parameters
    ----------
    scenario : ScenarioFields
    confirm_cells : bool
        Accept any number of cells.

    Returns
    -------
    list of GridCell
        The last swept key is fastest. A single one, with nothing swept, when there is no sweep.

    Raises
    ------
    InputError
        If there are too many; with everything that is wrong in any of them; or if two are the same.
    """
    from p2psim.scenario.rules import Found, check_consistency

    node = scenario.nodes()
    axes, faults = read_sweep(node.child("sweep"))
    excess = too_many(axes, place_of(node, ("sweep",), key=True))
    if excess is not None and not confirm_cells:
        faults.append(excess)
    size = math.prod(len(axis[0].values) for axis in axes)
    tune = scenario.tune
    chosen = None if tune is None else tune.chosen
    if chosen is not None and len(chosen) != size:
        message = f"has {len(chosen)} values for {size} cells; leave it out, so that p2psim run chooses"
        faults.append(at(place_of(node, ("tune", "chosen")), "tune.chosen", message))
    if faults:
        raise InputError(*ordered(faults))
    if id(scenario) in _latest:
        return list(_latest[id(scenario)])
    base = node.without("sweep", "figure", "labels")
    valid: list[tuple[AnyScenario, str]] = []
    numbers: dict[str, int] = {}
    # Most sections and parts of a cell are those of the one before, and so are their texts.
    last, known, checked = None, _Texts(), Found()
    for index, combination in enumerate(combinations(axes)):
        node = base
        for key, value in combination.items():
            node = with_value(node, key, value)
        if tune is not None:
            node = with_choice(node, tune, index)
        try:
            cell = last = validated(type(scenario), node, last)
        except InputError as error:
            faults += error.faults
            continue
        faults += map(cell.locate, check_consistency(cell, checked))
        hashed = _content_of_cell(cell, combination, known)
        if hashed in numbers:
            place = next((value.place for value in reversed(combination.values())), base.place)
            faults.append(at(place, "sweep", f"cell {index} is the same as cell {numbers[hashed]}"))
        numbers.setdefault(hashed, index)
        valid.append((cell, hashed))
    if faults:
        raise InputError(*ordered(faults))
    values = {key: [value_at(cell, steps_of(key)) for cell, _ in valid] for key in swept_keys(axes)}
    columns = {key: column_of(column) for key, column in values.items()}
    grid = [
        GridCell(index, {key: column[index] for key, column in columns.items()}, cell, hashed)
        for index, (cell, hashed) in enumerate(valid)
    ]
    _latest.clear()
    _latest[id(scenario)] = grid
    weakref.finalize(scenario, _latest.pop, id(scenario), None)
    return list(grid)


#: Values of a scenario by their keys, each with its text.
_Texts = dict[tuple[str, ...], tuple[Any, str]]


def content(scenario: ScenarioFields, known: _Texts | None = None) -> str:
    """Hash what determines the results of a scenario without a sweep.

    Not part of it: name, replicas, engine (both give the same events), what is recorded and drawn, and numbers
    that the preparation finds. ``independent`` draws of a cell are told apart by it. `known` is what the cell
    before has.
    """
    return _hash_of(_text_of(scenario, {} if known is None else known))


#: Keys that do not determine results.
_LEFT_OUT = {("network", "engine")}.union(
    (name,) for name in ("name", "replicas", "record", "sweep", "figure", "labels", "fitted")
)


def _text_of(value: Any, known: _Texts, key: tuple[str, ...] = ()) -> str:
    """The text of all that is said under a key, the same as if it were written at once."""
    if key not in known or known[key][0] is not value:
        if isinstance(value, BaseModel):
            entries = [(name, entry) for name, entry in said(value) if (*key, name) not in _LEFT_OUT]
            entries.sort(key=itemgetter(0))
            inside = (f'"{name}":{_text_of(entry, known, (*key, name))}' for name, entry in entries)
            text = f"{{{','.join(inside)}}}"
        else:
            text = _text(explicit(value, digests=True))
        known[key] = value, text
    return known[key][1]


def identity(scenario: ScenarioFields) -> str:
    """Hash what a run folder is bound to.

    Not part of it: replicas, engine, figures, labels, the values of the sweep (its keys are), what the file says
    outside the sweep for keys that are swept or tuned, the values that were tuned, and numbers that the preparation
    finds.
    """
    tree = explicit(scenario, digests=True)
    for name in ("replicas", "figure", "labels", "fitted"):
        tree.pop(name)
    del tree["network"]["engine"]
    axes, _ = read_sweep(scenario.nodes().child("sweep"))
    tree["sweep"] = [swept_keys([axis]) for axis in axes]
    for key in swept_keys(axes):
        _remove(tree, steps_of(key))
    if scenario.tune is not None:
        tree["tune"].pop("chosen", None)
        _remove(tree, steps_of(scenario.tune.key))
    return _hash(tree)


def display(value: Any, also: Collection[str] = ()) -> str:
    """Write a part by its kind and the keys that differ from their defaults: ``cap(releases=3)``; `also` these keys."""
    if isinstance(value, BaseModel):
        differing = [
            f"{key}={display(getattr(value, key))}"
            for key, field in type(value).model_fields.items()
            if key in also
            or (key != "kind" and getattr(value, key) != field.get_default(call_default_factory=True))
        ]
        kind = str(getattr(value, "kind", ""))
        inside = ", ".join(differing)
        return f"{kind}({inside})" if kind and inside else kind or inside or "defaults"
    if isinstance(value, Mapping) and value:
        return f"{{{', '.join(f'{key}={display(entry)}' for key, entry in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(display, value))}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def column_of(values: list[object]) -> Sequence[object]:
    """Write the values of a swept key so that a table's column can hold them: all numbers, or all text."""
    kinds = set(map(type, values))
    too_large = any(isinstance(value, int) and abs(value) > INT64 for value in values)
    fits = not too_large and (kinds <= {int, float} or kinds == {bool})
    return values if fits else list(map(display, values))


def value_at(scenario: ScenarioFields, steps: Sequence[str]) -> object:
    """Return what stands under a dotted key, as a model where it is one."""
    value: Any = scenario
    for step in steps:
        if isinstance(value, BaseModel):
            value = getattr(value, step)
        else:
            value = value[step if isinstance(value, Mapping) else int(step)]
    return value


def _content_of_cell(scenario: ScenarioFields, combination: Mapping[str, Node], known: _Texts) -> str:
    """Return the content; where something is swept that does not belong to it, cells still differ."""
    keys = [key for key in combination if key == "network.engine" or steps_of(key)[0] == "record"]
    beside = {key: plain(combination[key]) for key in keys}
    hashed = content(scenario, known)
    return _hash([hashed, beside]) if beside else hashed


def _remove(tree: Any, steps: Sequence[str]) -> None:
    """Take a key out of a tree of dictionaries; a position in a list is emptied, so that others stay."""
    for step in steps[:-1]:
        tree = tree[step] if isinstance(tree, dict) else tree[int(step)]
    if isinstance(tree, dict):
        tree.pop(steps[-1], None)
    else:
        tree[int(steps[-1])] = None


def _hash(tree: Any) -> str:
    return _hash_of(_text(tree))


def _text(tree: Any) -> str:
    return json.dumps(tree, sort_keys=True, separators=(",", ":"))


def _hash_of(text: str) -> str:
    return hashlib.blake2b((HASH_VERSION + text).encode(), digest_size=16).hexdigest()


#: For each swept key, from a column's value to its label, where the two differ.
Labels = dict[str, dict[str, str]]


def labels_of(grid: Sequence[GridCell[Any]]) -> Labels:
    """Labels of the swept parts of a study's cells: with every key in which parts of the same kind differ."""
    labels: Labels = {}
    for key in grid[0].swept:
        parts: dict[str, BaseModel] = {}
        for cell in grid:
            text, value = cell.swept[key], value_at(cell.scenario, steps_of(key))
            if isinstance(text, str) and isinstance(value, BaseModel):
                parts[text] = value
        written = {text: display(part, _telling(part, parts.values())) for text, part in parts.items()}
        labels[key] = {text: label for text, label in written.items() if label != text}
    return {key: changed for key, changed in labels.items() if changed}


def _telling(part: BaseModel, parts: Collection[BaseModel]) -> list[str]:
    """Keys in which parts of the same class differ, and of which this part says something."""
    alike = [other for other in parts if type(other) is type(part)]
    stated = {key: entry for key, entry in part if key != "kind" and entry is not None}
    return [key for key, entry in stated.items() if any(getattr(other, key) != entry for other in alike)]
