"""JSON files that tell their own damage, and other files that another one tells it of: by hashes."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from p2psim.core.errors import first_line
from p2psim.core.files import sha256_of

_MARK, _END = ',\n  "sha256": "', '"\n}\n'

#: Size and SHA-256 of a file.
Print = tuple[int, str]


def sealed(text: str) -> str:
    """Text of a JSON object, with the hash of all that stands before it as its last entry, ``sha256``."""
    body = text.rstrip().removesuffix("}").rstrip()
    return f"{body}{_MARK}{_hash(body)}{_END}"


class DamagedError(ValueError):
    """A file is not what was written; says why in words."""


@contextmanager
def opened(path: Path) -> Iterator[dict[str, Any]]:
    """Read a JSON object, with its seal as ``sha256`` if it has one; the block takes from it what it needs.

    Raises
    ------
    DamagedError
        If it is not JSON, not an object, not what was sealed, or the block does not find what it needs.
    OSError
        If it cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
        body, mark, rest = text.rpartition(_MARK)
        sealed_so = not mark or rest == _hash(body) + _END
        tree = json.loads(text) if sealed_so else None
    except (UnicodeError, json.JSONDecodeError, RecursionError) as error:
        raise DamagedError(first_line(error)) from None
    except ValueError:
        raise DamagedError("it holds a number that is too long") from None
    if not isinstance(tree, dict) or ("sha256" in tree) != bool(mark):
        raise DamagedError("it is not what was written")
    try:
        yield tree
    except KeyError as error:
        raise DamagedError(f"the entry {error} is missing") from None
    except (ValueError, TypeError, AttributeError, IndexError):
        raise DamagedError("an entry is not of the form that p2psim writes") from None


def _hash(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def of_one_folder(files: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what is listed of files, if each is called by a name alone: a path would lead out of the folder.

    Raises
    ------
    ValueError
        If one is not.
    """
    if any(name in ("", "..") or Path(name).name != name or "\0" in name for name in files):
        raise ValueError("a path is listed, not a name")
    return files


def print_of(path: Path) -> Print:
    """Size and hash of a file."""
    return path.stat().st_size, sha256_of(path)


def damage(path: Path, written: Print | None) -> str:
    """What is wrong with a file beside what was written, as far as that is known; empty when nothing is."""
    if not path.is_file():
        return "is not a file" if path.exists() else "missing"
    if written is None:
        return ""
    if path.stat().st_size != written[0] or sha256_of(path) != written[1]:
        return "damaged, or changed by another program"
    return ""
