"""Files that appear whole or not at all: written under another name, flushed to disk, then renamed."""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def sync(path: Path) -> None:
    """Flush a file or a directory to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def aside(path: Path) -> Iterator[Path]:
    """Give a name to write under; on success it is renamed to `path`, on failure it is removed."""
    temporary = path.with_name(f".{path.name}.aside")
    # Left by a process that was killed; or a link, which would lead the writing to another file.
    temporary.unlink(missing_ok=True)
    try:
        yield temporary
        sync(temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    with contextlib.suppress(OSError):
        sync(path.parent)


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, whole or not at all."""
    with aside(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all."""
    with aside(path) as temporary:
        temporary.write_bytes(content)


def write_directory(path: Path, files: Mapping[str, Any]) -> None:
    """Write a directory of files, whole or not at all.

    Parameters
    ----------
    path : Path
        Must not exist.
    files : mapping
        From file name to its content: bytes or a buffer.
    """
    temporary = path.with_name(f".{path.name}.aside")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        for name, content in files.items():
            with open(temporary / name, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
        os.rename(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    with contextlib.suppress(OSError):
        sync(path.parent)
