"""The parts that a scenario can name, by kind and name: those of p2psim and those of others, through one door."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar, Union

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from p2psim.core.errors import InputError

#: Kinds of parts, and the key or option that names one.
KINDS: Mapping[str, str] = {
    "topology": "network.topology",
    "exchange": "network.exchange",
    "availability": "network.availability",
    "channel": "network.channel.effects",
    "algorithm": "learning.algorithm",
    "loss": "learning.loss",
    "source": "data.source",
    "feature": "data.features",
    "partition": "data.partition",
    "mechanism": "privacy.mechanism",
    "allocation": "privacy.allocation",
    "accountant": "privacy.accountant",
    "metric": "record.metrics",
    "figure": "figure",
}

_T = TypeVar("_T")

_PARTS: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}

# Called after a part was registered that a schema was built without: what was made of all parts is made anew.
_LISTENERS: list[Callable[[], None]] = []

# The unions that models have been declared with.
_UNIONS: list[AnyOf] = []

# Number of `registering` blocks that are open; listeners wait for the last to end.
_open = 0


def register(part: _T) -> _T:
    """Let scenarios name a part; used as a decorator.

    Parameters
    ----------
    part : type or object
        A subclass of one of the base classes of parts (`p2psim.Topology`, `p2psim.Loss`, …), whose ``kind``
        has the part's name as its default; or an object with ``part_kind`` and ``name`` (a metric, an accountant, a
        figure).

    Returns
    -------
    part

    Raises
    ------
    InputError
        If it is no part, has no name, lacks what its base class wants of it, or a part of this kind and name exists.
    """
    kind, name = kind_of(part), name_of(part)
    known = _PARTS[kind].get(name)
    if known is not None and not _same(known, part):
        mine, other = package_of(part), package_of(known)
        raise InputError(
            f"the {kind} {name!r} of {mine} cannot be registered: {other} has one of this name; call it otherwise"
        )
    if lacking := _lacking(part if isinstance(part, type) else type(part)):
        raise InputError(f"the {kind} {name!r} of {package_of(part)} lacks {', '.join(lacking)}")
    with registering():
        _PARTS[kind][name] = part
    return part


def _lacking(part: type) -> list[str]:
    """Methods that a class does not have; of metrics and figures, too, which nobody instantiates."""
    if isinstance(part, ABCMeta):
        return sorted(part.__abstractmethods__)
    members = {name: member for base in reversed(part.__mro__) for name, member in vars(base).items()}
    return [name for name, member in members.items() if getattr(member, "__isabstractmethod__", False)]


def register_all(parts: Iterable[Any]) -> None:
    """Register several parts at once."""
    with registering():
        for part in parts:
            register(part)


def forget(kind: str, name: str) -> None:
    """Take a part back out, such as one that a test has registered."""
    with registering():
        del _PARTS[kind][name]


@contextmanager
def registering() -> Iterator[None]:
    """Let listeners wait until all parts of this block are registered."""
    global _open
    _open += 1
    try:
        yield
    finally:
        _open -= 1
        if not _open and _any_stale():
            for listener in _LISTENERS:
                listener()


def on_change(listener: Callable[[], None]) -> None:
    """Call a function whenever a declared model lacks parts that were registered since, and now if one does."""
    _LISTENERS.append(listener)
    if _any_stale():
        listener()


def _any_stale() -> bool:
    return any(union.is_stale for union in _UNIONS)


def parts(kind: str) -> Mapping[str, Any]:
    """All parts of a kind by name, in the order of their registration."""
    return _PARTS[kind]


def modules() -> list[str]:
    """Modules from outside p2psim that have registered parts."""
    names = (_module(part) for named in _PARTS.values() for part in named.values())
    return list(dict.fromkeys(module for module in names if module.partition(".")[0] != "p2psim"))


def place_of(part: Any) -> str | None:
    """``module:OBJECT`` of a part from outside p2psim; None of one of its own."""
    module = _module(part)
    name = getattr(part, "__qualname__", type(part).__qualname__)
    return None if module.partition(".")[0] == "p2psim" else f"{module}:{name}"


def kind_of(part: Any) -> str:
    """Kind of a part.

    Raises
    ------
    InputError
        If it is none.
    """
    kind = getattr(part, "part_kind", None)
    if kind not in KINDS:
        raise InputError(
            f"{part!r} is no part: derive it from a base class of parts, such as p2psim.Topology"
        )
    return str(kind)


def name_of(part: Any) -> str:
    """Name by which a scenario names a part.

    Raises
    ------
    InputError
        If it has none.
    """
    field = getattr(part if isinstance(part, type) else type(part), "model_fields", {}).get("kind")
    name = field.default if field is not None else getattr(part, "name", None)
    if not isinstance(name, str) or not name:
        raise InputError(f'{part!r} has no name: give it kind: Literal["NAME"] = "NAME"')
    return name


def package_of(part: Any) -> str:
    """Top-level package that a part comes from."""
    return _module(part).partition(".")[0]


def _module(part: Any) -> str:
    return str(getattr(part, "__module__", None) or type(part).__module__)


def _same(a: Any, b: Any) -> bool:
    def place(part: Any) -> tuple[str, str]:
        return _module(part), getattr(part, "__qualname__", repr(part))

    return a is b or place(a) == place(b)


class AnyOf:
    """Metadata of a type: any registered part of a kind, as a union that ``kind`` tells apart; but some names."""

    def __init__(self, kind: str, but: tuple[str, ...] = ()):
        self._kind, self._but = kind, but
        self._built: tuple[Any, ...] = ()
        _UNIONS.append(self)

    @property
    def is_stale(self) -> bool:
        """Whether parts have been registered or forgotten since a schema was built."""
        return self._built not in ((), self.parts)

    @property
    def parts(self) -> tuple[Any, ...]:
        """What is registered now."""
        return tuple(part for name, part in _PARTS[self._kind].items() if name not in self._but)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Build the schema of the union of what is registered now."""
        self._built = self.parts
        union: Any = Union[self.parts]  # noqa: UP007
        tagged: Any = Annotated[union, Field(discriminator="kind")]
        return handler.generate_schema(tagged)


class NameOf(AnyOf):
    """Metadata of a type: the name of a registered part of a kind that has no keys of its own."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Build the schema of the names of what is registered now."""
        self._built = self.parts
        return core_schema.literal_schema(list(_PARTS[self._kind]), metadata={"part_kind": self._kind})
