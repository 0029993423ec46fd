"""What every part of a scenario is made of: frozen, strict, and closed to unknown keys.

A *part* is one choice of a component together with its keys: ``{kind: poll, interval: 2.0}``. Each
component declares its own part beside its code; the package that owns it lists where each is, by its name,
so that adding a component takes one new file and one line.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar, get_args

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)

from p2psim.core.agent_names import AgentNames, some
from p2psim.core.errors import MeaningError, OptionError
from p2psim.core.faults import faults_of
from p2psim.core.nodes import placed
from p2psim.core.printing import exact
from p2psim.core.process import interrupted_afterwards

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)


class Checked(ModelMetaclass):
    """Has a part that is built in Python report its keys and values as a part in a file does.

    Validation (``model_validate``, and parts inside of others) does not come here: its errors are pydantic's.
    """

    def __call__(self, *args: Any, **keys: Any) -> Any:
        """Build a part."""
        try:
            return super().__call__(*args, **keys)
        except ValidationError as error:
            raise OptionError(*faults_of(error, self, placed(keys))) from None  # type: ignore[arg-type]


class Options(BaseModel, metaclass=Checked):
    """Base of all parts: immutable, no coercion between types, no unknown keys, no NaN.

    Building one raises `p2psim.core.errors.OptionError`, an `InputError` and a ``ValueError``, with all that is wrong.
    """

    # Schemas are built when they are first wanted: few are, of all parts that there are.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        validate_default=False,
        defer_build=True,
    )

    #: What a message says is expected where a part of this class is; empty to list its keys.
    in_words: ClassVar[str] = ""
    #: Keys that say nothing where they are None: they are then left out of resolved scenarios.
    unsaid: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def model_rebuild(cls, **keys: Any) -> bool | None:
        """Build the schema, if it is not; pydantic would make another error of an interrupt meanwhile."""
        with interrupted_afterwards():
            return super().model_rebuild(**keys)


class OneOf(Options):
    """A part that wants exactly one of some keys; the others are null, which says nothing.

    One with other words for it has a ``_exactly_one`` of its own.
    """

    #: Names of these keys.
    alternatives: ClassVar[tuple[str, ...]]

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if sum(getattr(self, name) is not None for name in self.alternatives) != 1:
            raise ValueError(f"give exactly one of {' and '.join(self.alternatives)}")
        return self


_Original = TypeVar("_Original")


@cache
def _computed(kind: Any) -> frozenset[str]:
    """Names of what objects compute when it is first asked for."""
    several = (vars(base).items() for base in kind.__mro__)
    return frozenset(name for pairs in several for name, value in pairs if isinstance(value, cached_property))


def derived(original: _Original, keep: Collection[str] = (), **fields: Any) -> _Original:
    """The same dataclass with other values of fields; of what it has computed it keeps what does not depend on these.

    What is not named is computed anew: to forget a name costs time, and never gives what belongs to other values.
    """
    kind: Any = type(original)
    other, computed = object.__new__(kind), _computed(kind)
    kept = {name: value for name, value in vars(original).items() if name in keep or name not in computed}
    vars(other).update(kept | fields)
    return other


_Arguments = TypeVar("_Arguments", bound=Options)


def given(model: type[_Arguments], **arguments: Any) -> _Arguments:
    """Check arguments of a function of the package, which may be NumPy's numbers, by a model with a key for each.

    Raises
    ------
    InputError
        With all that are wrong.
    """
    plain = {
        key: value.item() if isinstance(value, np.generic) else value for key, value in arguments.items()
    }
    return model(**plain)


Positive = Annotated[float, Field(gt=0)]
#: What multiplies gradients: so large, products of it are still numbers.
Step = Annotated[float, Field(gt=0, le=1e100)]
NonNegative = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
#: Largest numbers of the columns that hold replicas, cells and agents, and of those that hold all other whole numbers.
INT32, INT64 = 2**31 - 1, 2**63 - 1
Count = Annotated[int, Field(ge=1, le=INT64)]
Index = Annotated[int, Field(ge=0, le=INT64)]
#: A number of agents or of replicas.
Few = Annotated[int, Field(ge=1, le=INT32)]
#: A seed.
Whole = Annotated[int, Field(ge=-INT64, le=INT64)]


#: Put in the metadata of a union of parts, so that a bare name stands for the part with its defaults.
BY_NAME = BeforeValidator(lambda value: {"kind": value} if isinstance(value, str) else value)
#: Put in the metadata of a list of names or parts, so that a single one needs no list.
AS_LIST = BeforeValidator(lambda value: [value] if isinstance(value, str | dict | BaseModel) else value)
#: Put in the metadata of a tuple, which a scenario writes as a list.
AS_TUPLE = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)


def stands_for(name: str) -> AfterValidator:
    """Metadata of a ``kind`` that may be written in several ways: the part has this name, whichever was written.

    The literal's first name is this; the others are synonyms, ``Literal["scale-free", "barabasi-albert"]``.
    """
    return AfterValidator(lambda written: name)


def _text_keys(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    entries = {str(key): entry for key, entry in value.items()}
    if len(entries) < len(value):
        raise ValueError(f"an agent or group is named twice: {', '.join(map(repr, value))}")
    return entries


#: Put in the metadata of a mapping from agents, whose indices may be numbers.
TEXT_KEYS = BeforeValidator(_text_keys)


#: Put in the metadata of numbers of agents, so that a list has one for each, in their order.
BY_PLACE = BeforeValidator(lambda value: dict(enumerate(value)) if isinstance(value, list) else value)


def _scalar_or_mapping(value: Any) -> str:
    return "mapping" if isinstance(value, Mapping | BaseModel) else "number"


class Column(Options):
    """A column of the records that has one number per owner, a positive one; ``data.per_owner`` lists it."""

    column: str = Field(description="a column that data.per_owner lists")

    #: The largest number that is allowed, and whether 0 is; in words for messages.
    most: ClassVar[float] = math.inf
    zero: ClassVar[bool] = False
    allowed: ClassVar[str] = "a positive number"

    def values(self, columns: Mapping[str, np.ndarray], labels: Sequence[str], key: str) -> np.ndarray:
        """Number of each agent, shape (n,).

        Raises
        ------
        MeaningError
            If the column is not among those, or an agent has a number that is not allowed.
        """
        if self.column not in columns:
            raise MeaningError(key, f"the column {self.column!r} is not known: list it in data.per_owner")
        values = columns[self.column]
        wrong = ~((values > 0) & (values <= self.most) | (values == 0) & self.zero)
        if wrong.any():
            agent = int(np.argmax(wrong))
            given = f"owner {labels[agent]} has {exact(values[agent])} in column {self.column!r}"
            raise MeaningError(key, f"{given}; {self.allowed} is expected")
        return values


class ShareColumn(Column):
    """A column of the records that has one number from 0 to 1 per owner; ``data.per_owner`` lists it."""

    most: ClassVar[float] = 1.0
    zero: ClassVar[bool] = True
    allowed: ClassVar[str] = "a number from 0 to 1"


class PositiveShareColumn(ShareColumn):
    """A column of the records that has one number above 0 and up to 1 per owner; ``data.per_owner`` lists it."""

    zero: ClassVar[bool] = False
    allowed: ClassVar[str] = "a number above 0 and at most 1"


class ProperShareColumn(PositiveShareColumn):
    """A column of the records that has one number above 0 and below 1 per owner; ``data.per_owner`` lists it."""

    most: ClassVar[float] = math.nextafter(1.0, 0.0)
    allowed: ClassVar[str] = "a number above 0 and below 1"


def _form_per_agent(value: Any) -> str:
    """Tell a column from a mapping: an agent may be called column, but its value is a number."""
    if isinstance(value, Column) or (isinstance(value, Mapping) and isinstance(value.get("column"), str)):
        return "column"
    return _scalar_or_mapping(value)


_Number = TypeVar("_Number")
_Part = TypeVar("_Part")
_Column = TypeVar("_Column", bound=Column)
#: A number, or a part or mapping.
NumberOr = Annotated[
    Annotated[_Number, Tag("number")] | Annotated[_Part, Tag("mapping")], Discriminator(_scalar_or_mapping)
]
#: A part of a union of them, by its ``kind``.
ByKind = Annotated[_Part, Field(discriminator="kind"), BY_NAME]

_Unbounded = Annotated[float, Field(gt=0, allow_inf_nan=True)]
_PerAgent = Annotated[
    Annotated[_Number, Tag("number")]
    | Annotated[dict[str, _Number], Tag("mapping")]
    | Annotated[_Column, Tag("column")],
    Discriminator(_form_per_agent),
    TEXT_KEYS,
    BY_PLACE,
]

#: A positive number (possibly infinite) for all agents, a list of those of agents 0, 1, …, a mapping from agent (index
#: or label) or group to one, or a column of the records.
PerAgent = _PerAgent[_Unbounded, Column]

#: A number from 0 to 1 in each of these forms.
SharePerAgent = _PerAgent[Fraction, ShareColumn]

#: The same without 0.
PositiveSharePerAgent = _PerAgent[Annotated[float, Field(gt=0, le=1)], PositiveShareColumn]

#: The same without 0 and 1.
ProperSharePerAgent = _PerAgent[Annotated[float, Field(gt=0, lt=1)], ProperShareColumn]


def per_agent(
    value: float | Mapping[str, float] | Column,
    labels: Sequence[str],
    groups: Sequence[str] | None = None,
    *,
    key: str,
    columns: Mapping[str, np.ndarray] | None = None,
) -> np.ndarray:
    """Resolve a per-agent quantity to one value per agent.

    An agent's own index or label is preferred over its group.

    Parameters
    ----------
    value : float, mapping or Column
        A number for all, a mapping from agent index, agent label or group to a number, or a column.
    labels : sequence of str
        The agents' labels, in order.
    groups : sequence of str, optional
        The agents' groups, in order.
    key : str
        The dotted scenario key, named in errors.
    columns : mapping of str to ndarray, shape (n,), optional
        Columns that have one number per agent.

    Returns
    -------
    ndarray, shape (n,)

    Raises
    ------
    MeaningError
        If an agent has no value or two; or an entry names no agent and no group, two agents, or an agent and a group
        of others; or as `Column.values` does.
    """
    if isinstance(value, Column):
        return value.values(columns or {}, labels, key)
    if not isinstance(value, Mapping):
        return np.full(len(labels), float(value))
    agents = AgentNames(labels)
    members: dict[str, set[int]] = {}
    for i, group in enumerate(groups or ()):
        members.setdefault(group, set()).add(i)
    names = []
    for name in value:
        meant = agents.find(name)
        if not meant and name not in members:
            known = [*labels, *members]
            raise MeaningError(key, f"no agent or group is called {name!r}; there are {some(known)}")
        if meant and meant != members.get(name, meant):
            raise MeaningError(key, f"{name!r} names an agent and a group of others; rename one of them")
        if meant:
            names.append(name)
    of_agent = {i: value[name] for name, i in agents.resolve(names, key).items()}
    of_group = enumerate(groups if groups is not None else [""] * len(labels))
    values = [of_agent[i] if i in of_agent else value.get(group) for i, group in of_group]
    if None in values:
        raise MeaningError(key, f"agent {labels[values.index(None)]} has no value")
    return np.array(values, dtype=float)


def _parts_at(value: Any, key: str) -> Iterator[tuple[str, BaseModel]]:
    """The part at a dotted key, or those of a list there; none where there is something else."""
    if isinstance(value, BaseModel):
        yield key, value
    elif isinstance(value, tuple):
        for place, entry in enumerate(value):
            yield from _parts_at(entry, f"{key}.{place}")


_SCALARS = (type(None), float, str, int)


def _parts_in(part: BaseModel) -> Iterator[tuple[str, Any]]:
    """What may be or hold parts or mappings inside a part, by its keys."""
    for name, value in vars(part).items():
        if not isinstance(value, _SCALARS):
            yield name, value


def columns_in(value: Any, key: str) -> Iterator[tuple[str, Column]]:
    """Columns that a part at a dotted key and the parts inside it name, each by its own key."""
    for place, part in _parts_at(value, key):
        if isinstance(part, Column):
            yield place, part
        else:
            for name, inside in _parts_in(part):
                yield from columns_in(inside, f"{place}.{name}")


@cache
def _per_agent_keys(part: type[BaseModel]) -> tuple[str, ...]:
    """Keys of a part that take a mapping from agents."""

    def takes(annotation: Any) -> bool:
        return TEXT_KEYS in getattr(annotation, "__metadata__", ()) or any(map(takes, get_args(annotation)))

    fields = part.model_fields.items()
    return tuple(key for key, field in fields if TEXT_KEYS in field.metadata or takes(field.annotation))


def mappings_from_agents(part: BaseModel, key: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Mappings from agents or groups that a part at a dotted key and the parts inside it hold, each by its own key."""
    for name, value in _parts_in(part):
        if isinstance(value, Mapping) and name in _per_agent_keys(type(part)):
            yield f"{key}.{name}", value
        for place, inside in _parts_at(value, f"{key}.{name}"):
            yield from mappings_from_agents(inside, place)
