"""The scenarios that ship with p2psim, and new ones made from them."""

import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import p2psim
from p2psim.errors import Fault, InputError
from p2psim.study.faults import unknown
from p2psim.study.names import checked_name
from p2psim.study.yaml_reader import scalar

_NAME_LINE = re.compile(r"^name:[^\n#]*?([ \t]*#[^\n]*)?$", re.MULTILINE)


def templates() -> dict[str, str]:
    """Return the shipped scenarios, and the question that each asks (its first comment)."""
    found = {
        entry.name.removesuffix(".yaml"): entry.read_text(encoding="utf-8")
        for entry in _folder().iterdir()
        if entry.name.endswith(".yaml")
    }
    return {name: _question(text) for name, text in sorted(found.items())}


def hint(path: str | Path) -> str:
    """What was probably meant by a file that is not there: a shipped scenario of this name; empty otherwise."""
    asked = Path(path).name.removesuffix(".yaml").replace("-", "_")
    if asked not in templates():
        return ""
    shipped = _folder() / f"{asked}.yaml"
    here = Path("scenarios", shipped.name)
    where = str(here) if here.is_file() else f"a copy, by p2psim new {asked} --from {asked}"
    return f"; {asked} is a shipped scenario: give {where}"


def read_template(name: str) -> str:
    """Return the text of a shipped scenario.

    Raises
    ------
    InputError
        If there is none of this name.
    """
    known = list(templates())
    if name not in known:
        raise InputError(Fault(unknown("scenario", name, known)))
    return (_folder() / f"{name}.yaml").read_text(encoding="utf-8")


def _is_plain(name: str) -> bool:
    """Whether YAML reads a name as text, although nothing quotes it."""
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
    name = name.removesuffix(".yaml")
    try:
        checked_name(name)
    except ValueError as error:
        raise InputError(
            Fault(f"the name of a new scenario {error}; run it in the folder that the file is for")
        ) from None
    written = name if _is_plain(name) else f'"{name}"'
    text = read_template(template)
    text, replaced = _NAME_LINE.subn(lambda match: f"name: {written}{match[1] or ''}", text, count=1)
    assert replaced, f"the shipped scenario {template} has no name"
    path = Path(folder) / f"{name}.yaml"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(Fault("is there already; nothing was written", path=str(path))) from None
    except OSError as error:
        raise InputError(Fault(f"cannot be written: {error.strerror or error}", path=str(path))) from error
    return path


def _folder() -> Traversable:
    """Return the folder of shipped scenarios: inside the package when installed, beside it in a checkout."""
    inside = files("p2psim") / "_scenarios"
    return inside if inside.is_dir() else Path(p2psim.__file__).parent.parent / "scenarios"


def _question(text: str) -> str:
    first = text.splitlines()[0] if text else ""
    return first.removeprefix("#").strip() if first.startswith("#") else ""
