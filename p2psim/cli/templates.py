"""The scenarios that ship with p2psim."""

from pathlib import Path
from typing import TYPE_CHECKING

from p2psim.core.errors import Fault, InputError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


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
    from p2psim.scenario.faults import unknown

    known = list(templates())
    if name not in known:
        raise InputError(Fault(unknown("scenario", name, known)))
    return (_folder() / f"{name}.yaml").read_text(encoding="utf-8")


def _folder() -> "Traversable":
    """Return the folder of shipped scenarios: inside the package when installed, beside it in a checkout."""
    from importlib.resources import files

    inside = files("p2psim") / "_scenarios"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "scenarios"


def _question(text: str) -> str:
    first = text.splitlines()[0] if text else ""
    return first.removeprefix("#").strip() if first.startswith("#") else ""
