"""Files that a scenario names: where they are, and whether they are there."""

import hashlib
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationInfo

from p2psim.errors import Fault, MeaningError, MissingSourceError


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's contents."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def absolute(path: str, info: ValidationInfo) -> str:
    """Path from the scenario's folder, where the validation knows it; see `DataPath`."""
    if not path:
        raise ValueError("must name a file, got ''")
    folder = (info.context or {}).get("folder", "")
    return str(Path(folder).joinpath(Path(path).expanduser())) if folder else path


#: A path. Whoever reads a scenario from a file validates it with ``context={"folder": its folder}``: a
#: relative path is then one from there. Without it (Python), it is one from the working directory.
DataPath = Annotated[str, AfterValidator(absolute)]


#: Hash of a file's contents, which is written down with its path, so that a run tells which file it was.
Seal = Annotated[
    str, Field(description="SHA-256 of its contents; found when left out, and checked when given")
]


def sealed(entries: Any, info: ValidationInfo) -> Any:
    """Entries of a mapping with ``path``, with the hash of the file there as ``sha256``; as they are without a file.

    Raises
    ------
    ValueError
        If another hash is given.
    """
    if not isinstance(entries, dict) or not isinstance(entries.get("path"), str) or not entries["path"]:
        return entries
    place = Path(absolute(entries["path"], info)).expanduser()
    if not place.is_file():
        return entries
    found = sha256_of(place)
    given = entries.get("sha256") or found
    if given != found:
        raise ValueError(f"{place} is another file than before: its SHA-256 is {found}, not {given}")
    return {**entries, "sha256": found}


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
