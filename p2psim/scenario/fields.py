"""What a scenario says: its sections, their validation with places, and its resolved form.

Rules, cells and figures are written against `ScenarioFields`; `p2psim.scenario.model` adds reading.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    create_model,
)
from pydantic_core import InitErrorDetails

from p2psim.core.errors import Fault, InputError
from p2psim.core.faults import faults_of, make_whole
from p2psim.core.files import DataPath
from p2psim.core.nodes import Node, Place, at, place_of, placed, plain
from p2psim.core.options import OneOf, Options, Whole
from p2psim.core.randomness import PURPOSES
from p2psim.core.registry import failures, load_installed
from p2psim.data.section import DataSection
from p2psim.learning.section import LearningSection
from p2psim.network.members import AgentTable
from p2psim.network.section import NetworkSection
from p2psim.privacy.mechanisms import NoNoise
from p2psim.privacy.section import PrivacySection
from p2psim.scenario import yaml
from p2psim.scenario.figure import Figures, Labels
from p2psim.scenario.notices import PATTERN, checked_name
from p2psim.scenario.record import RecordSection, Replicas, Tune, with_metrics
from p2psim.scenario.sweep import split_key


class BudgetTable(AgentTable):
    """Budgets from a table with one agent per line."""

    column: ClassVar[str] = "epsilon"
    key: ClassVar[str] = "privacy.epsilon"
    allowed: ClassVar[str] = "a positive number, or inf"

    path: DataPath = Field(description="a CSV file with columns agent, epsilon")

    def _number(self, text: str, place: str) -> float:
        return math.inf if text.strip() in ("inf", ".inf") else super()._number(text, place)


def with_budgets(privacy: Any, info: ValidationInfo) -> Any:
    """Put the numbers of a table in the place of its path, so that a resolved scenario has them.

    Raises
    ------
    ValidationError
        If the table cannot be read.
    """
    epsilon = privacy.get("epsilon") if isinstance(privacy, Mapping) else None
    # An agent may be called path, but its budget is a number.
    if not isinstance(epsilon, Mapping) or not isinstance(epsilon.get("path"), str):
        return privacy
    try:
        table = BudgetTable.model_validate(dict(epsilon), context=info.context).read()
    except InputError as error:
        faults: Sequence[Fault] = error.faults
    except ValidationError as error:
        faults = [
            replace(fault, key=f"{BudgetTable.key}.{fault.key}")
            for fault in faults_of(error, BudgetTable, placed(dict(epsilon)))
        ]
    else:
        return {**privacy, "epsilon": {name: value for name, (value, _) in table.items()}}
    raise ValidationError.from_exception_data("privacy", [_at_its_key(fault, epsilon) for fault in faults])


def _at_its_key(fault: Fault, epsilon: Mapping[str, Any]) -> InitErrorDetails:
    """A fault of the table as pydantic says one of the mapping, in which its key stands."""
    key = fault.key.removeprefix(f"{BudgetTable.key}.")
    # "mapping" is the choice that mappings are checked by.
    loc, wrong = ("epsilon", "mapping", key), ValueError(fault.message)
    return {"type": "value_error", "loc": loc, "input": epsilon.get(key), "ctx": {"error": wrong}}


Name = Annotated[str, AfterValidator(checked_name), Field(json_schema_extra={"pattern": PATTERN})]

_HEADER = "# A resolved p2psim scenario: every default is explicit.\n"


@dataclass(frozen=True)
class _Origin:
    """Where a scenario was written. No part of what it says: two of them are always equal."""

    node: Node | None = field(default=None, compare=False)

    def __reduce__(self) -> tuple[type[_Origin], tuple[()]]:
        """Stay behind: only the process that read the file speaks of places in it."""
        return _Origin, ()


class ScenarioFields(Options):
    """The sections of a scenario, without the ways of reading one.

    Choices
    -------
    independent: clocks
        when agents wake
    independent: peers
        which neighbour an agent turns to
    independent: latency
        how long messages take
    independent: loss
        which messages are lost
    independent: link-state
        when links are in their bad state, where losses come in bursts
    independent: capture
        which transmissions survive those that begin during them
    independent: backoff
        how long senders that heard another wait
    independent: retransmit
        how long senders wait before they try again
    independent: acknowledgement
        which acknowledgements are lost
    independent: effects
        what channel effects draw
    independent: response
        how long owners take to answer a query
    independent: service
        how long the learner is busy with an answer
    independent: compute
        how long agents compute an update
    independent: availability
        when agents are there
    independent: rejoin
        whom an agent that comes back asks for a model
    independent: topology
        random graphs
    independent: data
        generated, shuffled and divided records
    independent: noise
        noise of releases
    independent: batches
        which records take part in a release
    independent: start
        noise of models that agents start from
    independent: baselines
        random numbers of the models that results are compared with
    """

    unsaid = ("tune",)

    name: Name = Field(description="name of the study, and of its run folder")
    seed: Whole = Field(0, description="every random number follows from it")
    replicas: Replicas = Field(
        1,
        description="repetitions of each cell, with other random numbers; or until an interval is narrow enough",
    )
    network: NetworkSection = Field(description="which agents wake, which hear which, and when")
    data: DataSection = Field(description="what each agent holds")
    learning: LearningSection = Field(description="what is computed")
    privacy: Annotated[PrivacySection, BeforeValidator(with_budgets)] = Field(
        PrivacySection(mechanism=NoNoise()),
        description="what is released at which cost; budgets may come from a CSV file with columns agent, epsilon, as "
        "epsilon: {path: budgets.csv}",
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
    tune: Tune | None = Field(
        None, description="a key whose value each cell chooses by a metric on validation problems"
    )
    figure: Figures = Field([], description="figures that p2psim plot draws by default, one or a list")
    labels: Labels = Field(
        {},
        description="words that figures show: of a swept key; of a value, under KEY=VALUE (a part by its kind); a list "
        "under a key, or under zip, gives words to all values in their order",
    )
    fitted: dict[str, Any] | None = Field(
        None,
        description="numbers that the preparation found, in a resolved scenario; for readers, never used",
    )

    _origin: _Origin = PrivateAttr(default_factory=_Origin)

    def resolved(self) -> dict[str, Any]:
        """Return all that the scenario says as plain values: every default explicit, in the models' order.

        Of alternatives, such as the shapes of a distribution, only the one that was given.
        """
        tree: dict[str, Any] = explicit(self, digests=True)
        if self.fitted is None:
            del tree["fitted"]
        return tree

    def to_yaml(self) -> str:
        """Write the scenario with every default explicit. Reading it gives an equal scenario."""
        return _HEADER + yaml.write(self.resolved())

    def locate(self, fault: Fault) -> Fault:
        """Add to a fault that has a key the place where the key's value was written, if it is known."""
        node = self._origin.node
        return fault if node is None else located(fault, node)

    def nodes(self) -> Node:
        """Return the resolved scenario as nodes, each with the place that it was written at."""
        return placed(explicit(self), origin=self._origin.node)


