"""A scenario: everything that a person decides about a study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import AfterValidator, BaseModel, Field, PrivateAttr, ValidationError

from p2psim.core.errors import Fault, InputError
from p2psim.core.interrupts import interrupted_afterwards
from p2psim.core.options import OneOf, Options, Whole
from p2psim.core.parts import failures, load_installed
from p2psim.core.randomness import PURPOSES
from p2psim.core.registry import AnyOf, on_change
from p2psim.data.section import DataSection
from p2psim.learning.section import STARS, LearningSection
from p2psim.network.section import NetworkSection
from p2psim.privacy.mechanisms import NoNoise
from p2psim.privacy.section import PrivacySection
from p2psim.scenario import overrides as command_line
from p2psim.scenario import yaml
from p2psim.scenario.faults import faults_of, make_whole, ordered, path_of, show
from p2psim.scenario.figure import Figures, figure_faults
from p2psim.scenario.nodes import Node, Place, at, find, from_python, place_of, placed, plain
from p2psim.scenario.notices import PATTERN, checked_name
from p2psim.scenario.record import RecordSection, Replicas
from p2psim.scenario.sweep import METHODS, Axis, read_sweep, steps_of, too_many, with_value

Name = Annotated[str, AfterValidator(checked_name), Field(json_schema_extra={"pattern": PATTERN})]

_HEADER = "# A resolved p2psim scenario: every default is explicit.\n"


@dataclass(frozen=True)
class _Origin:
    """Where a scenario was written. No part of what it says: two of them are always equal."""

    node: Node | None = field(default=None, compare=False)

    def __reduce__(self) -> tuple[type[_Origin], tuple[()]]:
        """Stay behind: only the process that read the file speaks of places in it."""
        return _Origin, ()


class Scenario(Options):
    """A study: what is simulated, how often, and what differs between its cells."""

    name: Name = Field(description="name of the study, and of its run folder")
    seed: Whole = Field(0, description="every random number follows from it")
    replicas: Replicas = Field(
        1,
        description="repetitions of each cell, with other random numbers; or until an interval is narrow enough",
    )
    network: NetworkSection = Field(description="who wakes, who hears whom, and when")
    data: DataSection = Field(description="what each agent holds")
    learning: LearningSection = Field(description="what is computed")
    privacy: PrivacySection = Field(
        PrivacySection(mechanism=NoNoise()), description="what is released at which cost"
    )
    record: RecordSection = Field(RecordSection(), description="what is kept")
    independent: list[Literal[PURPOSES]] = Field(  # type: ignore[valid-type]
        [],
        description="random draws that cells do not share; by default they share all (common random numbers)",
    )
    sweep: dict[str, Any] = Field(
        {},
        description="values of dotted keys, of which each combination is a cell; the last key is fastest; "
        "keys under zip advance together; random, sobol and halton draw points in ranges",
    )
    figure: Figures = Field([], description="figures that p2psim plot draws by default, one or a list")
    fitted: dict[str, Any] | None = Field(
        None, description="numbers that the preparation found, in a resolved scenario; compared, never used"
    )

    _origin: _Origin = PrivateAttr(default_factory=_Origin)

    @classmethod
    def load(
        cls,
        path: str | Path,
        overrides: Sequence[str] = (),
        *,
        confirm_cells: bool = False,
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
        cls,
        text: str | bytes,
        path: str = "",
        overrides: Sequence[str] = (),
        *,
        confirm_cells: bool = False,
    ) -> Scenario:
        """Read a scenario from YAML text; otherwise like `load`. `path` is named in errors."""
        if not isinstance(text, str | bytes):
            raise InputError(f"text: must be text or bytes, got {show(text)}")
        if not isinstance(overrides, list | tuple) or not all(isinstance(one, str) for one in overrides):
            raise InputError(f"overrides: must be a list, each KEY=VALUE, got {show(overrides)}")
        node, faults = yaml.read_leniently(text, path)
        if node.content is None and not faults:
            raise InputError(Fault("is empty; a scenario has name, network, data and learning", path=path))
        if isinstance(node.content, dict):
            node, wrong = command_line.override(node, overrides)
            faults += wrong
        return _build(node, confirm_cells, faults)

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any], path: str = "", *, confirm_cells: bool = False) -> Scenario:
        """Make a scenario from dictionaries, lists and scalars as YAML would give them; like `load`."""
        try:
            node = from_python(explicit(tree), Place(path))
        except RecursionError:
            raise InputError(
                Fault("too many mappings and lists stand inside each other", path=path)
            ) from None
        return _build(node, confirm_cells, [])

    def resolved(self) -> dict[str, Any]:
        """Return all that the scenario says as plain values: every default explicit, in the models' order.

        Of alternatives, such as the shapes of a distribution, only the one that was given.
        """
        tree: dict[str, Any] = written(self)
        if self.fitted is None:
            del tree["fitted"]
        return tree

    def to_yaml(self) -> str:
        """Write the scenario with every default explicit. Reading it gives an equal scenario."""
        return _HEADER + yaml.write(self.resolved())

    def identity(self) -> str:
        """Hash what a run folder is bound to: all but replicas, engine and the values of the sweep."""
        from p2psim.scenario.cells import identity

        return identity(self)

    def locate(self, fault: Fault) -> Fault:
        """Add to a fault that has a key the place where the key's value was written, if it is known."""
        node = self._origin.node
        return fault if node is None else located(fault, node)

    def nodes(self) -> Node:
        """Return the resolved scenario as nodes, each with the place that it was written at."""
        return placed(explicit(self), self._origin.node, Place())


