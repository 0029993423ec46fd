"""Further faults of a scenario with errors: what can be checked between its valid parts is reported too.

Valid parts are put in their places; invalid ones are missing there. A rule that reads a missing part is skipped.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, cast, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from p2psim.core.errors import Fault, InputError, MissingSourceError
from p2psim.core.nodes import Node
from p2psim.core.part_types import AnyOf
from p2psim.scenario.fields import ScenarioFields, alone, attempted, is_whole, located
from p2psim.scenario.figure import figure_faults
from p2psim.scenario.record import with_metrics
from p2psim.scenario.sweep import Axis, steps_of, swept_keys, with_value

#: The first part of keys of what the data depends on.
_OF_DATA = ("data", "network", "seed")


def further_faults(model: type[ScenarioFields], node: Node, axes: Sequence[Axis]) -> list[Fault]:
    """Faults between those parts of a scenario that are well formed; of a sweep the first cell is judged.

    Parameters
    ----------
    model : type of ScenarioFields
    node : Node
        The scenario as it was written.
    axes : sequence of Axis
        Its sweep.
    """
    from p2psim.scenario.rules import check_consistency

    swept = swept_keys(axes)
    if not isinstance(node.content, dict):
        return []
    node = node.without("sweep")
    try:
        for key, values, place in chain.from_iterable(axes):
            node = with_value(node, key, values[0], place)
    except InputError:
        return []
    _, tree, context = attempted(model, node)
    partly = cast(ScenarioFields, well_formed(model, tree, context))
    try:
        vars(partly)["record"] = with_metrics(partly)
    except AttributeError:
        vars(partly).pop("record", None)
    faults = check_consistency(partly)
    with suppress(AttributeError):
        faults += figure_faults(partly.figure, partly.record, swept)
    if not any(steps_of(key)[0] in _OF_DATA for key in swept):
        faults += faults_of_files(partly)
    return [located(fault, node) for fault in faults]


def well_formed(model: type[BaseModel], tree: Any, context: dict[str, Any]) -> BaseModel:
    """Validate a mapping; where something is wrong, fields of the model are missing, and reading one is an error."""
    entries = {"kind": tree} if isinstance(tree, str) else tree if isinstance(tree, Mapping) else {}
    try:
        return model.model_validate(entries, context=context)
    except ValidationError:
        right: dict[str, Any] = {}
    wrong = []
    for name in model.model_fields:
        entry = {name: entries[name]} if name in entries else {}
        try:
            right[name] = getattr(alone(model, name).model_validate(entry, context=context), name)
        except ValidationError:
            wrong.append(name)
    part = model.model_construct(entries.keys() & right.keys(), **right)
    for name in wrong:
        vars(part).pop(name, None)
        if (kind := _chosen(model.model_fields[name], entries.get(name))) is not None:
            vars(part)[name] = well_formed(kind, entries[name], context)
    return part


def _chosen(field: FieldInfo, entry: Any) -> type[BaseModel] | None:
    """The model that a mapping is meant to be: the only one, or that of its kind."""
    kind = entry.get("kind") if isinstance(entry, Mapping) else entry
    for metadata in field.metadata:
        if isinstance(metadata, AnyOf):
            return metadata.named(kind)
    annotation = field.annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation if isinstance(entry, Mapping) else None
    for choice in get_args(annotation):
        kind_field = getattr(choice, "model_fields", {}).get("kind")
        names = (kind_field.default, *get_args(kind_field.annotation)) if kind_field is not None else ()
        if isinstance(kind, str) and kind in names:
            return cast("type[BaseModel]", choice)
    return None


def faults_of_files(partly: ScenarioFields) -> Iterator[Fault]:
    """What is wrong with files that the data and the topology name."""
    from p2psim.data.prepare import prepare
    from p2psim.network.graph import TopologyInputs
    from p2psim.network.topologies import draw_links

    data: Any = getattr(partly, "data", None)
    topology: Any = getattr(getattr(partly, "network", None), "topology", None)
    known = bool(topology) and is_whole(topology)
    is_file = known and topology.is_file

    def read_records() -> None:
        agents, names = None, None
        with suppress(InputError):
            agents, names = topology.size_and_names() if known else (None, None)
        prepared = prepare(data, 0, 0, "", None if data.names_owners else agents, names)
        if agents is not None:
            topology.check_owners(prepared.labels)
        if is_file and agents is not None:
            draw_links(topology, TopologyInputs(labels=prepared.labels))

    def read_graph() -> None:
        # Whether nodes are called as owners are is another question.
        draw_links(topology.by_order(), TopologyInputs())

    holds_files = data and is_whole(data) and not data.source.generated
    for attempt in [read_graph] * is_file + [read_records] * bool(holds_files):
        try:
            attempt()
        except MissingSourceError as error:
            yield from error.faults
        except InputError as error:
            # What else is wrong may be for want of a number of agents.
            yield from error.faults if known else ()
        except (ArithmeticError, ValueError, OSError, MemoryError):
            pass  # said when nothing else is wrong
