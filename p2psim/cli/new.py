"""``p2psim new``: start a scenario from a shipped one, or a part of your own from a template with its test."""

import argparse
import keyword
import os
import re
from collections.abc import Mapping
from pathlib import Path

from p2psim.cli.arguments import command, option, read_template
from p2psim.core.errors import Fault, InputError

_NAME_LINE = re.compile(r"^name:[^\n#]*?([ \t]*#[^\n]*)?$", re.MULTILINE)


@command(
    "new",
    "start a scenario from a shipped one, or a part of your own",
    option("name NAME", "the file becomes NAME.yaml; of a part NAME.py"),
    option(
        "--part KIND", "write a part of this kind that works, and its test: topology, loss, star-training, …"
    ),
    option("--from TEMPLATE", "see p2psim list", dest="template", default="three_banks"),
    needs=("p2psim.scenario.model",),
)
def start(args: argparse.Namespace) -> None:
    """``p2psim new``."""
    files = [new(args.name, args.template)] if args.part is None else new_part(args.part, args.name)
    print(*files, sep="\n")


def _is_plain(name: str) -> bool:
    """Whether YAML reads a name as text, although nothing quotes it."""
    from p2psim.scenario.yaml import scalar

    try:
        return isinstance(scalar(name), str)
    except ValueError:  # a number that is too large
        return False


def new(name: str, template: str = "three_banks", folder: str | Path = ".") -> Path:
    """Write a new scenario file from a shipped one, comments and all.

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
    _write({path: text})
    return path


def _write(files: Mapping[Path, str]) -> None:
    """Write files that are not there yet, or none of them."""
    for path in files:
        if os.path.lexists(path):
            raise InputError(Fault("is there already; nothing was written", path=str(path)))
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            fault = Fault(f"cannot be written: {error.strerror or error}", path=str(path))
            raise InputError(fault) from error


#: Kinds that a file can be written of, and two choices of keys with which its test makes the part.
TEMPLATES: Mapping[str, tuple[str, str]] = {
    "topology": ("", "agents=9, reach=2"),
    "loss": ("", "delta=0.5"),
    "exchange": ("", "reverse=True"),
    "channel": ("", "most=0.2, jitter=0.5"),
    "availability": ("", "up=2.0, down=3.0"),
    "algorithm": ("commits=50", "time=3.0, learning_rate=0.5"),
    "star-training": ("commits=5", "time=3.0, local_steps=2"),
    "graph-training": ("commits=50", "time=3.0, local_steps=2"),
    "model": ("", "intercept=False"),
}

_TEST = '''"""Whether the part keeps the protocol of its kind."""

from {module} import {name}

from p2psim.testing import check_part


def test_{module}() -> None:
    check_part({name}({keys}))
    check_part({name}({others}))
'''


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
        If the kind is unknown, the name cannot be a part's, or a file is there already or cannot be written; then
        nothing is.
    """
    from importlib.resources import files

    if kind not in TEMPLATES:
        raise InputError(
            f"--part: there is no file to begin with for {kind!r}, only for {', '.join(TEMPLATES)}"
        )
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or keyword.iskeyword(name):
        raise InputError(
            f"{name!r} is no name of a part: small letters, digits and hyphens, such as my-{kind}"
        )
    module, class_name = name.replace("-", "_"), "".join(word.capitalize() for word in name.split("-"))
    text = (files("p2psim.testing") / "templates" / f"{kind}.txt").read_text(encoding="utf-8")
    for word, value in (("__NAME__", name), ("__CLASS__", class_name), ("__MODULE__", module)):
        text = text.replace(word, value)
    test = _TEST.format(module=module, name=class_name, keys=TEMPLATES[kind][0], others=TEMPLATES[kind][1])
    written = {Path(folder) / f"{module}.py": text, Path(folder) / f"test_{module}.py": test}
    _write(written)
    return list(written)