def _rebuild() -> None:
    """Build the schemas of the scenario anew, with all parts that are registered now."""
    with interrupted_afterwards():
        for model in _models(Scenario, {}):
            model.model_rebuild(force=True)


def _models(model: type[BaseModel], seen: dict[type[BaseModel], None]) -> dict[type[BaseModel], None]:
    """All models that a model's schema contains, those inside before those around them, itself last."""

    def walk(annotation: Any) -> None:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel) and annotation not in seen:
            _models(annotation, seen)
        for inner in annotation.parts if isinstance(annotation, AnyOf) else get_args(annotation):
            walk(inner)

    for info in model.model_fields.values():
        for annotation in (info.annotation, *info.metadata):
            walk(annotation)
    seen[model] = None
    return seen


on_change(_rebuild)


def located(fault: Fault, node: Node) -> Fault:
    """Add to a fault that has a key the place where the key's value stands in a tree."""
    if fault.line or fault.path:
        return fault
    place = place_of(node, command_line.split(fault.key)) if fault.key else Place(node.place.path)
    return replace(fault, path=place.path, line=place.line, column=place.column)


def explicit(value: Any) -> Any:
    """Turn models into dictionaries with every default, tuples into lists, NumPy's scalars into Python's."""
    return _explicit(value, lambda leaf: leaf.item() if isinstance(leaf, np.generic) else leaf)


def written(value: Any) -> Any:
    """The same of anything in a scenario as it is written to a file."""
    return _explicit(value, _written_leaf)


def _written_leaf(leaf: Any) -> Any:
    """Replace what only Python can hold, such as arrays, by its digest."""
    return leaf if isinstance(leaf, float) else str(leaf.digest)


@cache
def _fields_of(kind: type[BaseModel]) -> tuple[tuple[str, ...], bool]:
    """Names of a model's fields, and whether those that are None say nothing."""
    return tuple(kind.model_fields), issubclass(kind, OneOf)


def _explicit(value: Any, leaf: Callable[[Any], Any]) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, BaseModel):
        names, skips = _fields_of(type(value))
        entries = ((name, getattr(value, name)) for name in names)
        return {name: _explicit(entry, leaf) for name, entry in entries if not skips or entry is not None}
    if isinstance(value, Mapping):
        return {str(key): _explicit(entry, leaf) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_explicit(entry, leaf) for entry in value]
    return leaf(value)


def validated(node: Node) -> Scenario:
    """Check the structure of a scenario, section by section, but not its sweep.

    Raises
    ------
    InputError
        With all faults and their places.
    """
    if not isinstance(node.content, dict):
        raise InputError(at(node.place, "", "must be a mapping with name, network, data and learning"))
    scenario, _, _ = attempted(node)
    if isinstance(scenario, ValidationError):
        broken = failures() if _names_a_stranger(scenario) else ()
        raise InputError(*faults_of(scenario, Scenario, node), *broken) from None
    record = with_metrics(scenario)
    if record is not scenario.record:
        scenario = scenario.model_copy(update={"record": record})
    scenario._origin = _Origin(node)
    return scenario


