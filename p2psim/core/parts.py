"""Parts from outside p2psim: the modules that a user has let in, and what a scenario may name of them.

Nothing is imported because a file says so. The user lets a module in: by installing a package that declares it (entry
points of the group ``p2psim.parts``), by ``--parts MODULE``, or by `load_parts` in Python. A file can name only parts
that such a module has registered (`p2psim.register`).
"""

import hashlib
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from p2psim.core.errors import InputError, first_line
from p2psim.core.registry import modules, registering

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
    return tuple(dict.fromkeys([*_LOADED, *_registered()]))


def _registered() -> list[str]:
    """Modules that have registered parts and were not let in by name; not the main script, which is no module."""
    return [
        module
        for module in modules()
        if module not in ("__main__", "__mp_main__")
        and not any(f"{module}.".startswith(f"{name}.") for name in _LOADED)
    ]


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
    modules_in = loaded()
    named = sorted(set(used)) if modules_in else []
    return {
        module: {**_origin(module), "used": [name for name in named if _belongs(name, module)]}
        for module in modules_in
    }


def _belongs(name: str, module: str) -> bool:
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
    # Here and not above: most studies name no such part.
    from importlib.metadata import entry_points

    messages = []
    for point in entry_points(group=GROUP):
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
    from importlib import metadata

    packages = metadata.packages_distributions().get(name.partition(".")[0], [])
    package = packages[0] if packages else None
    file = getattr(sys.modules[name], "__file__", None)
    return {
        "package": package,
        "version": metadata.version(package) if package else None,
        "sha256": hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else None,
    }
