"""Files: those that a scenario names, where they are and what they hold; and those that appear whole or not at all.

What is written stands under another name until it has been flushed to disk; then it is renamed.
"""

import contextlib
import errno
import hashlib
import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationInfo

from p2psim.core.errors import Fault, InputError, MeaningError, MissingSourceError, show

_PACKAGE = Path(__file__).parents[1]

#: Windows opens no folder, and flushes only files that may be written.
_OPENS_FOLDERS = hasattr(os, "O_DIRECTORY")


def sync(path: Path) -> None:
    """Flush a file or a directory to disk."""
    if not _OPENS_FOLDERS and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDONLY if _OPENS_FOLDERS else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def aside(path: Path) -> Iterator[Path]:
    """Give a name to write a file or directory under; on success it becomes `path`, on failure it is removed."""
    temporary = path.with_name(f".{path.name}.aside")
    # Left by a process that was killed; or a link, which would lead the writing to another file.
    _remove(temporary)
    try:
        yield temporary
        sync(temporary)
        os.replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise
    with contextlib.suppress(OSError):
        sync(path.parent)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, whole or not at all."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all."""
    with aside(path) as temporary:
        temporary.write_bytes(content)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's contents."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def absolute(path: str, info: ValidationInfo) -> str:
    """Path from the scenario's folder, where the validation knows it; see `DataPath`."""
    if not path:
        raise ValueError("must name a file, got ''")
    folder = (info.context or {}).get("folder", "")
    place = at_home(path)
    return str(Path(folder).joinpath(place)) if folder else path


def at_home(path: str) -> Path:
    """Path with ``~`` and ``~name`` expanded.

    Raises
    ------
    ValueError
        If the user's home folder is not known.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"{path}: the home folder of this user is not known") from None


#: A path. Whoever reads a scenario validates it with ``context={"folder": …}``, its file's folder or the working
#: directory: a relative path is one from there.
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
    try:
        place = at_home(absolute(entries["path"], info))
        if not place.is_file():
            return entries
        digest = sha256_of(place)
    except (OSError, ValueError):
        return entries  # said of the path itself, or where it is read
    given = entries.get("sha256") or digest
    if given != digest:
        raise ValueError(f"{place} is not the same file as before: its SHA-256 is {digest}, not {given}")
    return {**entries, "sha256": digest}


#: What a path may lead to beside a file, as a person would call it.
_OTHER_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def fault_of(place: str | Path) -> str | None:
    """Say why what is at a path is not read: only regular files are. None for a file, and where there is nothing.

    A pipe would wait for ever, and a device may never end.
    """
    try:
        mode = os.stat(place).st_mode
    except (OSError, ValueError):
        return None
    kind = next((name for is_one, name in _OTHER_KINDS if is_one(mode)), None)
    return None if kind is None else f"{place} is {kind}, not a file"


def checked(path: str, key: str) -> Path:
    """Return the path of a file, which a scenario names.

    Raises
    ------
    MissingSourceError
        If there is none.
    MeaningError
        If it is a folder, a pipe or a device.
    """
    try:
        place = at_home(path)
    except ValueError as error:
        raise MeaningError(key, str(error)) from None
    if (fault := fault_of(place)) is not None:
        raise MeaningError(key, fault)
    if not place.is_file():
        cure = f"; name another with --set {key}=FILE" if "." in key else ""
        raise MissingSourceError(Fault(f"no such file: {path}{cure}", key))
    return place


def path_of(name: str, value: object) -> Path:
    """Check an argument that is a path, with ``~`` expanded; anything else is an `InputError`."""
    if not isinstance(value, str | os.PathLike) or not isinstance(path := os.fspath(value), str):
        raise InputError(f"{name}: must be a path, got {show(value)}")
    if "\0" in path or not path:
        raise InputError(f"{name}: must be a path, got {path!a}")
    try:
        path.encode()
        place = at_home(path)
        os.lstat(place)
    except UnicodeEncodeError:
        raise InputError(f"{name}: must be a path in Unicode, got {path!a}") from None
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InputError(f"{name}: must be a path, got one that is too long, {path[:40]!a}…") from None
    return place


#: Where sources that are compiled, or give constants to such, may be.
SOURCES = ("core/*.py", "network/**/*.py", "learning/**/*.py", "privacy/*.py", "theory/forecasts/*.py")

#: Caches of other sources are removed when they have not been used for so long.
_KEEP_SECONDS = 7 * 86400.0


@lru_cache(maxsize=1)
def cache_directory() -> Path:
    """Directory of the kernels as they are now written; it may not exist yet. Does not load numba.

    It lies in ``NUMBA_CACHE_DIR`` if that is set, else beside the package, else, where that cannot be written to,
    in the user's cache.
    """
    digest = hashlib.blake2b(digest_size=8)
    for pattern in SOURCES:
        for path in sorted(_PACKAGE.glob(pattern)):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    root = os.environ.get("NUMBA_CACHE_DIR")
    if root:
        home = Path(root)
    elif os.access(_PACKAGE, os.W_OK):
        home = _PACKAGE / "__pycache__"
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "p2psim"
    return home / f"kernels-{digest.hexdigest()}"


def is_compiled() -> bool:
    """Whether a kernel that every run needs is in the cache. Does not load numba."""
    return any(cache_directory().rglob("philox.*.nbi"))


@lru_cache(maxsize=1)
def prepared_cache(directory: Path) -> Path:
    """Make the directory, and remove those of other sources that have not been used for long."""
    directory.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):
        os.utime(directory)
        for other in directory.parent.glob("kernels-*"):
            if other != directory and time.time() - other.stat().st_mtime > _KEEP_SECONDS:
                shutil.rmtree(other, ignore_errors=True)
    return directory
