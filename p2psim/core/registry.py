"""The parts that a scenario can name, by kind and name: those of p2psim and those of others, through one door.

Nothing is imported because a file says so. The user lets a module in: by installing a package that declares it (entry
points of the group ``p2psim.parts``), by ``--parts MODULE``, or by `load_parts` in Python. A file can name only parts
that such a module has registered (`register`).
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, TypeVar, Union

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from p2psim.core.errors import InputError, first_line

#: Kinds of parts, and the key or option that names one.
KINDS: Mapping[str, str] = {
    "topology": "network.topology",
    "exchange": "network.exchange",
    "availability": "network.availability",
    "channel": "network.channel.effects",
    "algorithm": "learning.algorithm",
    "model": "learning.model",
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
        figure). Of an accountant's class an instance is kept.

    Returns
    -------
    part

    Raises
    ------
    InputError
        If it is no part, has no name, lacks what its base class wants of it, or a part of this kind and name exists.
    """
    kind, name = kind_of(part), name_of(part)
    known, what = _PARTS[kind].get(name), f"the {kind} {name!r} of {package_of(part)}"
    if known is not None and not _same(known, part):
        other = package_of(known)
        raise InputError(f"{what} cannot be registered: {other} has one of this name; call it otherwise")
    if lacking := _lacking(part if isinstance(part, type) else type(part)):
        raise InputError(f"{what} lacks {', '.join(lacking)}")
    with registering():
        _PARTS[kind][name] = part() if kind == "accountant" and isinstance(part, type) else part
    return part


def _lacking(part: type) -> list[str]:
    """Methods that a class does not have; of metrics and figures, too, which nobody instantiates."""
    members = {name: member for base in reversed(part.__mro__) for name, member in vars(base).items()}
    return sorted(name for name in members if getattr(members[name], "__isabstractmethod__", False))


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
    others = (part for named in _PARTS.values() for part in named.values() if package_of(part) != "p2psim")
    return list(dict.fromkeys(map(_module, others)))


def place_of(part: Any) -> str | None:
    """``module:OBJECT`` of a part from outside p2psim; None of one of its own."""
    name = getattr(part, "__qualname__", type(part).__qualname__)
    return None if package_of(part) == "p2psim" else f"{_module(part)}:{name}"


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
        return _module(part), getattr(part, "__qualname__", type(part).__qualname__)

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


#: Entry points of installed packages that declare modules with parts.
GROUP = "p2psim.parts"

# Modules that the user has let into this process, by the name under which that was done.
_LOADED: dict[str, ModuleType] = {}


def load_parts(*names: str) -> None:
    """Import modules, and let scenarios and run folders name the parts that they define.

    Parameters
    ----------
    *names : str
        Names of modules that Python can import, ``package.module``.

    Raises
    ------
    InputError
        If one of them cannot be imported.
    """
    with registering():
        for name in names:
            if name not in _LOADED:
                _LOADED[name] = _imported(name)


def loaded() -> tuple[str, ...]:
    """Names of the modules that have been let in or have registered parts; other processes load them by these."""
    # The main script is no module, and those inside of modules that have been let in come with them.
    registered = (module for module in modules() if module not in ("__main__", "__mp_main__"))
    return (
        *_LOADED,
        *(module for module in registered if not any(_belongs(module, name) for name in _LOADED)),
    )


def missing_of(made_by: Mapping[str, Any]) -> list[str]:
    """Modules that made results, as a manifest has it, and that have not been let in."""
    return [name for name in made_by.get("parts", {}) if name not in loaded()]


def origins(used: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Describe the modules that have been let in, for the manifest.

    Parameters
    ----------
    used : iterable of str
        Names of the parts that a study uses.

    Returns
    -------
    dict
        By module: ``package`` and ``version`` where it belongs to an installed package, ``sha256`` of its file, and
        ``used``, the parts of it that the study uses.
    """
    let_in = loaded()
    named = sorted(set(used)) if let_in else []
    return {
        module: {**_origin(module), "used": [name for name in named if _belongs(name, module)]}
        for module in let_in
    }


def _belongs(name: str, module: str) -> bool:
    """Whether a module, or ``module:OBJECT``, is a module or inside of it."""
    return f"{name.partition(':')[0]}.".startswith(f"{module}.")


def load_installed() -> bool:
    """Load what installed packages declare, once; returns whether that registered a part."""
    before = modules()
    failures()
    return modules() != before


def version_of(module: str) -> tuple[str | None, str | None]:
    """Version of a loaded module's package and hash of its file, to compare it with that of another process."""
    origin = _origin(module)
    return origin["version"], origin["sha256"]


@cache
def failures() -> tuple[str, ...]:
    """Load what installed packages declare, once; returns why modules could not be imported."""
    messages = []
    for point in metadata.entry_points(group=GROUP):
        try:
            load_parts(point.module)
        except InputError as error:
            messages.append(str(error))
    return tuple(messages)


def _imported(name: str) -> ModuleType:
    if not all(word.isidentifier() for word in name.split(".")):
        raise InputError(f"{name!r} is not the name of a module, such as package.module")
    try:
        return import_module(name)
    except (Exception, SystemExit) as error:
        hint = ""
        if isinstance(error, ModuleNotFoundError) and error.name == name and Path(f"{name}.py").is_file():
            hint = f"; {name}.py is in the current folder, which Python searches only with PYTHONPATH=."
        what = f"{type(error).__name__}: {first_line(error)}"
        raise InputError(f"the module {name} cannot be imported ({what}){hint}") from None


def _origin(name: str) -> dict[str, str | None]:
    packages = _packages(tuple(sys.path)).get(name.partition(".")[0], [])
    package = packages[0] if packages else None
    file = getattr(sys.modules[name], "__file__", None)
    return {
        "package": package,
        "version": metadata.version(package) if package else None,
        "sha256": hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else None,
    }


@lru_cache(maxsize=1)
def _packages(path: tuple[str, ...]) -> Mapping[str, list[str]]:
    """Packages on ``path``, which is `sys.path`, by the modules they install: all their lists of files are read."""
    return metadata.packages_distributions()
