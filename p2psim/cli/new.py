"""``p2psim new``: write a new scenario from a shipped one, or a new part from a template with its test."""

import argparse
import keyword
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from p2psim.cli.arguments import command, option, read_template, tables_of
from p2psim.core.errors import Fault, InputError

_NAME_LINE = re.compile(r"^name:[^\n#]*?([ \t]*#[^\n]*)?$", re.MULTILINE)


@command(
    "new",
    "write a new scenario from a shipped one, or a new part with its test",
    option("name NAME", "the file becomes NAME.yaml; of a part NAME.py"),
    option("--part KIND", "write a working part of this kind, and its test: topology, loss, metric, …"),
    option(
        "--from TEMPLATE", "the shipped scenario; three_banks by default; see p2psim list", dest="template"
    ),
    needs=("p2psim.scenario.model",),
)
def start(args: argparse.Namespace) -> None:
    """``p2psim new``."""
    if args.part is None:
        template = args.template or "three_banks"
        files = [new(args.name, template), *map(Path, tables_of(read_template(template)))]
    elif args.template is not None:
        raise InputError("--from: is for new scenarios, and cannot be given with --part")
    else:
        files = new_part(args.part, args.name)
    print(*files, sep="\n")


def _is_plain(name: str) -> bool:
    """Whether YAML reads a name as text, although nothing quotes it."""
    from p2psim.scenario.yaml import scalar

    try:
        return isinstance(scalar(name), str)
    except ValueError:  # a number that is too large
        return False


def new(name: str, template: str = "three_banks", folder: str | Path = ".") -> Path:
    """Write a new scenario file from a shipped one, comments and all, and the tables that it names beside it.

    Parameters
    ----------
    name : str
        The file becomes ``NAME.yaml``, and the scenario is called so.
    template : str
        One of `templates`.
    folder : str or Path
        Made if need be.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        If the name cannot be a file's, the template is not known, or the file is there already or cannot be
        written.
    """
    from p2psim.scenario.notices import checked_name

    name = name.removesuffix(".yaml")
    try:
        checked_name(name)
    except ValueError as error:
        fault = Fault(f"the name of a new scenario {error}; run it in the folder that the file is for")
        raise InputError(fault) from None
    written = name if _is_plain(name) else f'"{name}"'
    text = read_template(template)
    text, replaced = _NAME_LINE.subn(lambda match: f"name: {written}{match[1] or ''}", text, count=1)
    assert replaced, f"the shipped scenario {template} has no name"
    path = Path(folder) / f"{name}.yaml"
    tables = {Path(folder) / table: content for table, content in tables_of(text).items()}
    there = [table for table, content in tables.items() if _holds(table, content)]
    _write({path: text} | {table: tables[table] for table in tables if table not in there})
    return path


def _holds(path: Path, content: str) -> bool:
    """Whether a file is there already as it would be written."""
    return path.is_file() and path.read_bytes() == content.encode()


def _write(files: Mapping[Path, str]) -> None:
    """Write files that are not there yet, or none of them."""
    for path in files:
        if os.path.lexists(path):
            raise InputError(Fault("already exists; nothing was written", path=str(path)))
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            fault = Fault(f"cannot be written: {error.strerror or error}", path=str(path))
            raise InputError(fault) from error


#: Kinds that a file can be written of, and what follows the name of its class where its test tries the part: keys, or
#: nothing where the class itself is the part.
TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "topology": ("()", "(agents=9, reach=2)"),
    "loss": ("()", "(delta=0.5)"),
    "exchange": ("()", "(reverse=True)"),
    "channel": ("()", "(most=0.2, jitter=0.5)"),
    "availability": ("()", "(up=2.0, down=3.0)"),
    "algorithm": ("(commits=50)", "(time=3.0, learning_rate=0.5)"),
    "star-training": ("(commits=5)", "(time=3.0, local_steps=2)"),
    "graph-training": ("(commits=50)", "(time=3.0, local_steps=2)"),
    "model": ("()", "(intercept=False)"),
    "metric": ("",),
    "figure": ("",),
    "source": ("()", "(points=7, noise=0.0)"),
    "feature": ("()", "(degree=3)"),
    "partition": ("()", "(agents=4, shuffled=True)"),
    "mechanism": ("()",),
    "allocation": ("()", "(releases=3, part=0.9)"),
    "accountant": ("",),
}

_TEST = '''"""Whether the part keeps the protocol of its kind."""

from {module} import {name}

from p2psim.testing import check_part


def test_{module}() -> None:
{checks}'''


def _trouble(module: str, folder: Path) -> str:
    """Why no module should be called so; empty where one may."""
    from importlib.util import find_spec

    from p2psim.scenario.notices import DEVICES

    if DEVICES.fullmatch(module):
        return f"{module}.py is a device on Windows"
    spec = None if (folder / f"{module}.py").exists() else find_spec(module)
    if spec is not None or module in sys.stdlib_module_names:
        return f"{module}.py would hide the module {module}, which Python or an installed package has"
    return ""


def new_part(kind: str, name: str, folder: str | Path = ".") -> list[Path]:
    """Write a part and its test.

    Parameters
    ----------
    kind : str
        One of `TEMPLATES`.
    name : str
        What scenarios call it: letters, digits and hyphens.
    folder : str or Path
        Made if need be.

    Returns
    -------
    list of Path
        The two files.

    Raises
    ------
    InputError
        If the kind is unknown, the name cannot be a part's, hides a module or is taken, or a file is there already or
        cannot be written; then nothing is.
    """
    from importlib.resources import files

    import p2psim.scenario.rules  # noqa: F401  registers metrics
    from p2psim.core import registry
    from p2psim.core.faults import unknown

    if kind not in TEMPLATES:
        raise InputError(f"--part: {unknown('kind', kind, list(TEMPLATES))}")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or keyword.iskeyword(name):
        message = f"{name!r} is no name of a part: small letters, digits and hyphens, such as my-{kind}"
        raise InputError(message)
    module, class_name = name.replace("-", "_"), "".join(word.capitalize() for word in name.split("-"))
    if trouble := _trouble(module, Path(folder)):
        message = f"{name!r} cannot be the name of a part: {trouble}; choose another, such as my-{name}"
        raise InputError(message)
    registered = "algorithm" if kind.endswith("-training") else kind
    for taken in {name, module} & registry.parts(registered).names.keys():
        message = f"there is a part of the kind {registered} that is called {taken!r}; choose another name"
        raise InputError(message)
    text = (files("p2psim.testing") / "templates" / f"{kind}.txt").read_text(encoding="utf-8")
    for word, value in (("__NAME__", name), ("__CLASS__", class_name), ("__MODULE__", module)):
        text = text.replace(word, value)
    checks = "".join(f"    check_part({class_name}{keys})\n" for keys in TEMPLATES[kind])
    test = _TEST.format(module=module, name=class_name, checks=checks)
    written = {Path(folder) / f"{module}.py": text, Path(folder) / f"test_{module}.py": test}
    _write(written)
    return list(written)
