"""A scenario: everything that a person decides about a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from p2psim.core.errors import Fault, InputError, show
from p2psim.core.faults import ordered
from p2psim.core.files import path_of
from p2psim.core.nodes import Node, Place, find, place_of, placed, plain, put
from p2psim.core.options import Checked
from p2psim.scenario import yaml
from p2psim.scenario.cells import GridCell, cells, identity, value_at
from p2psim.scenario.extending import extended
from p2psim.scenario.fields import ScenarioFields, explicit, validated
from p2psim.scenario.figure import figure_faults, label_faults, words_of_values
from p2psim.scenario.partly import further_faults
from p2psim.scenario.sweep import (
    METHODS,
    Axis,
    read_sweep,
    split_key,
    steps_of,
    swept_keys,
    too_many,
    with_value,
)
from p2psim.scenario.tuning import faults_of_key, tuned_axis, validation_node


class _Composed(Checked):
    """Makes ``Scenario(...)`` check and complete what it is given, as reading a file does."""

    def __call__(self, **keys: Any) -> Any:
        """Read the keys."""
        return self.from_dict(keys)  # type: ignore[attr-defined]


class Scenario(ScenarioFields, metaclass=_Composed):
    """A study: what is simulated, how often, and what differs between its cells.

    Made from a file (`load`), from text (`parse`), from dictionaries (`from_dict`), or from keyword arguments. Every
    value may be an object or what a file would say.

    Examples
    --------
    >>> import p2psim
    >>> scenario = p2psim.Scenario(
    ...     name="ring",
    ...     network={"topology": p2psim.Ring(agents=5), "exchange": "gossip"},
    ...     data={"source": p2psim.LinearRegression(dimension=2, points=20)},
    ...     learning=p2psim.LearningSection(
    ...         algorithm=p2psim.CoordinateDescent(mu=0.1, commits=50),
    ...         loss=p2psim.Squared(),
    ...         regularizer=p2psim.Regularizer(l2=0.01),
    ...     ),
    ... )
    >>> scenario.network.topology.agents
    5
    """

    @classmethod
    def load(
        cls, path: str | Path, overrides: Sequence[str] = (), *, confirm_cells: bool = False
    ) -> Scenario:
        """Read a scenario file.

        Parameters
        ----------
        path : str or Path
        overrides : sequence of str
            ``dotted.key=YAML value``, as ``--set`` takes them.
        confirm_cells : bool
            Accept a sweep of any size.

        Raises
        ------
        InputError
            With everything that is wrong, each with its place.
        """
        data = yaml.contents(path_of("path", path))
        return cls.parse(data, str(path), overrides, confirm_cells=confirm_cells)

    @classmethod
    def parse(
        cls, text: str | bytes, path: str = "", overrides: Sequence[str] = (), *, confirm_cells: bool = False
    ) -> Scenario:
        """Read a scenario from YAML text; otherwise like `load`. `path` is named in errors."""
        if not isinstance(text, str | bytes):
            raise InputError(f"text: must be text or bytes, got {show(text)}")
        if not isinstance(overrides, list | tuple) or not all(isinstance(entry, str) for entry in overrides):
            raise InputError(f"overrides: must be a list, each KEY=VALUE, got {show(overrides)}")
        node, faults = yaml.read_leniently(text, path)
        if node.content is None and not faults:
            raise InputError(Fault("is empty; a scenario has name, network, data and learning", path=path))
        other_sweep = any(entry.lstrip().startswith("sweep") for entry in overrides)
        if isinstance(node.content, dict):
            other_sweep = other_sweep or "extends" in node.content
            for change in (extended, partial(_override, overrides=overrides)):
                node, wrong = change(node)
                faults += wrong
        return _build(node, confirm_cells, faults, other_sweep)

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any], path: str = "", *, confirm_cells: bool = False) -> Scenario:
        """Make a scenario from dictionaries, lists and scalars as YAML would give them; like `load`."""
        try:
            node, faults = extended(placed(explicit(tree, given=True), Place(path)))
        except RecursionError:
            raise InputError(
                Fault("too many mappings and lists stand inside each other", path=path)
            ) from None
        return _build(node, confirm_cells, faults)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.to_yaml())}</pre>"

    def validation_study(self) -> Scenario:
        """The study whose results choose the value of the tuned key, which it sweeps last."""
        return _build(validation_node(self), True, [], other_sweep=True)

    def with_chosen(self, values: Sequence[Any] | None) -> Scenario:
        """The same scenario with the values of the tuned key, one for each cell, or with none chosen yet."""
        return _build(put(self.nodes(), ("tune", "chosen"), placed(values)), True, [])

    def identity(self) -> str:
        """Hash what a run folder is bound to: all but replicas, engine and the values of the sweep."""
        return identity(self)


#: One combination of swept values.
Cell: TypeAlias = GridCell[Scenario]


def _build(node: Node, confirm_cells: bool, faults: list[Fault], other_sweep: bool = False) -> Scenario:
    """Check everything, and make the values of the sweep explicit.

    `faults` are those of reading; `other_sweep` says that the sweep may be another than that of the file with labels.
    """
    unread = {(fault.line, fault.column) for fault in faults if fault.line}
    axes, wrong = read_sweep(node.child("sweep"))
    faults += wrong
    excess = too_many(axes, place_of(node, ("sweep",), key=True))
    if excess is not None and not confirm_cells:
        faults.append(excess)
    try:
        node = _completed(node, [*axes, *tuned_axis(node)])
        base = validated(Scenario, node)
    except InputError as error:
        faults += (fault for fault in error.faults if (fault.line, fault.column) not in unread)
    # Checking so many values one by one would take longer than anyone waits to be told that they are too many.
    explicit_values = {} if excess is not None and not confirm_cells else _values_of(node, axes, faults)
    if faults:
        raise InputError(*ordered(faults + further_faults(Scenario, node, axes)))
    sweep = {key: _explicit_axis(key, entry, explicit_values) for key, entry in base.sweep.items()}
    scenario = base.model_copy(update={"sweep": sweep})
    if base.tune is not None:
        faults += map(base.locate, faults_of_key(base.tune, swept_keys(axes)))
    faults += map(base.locate, figure_faults(scenario.figure, scenario.record, swept_keys(axes)))
    try:
        if excess is None:
            grid = cells(scenario)
            columns = {key: [cell.swept[key] for cell in grid] for key in grid[0].swept}
            zipped = list(scenario.sweep.get("zip", ()))
            wrong = label_faults(scenario.nodes(), scenario.labels, columns, zipped)
            if other_sweep or not columns:
                # Words of what is not swept now are no mistake, and are of no use.
                left = {fault.key for fault in wrong}
                kept = {key: words for key, words in scenario.labels.items() if f"labels.{key}" not in left}
                scenario = scenario.model_copy(update={"labels": kept}) if left else scenario
            else:
                faults += wrong
        if scenario.tune is not None and not faults:
            scenario.validation_study()
    except InputError as error:
        faults += error.faults
    if faults:
        raise InputError(*ordered(faults + further_faults(Scenario, node, axes)))
    return scenario


def _explicit_axis(key: str, entry: Any, values: Mapping[str, list[Any]]) -> Any:
    """One entry of the sweep with every value explicit; a search keeps what it was drawn from."""
    if key == "zip":
        return {inner: values[inner] for inner in entry}
    if key in METHODS:
        return {"seed": 0} | entry | {"values": {inner: values[inner] for inner in entry["keys"]}}
    return values[key]


def _completed(node: Node, axes: list[Axis]) -> Node:
    """Give a swept key that is left out of its section the first of its values."""
    for key, values, place in chain.from_iterable(axes):
        if isinstance(node.content, dict) and find(node, steps_of(key)) is None:
            node = with_value(node, key, values[0], place)
    return node


def _values_of(node: Node, axes: list[Axis], faults: list[Fault]) -> dict[str, list[Any]]:
    """Check each value of the sweep by itself, and make it explicit; what is wrong is added to the faults."""
    values_of: dict[str, list[Any]] = {}
    if not isinstance(node.content, dict):
        return values_of
    bare, cell = node.without("sweep"), None
    for key, values, place in chain.from_iterable(axes):
        values_of[key] = []
        for value in values:
            try:
                cell = validated(Scenario, with_value(bare, key, value, place), cell)
                values_of[key].append(explicit(value_at(cell, steps_of(key))))
            except InputError as error:
                faults += error.faults
            except (AttributeError, LookupError, ValueError):
                values_of[key].append(plain(value))
    return values_of


def _override(node: Node, overrides: Sequence[str]) -> tuple[Node, list[Fault]]:
    """Put overrides into a scenario as it was written.

    Parameters
    ----------
    node : Node
        The root.
    overrides : sequence of str
        ``KEY=VALUE``, in order: a dotted key and a YAML value. Keys are not checked here; when the scenario
        is, what is wrong with one has the place ``--set KEY``.

    Returns
    -------
    node : Node
    faults : list of Fault
        Overrides that are not of this form, or would have no effect since the sweep sets their keys in every cell;
        they are left out.
    """
    faults, given = list[Fault](), node
    for text in overrides:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not all(split_key(key)):
            faults.append(Fault(f"must be KEY=VALUE with a dotted key, got {text!r}", path="--set"))
            continue
        place = Place(f"--set {key}")
        try:
            node = _with_override(node, key, placed(plain(yaml.read(value, place.path)), place))
        except InputError as error:
            faults += [Fault(fault.message, key, place.path) for fault in error.faults]
    return words_of_values(given, node), faults


def _with_override(node: Node, key: str, entry: Node) -> Node:
    """Put one override into a scenario as it was written."""
    axes, _ = read_sweep(node.child("sweep"))
    tuned = next((t for t in swept_keys(tuned_axis(node)) if f"{key}.".startswith(f"{t}.")), None)
    if tuned is not None:
        raise InputError("is tuned, so this value would be used in no cell; give --set tune=null before it")
    swept = next((s for s in swept_keys(axes) if f"{key}.".startswith(f"{s}.")), None)
    if swept is not None:
        cure = f"give --set 'sweep.{swept}=[...]' instead, or --set 'sweep={{}}' as well, before it"
        raise InputError(f"is swept, so this value would be used in no cell; {cure}")
    seal = find(node, (*split_key(key)[:-1], "sha256"))
    is_set = seal is not None and seal.place.path.startswith("--set ")
    return put(node, split_key(key), entry) if is_set else with_value(node, key, entry)