def attempted(node: Node) -> tuple[Scenario | ValidationError, Any, dict[str, Any]]:
    """Return a scenario, or what is wrong with it; and the values and the context that were validated.

    Where a whole number is expected, ``1e2`` is one, as it is in the JSON Schema.
    """
    # Relative paths of data files start from the scenario's folder.
    folder = str(Path(node.place.path).absolute().parent) if node.place.path else ""
    tree, context = plain(node), {"folder": folder}
    while True:
        try:
            return Scenario.model_validate(tree, context=context), tree, context
        except ValidationError as error:
            if make_whole(tree, error, Scenario) or (_names_a_stranger(error) and load_installed()):
                continue
            return error, tree, context


def _names_a_stranger(error: ValidationError) -> bool:
    """Whether a kind or name is unknown, which an installed package may declare."""
    return any(
        detail["type"] in ("union_tag_invalid", "literal_error") for detail in error.errors(include_url=False)
    )


def with_metrics(scenario: Scenario) -> RecordSection:
    """What is recorded, also where the file does not say it: of models on a graph other metrics than of a star."""
    record = scenario.record
    if "metrics" in record.model_fields_set or scenario.learning.algorithm.kind in STARS:
        return record
    tested = scenario.data.test_fraction is not None or getattr(scenario.data.source, "test_points", 0) > 0
    test = ["test_accuracy" if scenario.learning.loss.needs_classes else "test_rmse"] if tested else []
    return record.model_copy(update={"metrics": ["objective_gap", *test]})


def _build(node: Node, confirm_cells: bool, faults: list[Fault]) -> Scenario:
    """Check everything, and make the values of the sweep explicit; `faults` are those of reading."""
    from p2psim.scenario.cells import cells
    from p2psim.scenario.partly import further_faults

    unread = {(fault.line, fault.column) for fault in faults if fault.line}
    axes, wrong = read_sweep(node.child("sweep"))
    faults += wrong
    excess = too_many(axes, place_of(node, ("sweep",), key=True))
    if excess is not None and not confirm_cells:
        faults.append(excess)
    try:
        node = _completed(node, axes)
        base = validated(node)
    except InputError as error:
        faults += (fault for fault in error.faults if (fault.line, fault.column) not in unread)
    # Checking so many values one by one would take longer than anyone waits to be told that they are too many.
    explicit_values = {} if excess is not None and not confirm_cells else _values_of(node, axes, faults)
    if faults:
        raise InputError(*ordered(faults + further_faults(node, axes)))
    sweep = {key: _explicit_axis(key, entry, explicit_values) for key, entry in base.sweep.items()}
    scenario = base.model_copy(update={"sweep": sweep})
    faults += map(base.locate, figure_faults(scenario, [key for axis in axes for key in axis.keys]))
    if excess is None:
        try:
            cells(scenario)
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*ordered(faults + further_faults(node, axes)))
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
    for axis in axes:
        for key, values, place in zip(axis.keys, axis.values, axis.places, strict=True):
            if isinstance(node.content, dict) and find(node, steps_of(key)) is None:
                node = with_value(node, key, values[0], place)
    return node


def _values_of(node: Node, axes: list[Axis], faults: list[Fault]) -> dict[str, list[Any]]:
    """Check each value of the sweep by itself, and make it explicit; what is wrong is added to the faults."""
    from p2psim.scenario.cells import value_at

    found: dict[str, list[Any]] = {}
    if not isinstance(node.content, dict):
        return found
    bare = Node({key: entry for key, entry in node.content.items() if key != "sweep"}, node.place, node.keys)
    for axis in axes:
        for key, values, place in zip(axis.keys, axis.values, axis.places, strict=True):
            found[key] = []
            for value in values:
                try:
                    cell = validated(with_value(bare, key, value, place))
                except InputError as error:
                    faults += error.faults
                    continue
                try:
                    found[key].append(explicit(value_at(cell, steps_of(key))))
                except (AttributeError, LookupError, ValueError):
                    found[key].append(plain(value))
    return found
