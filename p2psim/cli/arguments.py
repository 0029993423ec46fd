"""What commands share: arguments and how they are read, scenarios with overrides, and the shipped scenarios."""

import argparse
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from p2psim.core.errors import Fault, InputError
from p2psim.core.text_tables import BeyondFloatError, decimal

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from p2psim.scenario.model import Scenario

#: Limits of numbers of cells, replicas and agents: they are checked where it is known how many there are.
ANY = -(10**101), 10**101

#: Parsers of commands are added to this.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_Options: TypeAlias = "argparse._ActionsContainer"

#: An option, or several: it adds itself to a parser.
Option: TypeAlias = Callable[[_Options], object]

#: What adds a command to the parsers of commands.
Adder: TypeAlias = Callable[[Commands], None]

#: What a command does: it takes parsed arguments and returns an exit code; none where all is done.
Action: TypeAlias = Callable[[argparse.Namespace], int | None]


def command(
    name: str, summary: str, *options: Option, json: str = "", needs: Sequence[str] = (), epilog: str = ""
) -> Callable[[Action], Adder]:
    """Declare a command; used as a decorator of what it does, whose name then stands for what adds the command.

    Parameters
    ----------
    name, summary : str
        The summary is shown in lists, and as a sentence of its own.
    *options : Option
        In the order of the help, after ``--json`` and before ``--parts``, which every action takes.
    json : str
        What the option ``--json`` does; without it there is no such option.
    needs : sequence of str
        Modules that the action imports and that take long: they are imported before it does anything.
    epilog : str
    """
    in_json = (option("--json", json),) if json else ()

    def declare(action: Action) -> Adder:
        def add(commands: Commands) -> None:
            parser = commands.add_parser(name, help=summary, description=_sentence(summary), epilog=epilog)
            parser.set_defaults(act=action, needs=needs)
            for add_option in (*in_json, *options, _PARTS):
                add_option(parser)

        return add

    return declare


def group(name: str, summary: str, *actions: Adder) -> Adder:
    """Declare a command that has commands itself."""

    def add(commands: Commands) -> None:
        parser = commands.add_parser(name, help=summary, description=_sentence(summary))
        inner = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
        for add_action in actions:
            add_action(inner)

    return add


def _sentence(summary: str) -> str:
    return f"{summary[0].upper()}{summary[1:]}."


def option(
    shown: str,
    help: str,
    read: Callable[[str], object] | None = None,
    *,
    whole: Sequence[int] | None = None,
    repeated: bool = False,
    **settings: Any,
) -> Option:
    """Declare an option or an argument of a command.

    Parameters
    ----------
    shown : str
        ``--name VALUE`` for an option with a value, ``--name`` for a switch, ``name SHOWN`` for an argument.
    help : str
    read : callable, optional
        From the text of the value to the value; text stays text when left out.
    whole : sequence of int, optional
        Instead: a whole number within these limits, at least 0 and below 2^63 when left out of it.
    repeated : bool
        Whether it may be repeated, for a list that is empty by default.
    **settings
        Further ones of `argparse.ArgumentParser.add_argument`.
    """
    name, _, metavar = shown.partition(" ")
    if metavar:
        settings["metavar"] = metavar
    elif not settings:
        settings["action"] = "store_true"
    if repeated:
        settings = {"action": "append", "default": [], **settings}
    if read is not None or whole is not None:
        settings["type"] = read or whole_number(name, *(whole or ()))
    return lambda parser: parser.add_argument(name, help=help, **settings)


def one_of(*options: Option, required: bool = True) -> Option:
    """Declare options that exclude each other; one must be given, if that is required."""

    def add(parser: _Options) -> object:
        group = parser.add_mutually_exclusive_group(required=required)
        return [add(group) for add in options]

    return add


def number(text: str) -> float:
    """Read an option's argument as a number that a float can hold."""
    try:
        return decimal(text)
    except BeyondFloatError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    except ValueError:
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        raise argparse.ArgumentTypeError(f"must be a number, got {shown!r}") from None


def whole_number(option: str, least: int = 0, most: int = 2**63 - 1) -> Callable[[str], int]:
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


_PARTS = option(
    "--parts MODULE",
    "import this Python module, so that the input can name its parts; may be repeated",
    repeated=True,
)

#: What all commands on scenarios take.
OVERRIDES: tuple[Option, ...] = (
    option("--set KEY=VALUE", "set a dotted key to a YAML value; may be repeated", repeated=True),
    option("--replicas R", "number of replicas", whole=(1,)),
    option("--seed S", "seed of the study", whole=(-(2**63) + 1,)),
    option("--engine", "what makes the events", choices=("auto", "simpy", "array")),
    option("--confirm-cells", "accept a study of any size: cells, memory and time"),
)


def as_given(args: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Options that are handed on as they are given, by name."""
    return {name: getattr(args, name) for name in names}


def load_scenario(path: str, args: argparse.Namespace) -> "Scenario":
    """Read a scenario with what the command line sets."""
    from p2psim.scenario.model import Scenario

    if not os.path.lexists(path):
        raise InputError(Fault(f"there is no such file{hint(path)}", path=path))
    if os.path.isdir(path):
        raise InputError(Fault("is a folder; give a scenario file", path=path))
    overrides = list(args.set)
    for key, value in (("replicas", args.replicas), ("seed", args.seed), ("network.engine", args.engine)):
        if value is not None:
            overrides.append(f"{key}={value}")
    return Scenario.load(path, overrides, confirm_cells=args.confirm_cells)


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
    files = {file.name: file for file in _folder().iterdir() if file.name.endswith(".yaml")}
    texts = ((name, files[name].read_text(encoding="utf-8")) for name in sorted(files))
    questions = ((name, text.partition("\n")[0].removeprefix("#").strip()) for name, text in texts)
    return {name.removesuffix(".yaml"): question for name, question in questions}


def hint(path: str | Path) -> str:
    """What was probably meant by a file that is not there: a shipped scenario of this name; empty otherwise."""
    name = Path(path).name.removesuffix(".yaml").replace("-", "_")
    if name not in templates():
        return ""
    shipped = _folder() / f"{name}.yaml"
    here = Path("scenarios", shipped.name)
    where = str(here) if here.is_file() else f"a copy, by p2psim new {name} --from {name}"
    return f"; {name} is a shipped scenario: give {where}"


def read_template(name: str) -> str:
    """Return the text of a shipped scenario, by its name or that of its file.

    Raises
    ------
    InputError
        If there is none of this name.
    """
    from p2psim.core.faults import unknown

    known, given = list(templates()), name
    name = given.removesuffix(".yaml").replace("-", "_")
    if name not in known:
        raise InputError(Fault(unknown("scenario", given, known)))
    return (_folder() / f"{name}.yaml").read_text(encoding="utf-8")


def tables_of(template: str) -> dict[str, str]:
    """Contents of the tables, by their names, that the text of a shipped scenario takes from its own folder."""
    named = re.findall(r"\bpath: (\w+\.csv)\b", template)
    return {name: (_folder() / name).read_text(encoding="utf-8") for name in named}


def _folder() -> "Traversable":
    """Return the folder of shipped scenarios: inside the package when installed, beside it in a checkout."""
    from importlib.resources import files

    inside = files("p2psim") / "_scenarios"
    return inside if inside.is_dir() else Path(__file__).parents[2] / "scenarios"
