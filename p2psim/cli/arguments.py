"""What commands share: arguments and how they are read, scenarios with overrides, and the shipped scenarios."""

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from p2psim.core.errors import Fault, InputError
from p2psim.core.text_tables import BeyondFloatError, decimal

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from p2psim.scenario.model import Scenario

#: Limits of numbers of cells, replicas and agents: they are checked where it is known how many there are.
ANY = -(10**101), 10**101

#: Parsers of commands are added to this.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

#: What a command does: it takes parsed arguments and returns an exit code.
Action: TypeAlias = Callable[[argparse.Namespace], int]


def add_command(
    commands: Commands,
    name: str,
    summary: str,
    action: Action | None = None,
    *,
    json: str = "",
    needs: Sequence[str] = (),
    epilog: str = "",
) -> argparse.ArgumentParser:
    """Add a command.

    Parameters
    ----------
    commands : Commands
    name, summary : str
        The summary is shown in lists, and as a sentence of its own.
    action : callable, optional
        None for a command that has commands itself.
    json : str
        What the option ``--json`` does; without it there is no such option.
    needs : sequence of str
        Modules that the action imports and that take long: they are imported before it does anything.
    epilog : str
    """
    added: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", epilog=epilog
    )
    if action is not None:
        added.set_defaults(act=action, needs=needs)
    if json:
        added.add_argument("--json", action="store_true", help=json)
    return added


def number(text: str) -> float:
    """Read an option's argument as a number that a float can hold."""
    try:
        return decimal(text)
    except BeyondFloatError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    except ValueError:
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        raise argparse.ArgumentTypeError(f"must be a number, got {shown!r}") from None


def whole(option: str, least: int = 0, most: int = 2**63 - 1) -> Callable[[str], int]:
    """Return what reads a whole number within limits as an option's argument."""

    def read(text: str) -> int:
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        try:
            # Python refuses to read thousands of digits; all numbers of a hundred are too large.
            number = int(f"{text[:100]}{'0' * text[100:].isdigit()}")
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be a whole number, got {shown!r}") from None
        if not least <= number <= most:
            limit = f"at least {least}" if number < least else f"at most {most}"
            raise InputError(f"{option}: must be {limit}, got {shown}")
        return number

    return read


def add_overrides(command: argparse.ArgumentParser) -> None:
    """Add what all commands on scenarios take."""
    command.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="set a dotted key to a YAML value; may be given again",
    )
    command.add_argument("--replicas", type=whole("--replicas", 1), metavar="R", help="number of replicas")
    command.add_argument("--seed", type=whole("--seed", -(2**63) + 1), metavar="S", help="seed of the study")
    command.add_argument("--engine", choices=("auto", "simpy", "array"), help="what makes the events")
    command.add_argument(
        "--confirm-cells", action="store_true", help="accept a study of any size: cells, memory and time"
    )


def load_scenario(path: str, asked: argparse.Namespace) -> "Scenario":
    """Read a scenario with what the command line sets."""
    from p2psim.scenario.model import Scenario

    if not os.path.lexists(path):
        raise InputError(Fault(f"there is no such file{hint(path)}", path=path))
    if os.path.isdir(path):
        raise InputError(Fault("is a folder; give a scenario file", path=path))
    overrides = list(asked.set)
    for key, value in (("replicas", asked.replicas), ("seed", asked.seed), ("network.engine", asked.engine)):
        if value is not None:
            overrides.append(f"{key}={value}")
    return Scenario.load(path, overrides, confirm_cells=asked.confirm_cells)


def read_references(given: Sequence[str]) -> dict[str, object]:
    """Swept keys and values as the command line gives them."""
    from p2psim.scenario.yaml import scalar

    pairs = [text.partition("=") for text in given]
    for key, equals, value in pairs:
        if not (key and equals and value):
            raise InputError(f"--reference takes KEY=VALUE, got {key}{equals}{value}")
    try:
        return {key: scalar(value) for key, _, value in pairs}
    except ValueError as error:
        raise InputError(f"--reference: {error}") from None


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
