"""JSON files that tell their own damage, and other files that another one tells it of: by hashes."""

import hashlib
import json
from pathlib import Path
from typing import Any

from p2psim.paths import sha256_of

_MARK, _END = ',\n  "sha256": "', '"\n}\n'

#: Size and SHA-256 of a file.
Print = tuple[int, str]


def sealed(text: str) -> str:
    """Text of a JSON object, with the hash of all that stands before it as its last entry, ``sha256``."""
    body = text.rstrip().removesuffix("}").rstrip()
    return f"{body}{_MARK}{_hash(body)}{_END}"


def parse(text: str) -> dict[str, Any]:
    """The object, with its seal as ``sha256`` if it has one.

    Raises
    ------
    ValueError
        If it is not JSON, not an object, or not what was sealed.
    """
    body, mark, rest = text.rpartition(_MARK)
    if mark and rest != _hash(body) + _END:
        raise ValueError("it is not what was written")
    try:
        tree = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if not isinstance(tree, dict) or ("sha256" in tree) != bool(mark):
        raise ValueError("it is not what was written")
    return tree


def _hash(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


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
