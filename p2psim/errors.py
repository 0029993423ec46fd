"""Errors that are meant for the person who wrote the scenario, and the exit codes they end in."""

from dataclasses import dataclass


class P2PSimError(Exception):
    """Base of all errors that p2psim raises on purpose."""


def first_line(error: BaseException) -> str:
    """What an error says first; its kind where it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


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
    """

    message: str
    key: str = ""
    path: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        place = self.path
        if self.line:
            place = f"{place or '<text>'}:{self.line}:{self.column}"
        return ": ".join(part for part in (place, self.key, self.message) if part)


class InputError(P2PSimError):
    """The input is wrong; nothing was written. Carries every fault that was found, not only the first."""

    def __init__(self, *faults: Fault | str):
        self.faults = [fault if isinstance(fault, Fault) else Fault(fault) for fault in faults]
        super().__init__("\n".join(map(str, self.faults)))


class MeaningError(InputError):
    """A value that is well formed but means nothing here, named by its dotted key.

    Raised deep inside, where the file is unknown; whoever loaded the file adds the place.
    """

    def __init__(self, key: str, message: str):
        super().__init__(Fault(message, key))


class MissingPartError(InputError):
    """A run folder names parts of modules that made its results, and that the user has not let in."""

    def __init__(self, faults: list[Fault], modules: list[str]):
        names, options = ", ".join(modules), " ".join(f"--parts {module}" for module in modules)
        told = f"the results were made with parts of {names}; if you trust it, add {options}"
        super().__init__(*faults, told)


class MissingSourceError(InputError):
    """A data file or an optional package is not there; the message is the command that cures it."""


class FolderError(InputError):
    """A run folder cannot be used: foreign, damaged, of another scenario, or not a folder."""


class SimulationError(P2PSimError):
    """A run went wrong in the middle: what had been finished is kept."""


class FetchError(P2PSimError):
    """A data set could not be fetched; nothing of it was kept."""
