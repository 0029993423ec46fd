"""Files that a scenario names: where they are, and whether they are there."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo

from p2psim.errors import Fault, MeaningError, MissingSourceError


def absolute(path: str, info: ValidationInfo) -> str:
    """Path from the scenario's folder, where the validation knows it; see `DataPath`."""
    if not path:
        raise ValueError("must name a file, got ''")
    folder = (info.context or {}).get("folder", "")
    return str(Path(folder).joinpath(Path(path).expanduser())) if folder else path


#: A path. Whoever reads a scenario from a file validates it with ``context={"folder": its folder}``: a
#: relative path is then one from there. Without it (Python), it is one from the working directory.
DataPath = Annotated[str, AfterValidator(absolute)]


def checked(path: str, key: str) -> Path:
    """Return the path of a readable file.

    Raises
    ------
    MissingSourceError
        If there is none.
    MeaningError
        If it is a folder.
    """
    place = Path(path).expanduser()
    if place.is_dir():
        raise MeaningError(key, f"{path} is a folder, not a file")
    if not place.is_file():
        raise MissingSourceError(Fault(f"no such file: {path}; name another with --set {key}=FILE", key))
    return place
