"""The parts that a scenario can name, by kind and name: those of p2psim and those of others, through one door.

Nothing is imported because a file says so. The user lets a module in: by installing a package that declares it (entry
points of the group ``p2psim.parts``), by ``--parts MODULE``, or by `load_parts` in Python. A file can name only parts
that such a module has registered (`register`).
"""

from __future__ import annotations

import hashlib
import sys
from abc import ABCMeta
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, get_args

from p2psim.core.errors import InputError, first_line
from p2psim.core.process import interrupted_afterwards

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


class Parts(Mapping[str, Any]):
    """Parts of a kind by name; the module of a part that p2psim declares is imported when the part is first read."""

    def __init__(self) -> None:
        #: A part, or ``module:Class`` of one that nobody has needed yet.
        self.entries: dict[str, Any] = {}
        #: What scenarios may call each: its name and synonyms, with its name.
        self.names: dict[str, str] = {}

    def __getitem__(self, name: str) -> Any:
        """Return a part by its name."""
        part = self.entries[name]
        if isinstance(part, str):
            module, _, attribute = part.partition(":")
            with interrupted_afterwards():
                part = self.entries[name] = getattr(import_module(module), attribute)
        return part

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self.entries)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.entries)

    def add(self, part: Any, *names: str) -> None:
        """Add a part, or where it is, under its name and synonyms."""
        self.entries[names[0]] = part
        self.names |= dict.fromkeys(names, names[0])

    def remove(self, name: str) -> None:
        """Take a part out."""
        del self.entries[name]
        self.names = {word: known for word, known in self.names.items() if known != name}


_PARTS: dict[str, Parts] = {kind: Parts() for kind in KINDS}


def declare(kind: str, package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Say which parts a package of p2psim has, so that a scenario which names one imports it and no other.

    Parameters
    ----------
    kind : str
    package : str
        Its name.
    places : mapping of str to str
        By the name of a part, and synonyms after it, its module in the package and its class: ``"regular:Star"``.

    Returns
    -------
    callable
        The package's ``__getattr__``, which gives the classes.
    """
    homes = {}
    for names, place in places.items():
        _PARTS[kind].add(f"{package}.{place}", *names.split())
        module, _, attribute = place.partition(":")
        homes[attribute] = module

    def attribute_of(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return attribute_of


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
    known, what = _PARTS[kind], f"the {kind} {name!r} of {package_of(part)}"
    words = dict.fromkeys((name, *words_of(part)))
    for word in words:
        other = known.entries.get(known.names.get(word, ""))
        if other is not None and _place(other) != _place(part):
            whose = f"{package_of(other)} has one of this name"
            raise InputError(f"{what} cannot be registered: {whose}; choose another name")
    if lacking := _lacking(part if isinstance(part, type) else type(part)):
        raise InputError(f"{what} lacks {', '.join(lacking)}")
    known.add(part() if kind == "accountant" and isinstance(part, type) else part, *words)
    return part


def _lacking(part: type) -> list[str]:
    """Methods that a class does not have; of metrics and figures, too, which nobody instantiates."""
    if isinstance(part, ABCMeta):
        return sorted(part.__abstractmethods__)
    members = {name: member for base in reversed(part.__mro__) for name, member in vars(base).items()}
    return sorted(name for name in members if getattr(members[name], "__isabstractmethod__", False))


def register_all(parts: Iterable[Any]) -> None:
    """Register several parts at once."""
    for part in parts:
        register(part)


def forget(kind: str, name: str) -> None:
    """Take a part back out, such as one that a test has registered."""
    _PARTS[kind].remove(name)


def parts(kind: str) -> Parts:
    """All parts of a kind by name, in the order of their registration."""
    return _PARTS[kind]


def modules() -> list[str]:
    """Modules from outside p2psim that have registered parts."""
    known = (part for named in _PARTS.values() for part in named.entries.values())
    others = (part for part in known if package_of(part) != "p2psim")
    return list(dict.fromkeys(map(_module, others)))


def place_of(part: Any) -> str | None:
    """``module:OBJECT`` of a part from outside p2psim; None of one of its own."""
    return None if package_of(part) == "p2psim" else _place(part)


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


def words_of(part: Any) -> tuple[str, ...]:
    """Names that a part with keys takes as its kind."""
    field = getattr(part, "model_fields", {}).get("kind")
    return tuple(map(str, get_args(field.annotation))) if field is not None else ()


def package_of(part: Any) -> str:
    """Top-level package that a part comes from."""
    return _module(part).partition(".")[0]


def _module(part: Any) -> str:
    return _place(part).partition(":")[0]


def _place(part: Any) -> str:
    """``module:OBJECT`` of a part, or of its class."""
    if isinstance(part, str):
        return part
    module = getattr(part, "__module__", None) or type(part).__module__
    return f"{module}:{getattr(part, '__qualname__', type(part).__qualname__)}"


#: Entry points of installed packages that declare modules with parts.
GROUP = "p2psim.parts"

# Modules that the user has let into this process, by the name under which that was done.
LOADED: dict[str, ModuleType] = {}


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
    for name in names:
        if name not in LOADED:
            LOADED[name] = _imported(name)


def loaded() -> tuple[str, ...]:
    """Names of the modules that have been let in or have registered parts; other processes load them by these."""
    # The main script is no module, and those inside of modules that have been let in come with them.
    registered = (module for module in modules() if module not in ("__main__", "__mp_main__"))
    return (
        *LOADED,
        *(module for module in registered if not any(_belongs(module, name) for name in LOADED)),
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
    file = getattr(sys.modules[name], "__file__", None)
    package = _package_of(name.partition(".")[0], tuple(sys.path))
    return {
        "package": package,
        "version": metadata.version(package) if package else None,
        "sha256": hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else None,
    }


@lru_cache(maxsize=64)
def _package_of(module: str, path: tuple[str, ...]) -> str | None:
    """The package on ``path``, which is `sys.path`, that installs a module that is imported by one word.

    As `importlib.metadata.packages_distributions` finds it, which asks of every file of every package whether it is
    there: with PyTorch installed that takes half a second.
    """
    starts = f"{module}/", f"{module}."
    for package in metadata.distributions():
        if names := (package.read_text("top_level.txt") or "").split():
            found = module in names
        else:
            found = any(line.startswith(starts) for line in (package.read_text("RECORD") or "").splitlines())
        if found:
            return str(package.metadata["Name"])
    return None
