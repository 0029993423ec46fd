"""Errors that are meant for the person who wrote the scenario, and the exit codes they end in."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from json import JSONDecodeError
from typing import Any


class P2PSimError(Exception):
    """Base of all errors that p2psim raises on purpose."""


#: What some errors of Python mean; the others say it themselves.
_IN_WORDS: tuple[tuple[type[BaseException], Callable[[Any], str]], ...] = (
    (UnicodeError, lambda error: "it is not UTF-8 text"),
    (JSONDecodeError, lambda error: f"line {error.lineno}, column {error.colno} is not JSON"),
    (RecursionError, lambda error: "it is nested too deep"),
    (KeyError, lambda error: f"{error} is missing"),
    (OSError, lambda error: error.strerror or str(error)),
    (MemoryError, lambda error: str(error) or "not enough memory"),
    (EOFError, lambda error: str(error) or "it ends too early"),
)


def first_line(error: BaseException) -> str:
    """What an error says first, in words: Python's names of errors say nothing to most readers."""
    said = next((say(error) for kind, say in _IN_WORDS if isinstance(error, kind)), str(error))
    return (said.strip() or "no reason is given").splitlines()[0]


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with the input, and where.

    Attributes
    ----------
    message : str
        What was expected and what was given.
    key : str
        The dotted scenario key, empty when the fault concerns the whole file.
    path : str
        The file, empty when the input did not come from one.
    line, column : int
        Counted from one; zero when there is no place.
    names_part : bool
        Whether a name is unknown that a part may have whose module has not been let in.
    """

    message: str
    key: str = ""
    path: str = ""
    line: int = 0
    column: int = 0
    names_part: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        place = self.path
        if self.line:
            place = f"{place or '<text>'}:{self.line}:{self.column}"
        # An option of the command that is named by its key, as `--set KEY` is, has said the key already.
        is_said = self.path.startswith("--") and f".{self.path.split()[-1]}".endswith(f".{self.key}")
        return ": ".join(part for part in (place, "" if is_said else self.key, self.message) if part)


class InputError(P2PSimError):
    """The input is wrong; nothing was written. Carries every fault that was found, not only the first."""

    def __init__(self, *faults: Fault | str):
        # Not passed on: `args` stay those of the subclass, from which SimPy and pickle make copies.
        self.faults = [fault if isinstance(fault, Fault) else Fault(fault) for fault in faults]

    def __str__(self) -> str:
        return "\n".join(map(str, self.faults))


class OptionError(InputError, ValueError):
    """A part or a section that Python builds has wrong keys or values; every one is named."""


class MeaningError(InputError):
    """A value that is well formed but means nothing here, named by its dotted key.

    Raised deep inside, where the file is unknown; whoever loaded the file adds the place.
    """

    def __init__(self, key: str, message: str):
        super().__init__(Fault(message, key))


class AgentError(MeaningError):
    """A `MeaningError` about one agent, known by its index; whoever knows the labels of agents calls it by its own.

    Parameters
    ----------
    key : str
    message : str
        With ``{agent}`` where the agent is named.
    agent : int
    """

    def __init__(self, key: str, message: str, agent: int):
        super().__init__(key, message.replace("{agent}", str(agent)))
        self.key, self.message, self.agent = key, message, agent

    def named(self, labels: Sequence[str]) -> MeaningError:
        """The same with the agent's label."""
        return MeaningError(self.key, self.message.replace("{agent}", labels[self.agent]))


class MissingPartError(InputError):
    """A run folder names parts of modules that made its results, and that the user has not let in."""

    def __init__(self, faults: list[Fault], modules: list[str]):
        names, options = ", ".join(modules), " ".join(f"--parts {module}" for module in modules)
        message = f"the results were made with parts of {names}; if you trust it, add {options}"
        super().__init__(*faults, message)


class MissingSourceError(InputError):
    """A data file or an optional package is not there; the message says what to do about it."""


def not_installed(package: str, extra: str, key: str = "") -> MissingSourceError:
    """The error of a package that is not there, with the command that installs it."""
    message = f"{package} is not installed, which this needs; run pip install 'p2psim[{extra}]'"
    return MissingSourceError(Fault(message, key))


class FolderError(InputError):
    """A run folder cannot be used: foreign, damaged, of another scenario, or not a folder."""


class SimulationError(P2PSimError):
    """A run went wrong in the middle: what had been finished is kept."""


class FetchError(P2PSimError):
    """A data set could not be fetched; nothing of it was kept."""


def check_place(what: str, given: int, count: int) -> None:
    """Refuse a number of a cell, a replica or an agent that there is not; they count from 0.

    Raises
    ------
    InputError
        With what was given, and what is allowed.
    """
    if not 0 <= given < count:
        raise InputError(f"{what}: must be from 0 to {count - 1}, got {given}")


def show(value: Any) -> str:
    """Write a value as an error message gives it back."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else (".inf" if value > 0 else "-.inf")
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:57] + "...")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    return f"a {type(value).__name__}"