AnyScenario = TypeVar("AnyScenario", bound=ScenarioFields)
_Model = TypeVar("_Model", bound=BaseModel)


def alike(one: BaseModel | None, other: BaseModel) -> set[str]:
    """Names of what two scenarios, or parts, have in common; what is inside is the same where it is one object."""
    if one is None:
        return set()
    values = vars(one)
    return {
        name
        for name, value in vars(other).items()
        if value is values[name] or (not isinstance(value, BaseModel) and value == values[name])
    }


def located(fault: Fault, node: Node) -> Fault:
    """Add to a fault that has a key the place where the key's value stands in a tree."""
    if fault.line or fault.path:
        return fault
    place = place_of(node, split_key(fault.key)) if fault.key else Place(node.place.path)
    return replace(fault, path=place.path, line=place.line, column=place.column)


@cache
def _fields_of(kind: type[BaseModel]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of a model's fields, and of those that say nothing where they are None."""
    names = tuple(kind.model_fields)
    return names, names if issubclass(kind, OneOf) else getattr(kind, "unsaid", ())


def said(part: BaseModel) -> list[tuple[str, Any]]:
    """Keys of a part with their values, but for those that say nothing."""
    names, unsaid = _fields_of(type(part))
    entries = [(name, getattr(part, name)) for name in names]
    return [(name, entry) for name, entry in entries if entry is not None or name not in unsaid]


_SCALARS = {type(None), str, bool, int, float}


def explicit(value: Any, *, given: bool = False, digests: bool = False) -> Any:
    """Turn models into dictionaries, tuples into lists, and NumPy's scalars into Python's.

    Parameters
    ----------
    value
        A model, or anything in one.
    given : bool
        Whether to leave out keys that were not given, which the scenario decides then; else every default is written.
    digests : bool
        Whether what only Python can hold, such as arrays, is replaced by its digest, as in a file.
    """
    if type(value) in _SCALARS:
        return value
    deeper = partial(explicit, given=given, digests=digests)
    if isinstance(value, BaseModel):
        return {
            name: deeper(entry)
            for name, entry in said(value)
            if not given or name == "kind" or name in value.model_fields_set
        }
    if isinstance(value, Mapping):
        return {str(key): deeper(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [deeper(entry) for entry in value]
    if isinstance(value, np.generic):
        return value.item()
    return str(value.digest) if digests and not isinstance(value, str | int | float) else value


def validated(model: type[AnyScenario], node: Node, like: AnyScenario | None = None) -> AnyScenario:
    """Check the structure of a scenario, section by section, but not its sweep.

    Sections, and parts of them, that were written in the same place as those of another scenario, `like`, are taken
    from there.

    Raises
    ------
    InputError
        With all faults and their places.
    """
    if not isinstance(node.content, dict):
        raise InputError(at(node.place, "", "must be a mapping with name, network, data and learning"))
    scenario: AnyScenario | ValidationError | None = None if like is None else _changed(node, like)
    if scenario is None:
        scenario, _, _ = attempted(model, node)
    if isinstance(scenario, ValidationError):
        broken = failures() if _names_a_stranger(scenario) else ()
        raise InputError(*faults_of(scenario, model, node), *broken) from None
    record = with_metrics(scenario)
    if record is not scenario.record:
        scenario = scenario.model_copy(update={"record": record})
    scenario._origin = _Origin(node)
    return scenario


@cache
def alone(model: type[BaseModel], name: str) -> type[Options]:
    """A model of one field of another."""
    field = model.model_fields[name]
    definition: dict[str, Any] = {name: (field.annotation, field)}
    return create_model("Alone", __base__=Options, **definition)


def _changed(node: Node, like: AnyScenario) -> AnyScenario | None:
    """Another scenario with the sections that differ; None where there are other ones, or something is wrong."""
    model, origin = type(like), like._origin.node
    if origin is None or node.content.keys() != origin.content.keys():
        return None
    now, before, update = node.content, origin.content, dict[str, Any]()
    names = [name for name, entry in now.items() if before[name] is not entry]
    if "record" not in now or now["record"].child("metrics") is None:
        # What is recorded follows from the other sections where the file does not say it.
        names = list(dict.fromkeys([*names, "record"]))
    for name in names:
        field, known = alone(model, name), getattr(like, name)
        old, new = (_entries(tree.get(name)) for tree in (before, now))
        same = {key: getattr(known, key, None) for key, entry in new.items() if old.get(key) is entry}
        parts = {key: part for key, part in same.items() if isinstance(part, BaseModel)}
        inside = {key: parts[key] if key in parts else plain(entry) for key, entry in new.items()}
        tree = {name: inside or plain(now[name])} if name in now else {}
        checked = _checked(field, tree, _context(node))
        if isinstance(checked, ValidationError):
            return None
        update[name] = getattr(checked, name)
    return like.model_copy(update=update)


def _entries(node: Node | None) -> dict[str, Node]:
    return node.content if node is not None and isinstance(node.content, dict) else {}


def _context(node: Node) -> dict[str, Any]:
    """Relative paths of data files start from the scenario's folder, or from where a program runs that composes one."""
    return {"folder": _folder_of(node.place.path, os.getcwd())}


@cache
def _folder_of(path: str, current: str) -> str:
    return str(Path(current, path).parent if path else Path(current))


def attempted(
    model: type[AnyScenario], node: Node
) -> tuple[AnyScenario | ValidationError, Any, dict[str, Any]]:
    """Return a scenario, or what is wrong with it; and the values and the context that were validated."""
    tree, context = plain(node), _context(node)
    return _checked(model, tree, context), tree, context


def _checked(model: type[_Model], tree: Any, context: dict[str, Any]) -> _Model | ValidationError:
    """Validate; where a whole number is expected, ``1e2`` is one, as it is in the JSON Schema."""
    while True:
        try:
            return model.model_validate(tree, context=context)
        except ValidationError as error:
            if make_whole(tree, error, model) or (_names_a_stranger(error) and load_installed()):
                continue
            return error


def _names_a_stranger(error: ValidationError) -> bool:
    """Whether a kind or name is unknown, which an installed package may declare."""
    kinds = (detail["type"] for detail in error.errors(include_url=False))
    return any(kind in ("union_tag_invalid", "literal_error") for kind in kinds)


def is_whole(part: object) -> bool:
    """Whether no field of a model is missing, or of one inside it."""
    if not isinstance(part, BaseModel):
        return True
    return type(part).model_fields.keys() <= vars(part).keys() and all(map(is_whole, vars(part).values()))
