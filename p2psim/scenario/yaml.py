"""Reading YAML 1.2 (core schema) safely, with the place of every key and value; and writing it for people.

The parser's events are turned into nodes here, not by the library's constructor, for three reasons. Scalars follow the
core schema exactly: ``1e-5`` is a number, ``yes`` and ``on`` are text, ``1_000`` is text. Only plain values can result:
tags are refused. And a file cannot do harm: its size, its depth and what its aliases expand to are limited, and
duplicate keys are errors. Sets of numbers are written as ranges: ``0-4,7``.
"""

import io
import os
import re
import stat
from collections.abc import Collection, Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML, events
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.representer import SafeRepresenter

from p2psim.core.errors import Fault, InputError
from p2psim.core.nodes import Node, Place, at
from p2psim.core.text_tables import decimal

#: Bytes that a scenario may have. Scenarios have a few thousand.
MOST_BYTES = 1_000_000
#: Mappings and lists inside each other, aliases expanded.
MOST_DEPTH = 50
#: Values that may come out of aliases. A "YAML bomb" has a few lines that expand to billions.
MOST_ALIASED = 10_000

#: Digits that a whole number may have. A float has 309 before its point.
MOST_DIGITS = 400

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{sign + word: float(f"{sign}inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_INTEGERS = (
    (re.compile(r"[-+]?[0-9]+"), 10),
    (re.compile(r"0o[0-7]+"), 8),
    (re.compile(r"0x[0-9a-fA-F]+"), 16),
)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SURROGATE = re.compile("[\ud800-\udfff]")
#: What the library stumbles over without saying where: characters beyond Unicode, and a version that it does not know.
_STUMBLES = re.compile(r"\\U(?!000|0010)[0-9a-fA-F]{8}|^%YAML.*", re.MULTILINE)


def read_file(path: str | Path) -> Node:
    """Read a YAML file.

    Raises
    ------
    InputError
        If it cannot be read, or `read` refuses it.
    """
    return read(contents(path), str(path))


def contents(path: str | Path) -> bytes:
    """Read the bytes of a file, as many as `read` takes and one more.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise InputError(Fault("cannot be read: it is not a regular file", path=str(path)))
        with open(path, "rb") as file:
            return file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(Fault(f"cannot be read: {why}", path=str(path))) from error


def read(data: str | bytes, path: str = "") -> Node:
    """Read one YAML document.

    Parameters
    ----------
    data : str or bytes
        Bytes are UTF-8.
    path : str
        Named in errors.

    Raises
    ------
    InputError
        With line and column, if it is not UTF-8, not YAML, or too large; or has duplicate keys, tags, several
        documents, numbers beyond a float, or aliases that expand to too much or to themselves.
    """
    node, faults = read_leniently(data, path)
    if faults:
        raise InputError(*faults)
    return node


def read_leniently(data: str | bytes, path: str = "") -> tuple[Node, list[Fault]]:
    """Read one YAML document whose keys may be given twice, and numbers too large; they are returned as faults.

    The later of two equal keys counts, and a number too large is text. Otherwise like `read`.
    """
    if len(data) > MOST_BYTES:
        raise InputError(Fault(f"is larger than {MOST_BYTES:,} bytes; this is not a scenario", path=path))
    text = _decode(data, path) if isinstance(data, bytes) else data.removeprefix("\ufeff")
    builder = _Builder(path, text)
    try:
        return builder.document(), builder.faults
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = ", ".join(str(part) for part in (error.context, error.problem) if part)
        place = Place(path, mark.line + 1, mark.column + 1) if mark else Place(path)
        raise _refusal(f"is not YAML: {what}", place) from error
    except ReaderError as error:
        message = f"is not YAML: the character {error.character!r} is not allowed"
        raise _refusal(message, _place_after(text[: error.position], path)) from error
    except (YAMLError, ValueError, OverflowError, AssertionError) as error:
        match = _STUMBLES.search(text)
        if match is None:
            raise InputError(Fault("is not YAML", path=path)) from error
        version = match[0].startswith("%")
        what = f"YAML 1.2 is expected, got {match[0][:20]}" if version else f"{match[0]} is not a character"
        message = what if version else f"is not YAML: {what}"
        raise _refusal(message, _place_after(text[: match.start()], path)) from error


def _place_after(before: str | bytes, path: str) -> Place:
    lines = before.split("\n") if isinstance(before, str) else before.split(b"\n")
    return Place(path, len(lines), len(lines[-1]) + 1)


def scalar(text: str) -> Any:
    """Return what an unquoted scalar means under the core schema of YAML 1.2.

    Raises
    ------
    ValueError
        If it is a number that a float cannot hold.
    """
    if text in _WORDS:
        return _WORDS[text]
    for written, base in _INTEGERS:
        if written.fullmatch(text):
            if len(text) > MOST_DIGITS:
                raise ValueError(f"{text[:20]}… is too large for a number")
            return int(text, base)
    return decimal(text, ".inf") if _FLOAT.fullmatch(text) else text


def _decode(data: bytes, path: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 text: byte 0x{data[error.start]:02x}"
        raise _refusal(message, _place_after(data[: error.start], path)) from error


def _refusal(message: str, place: Place) -> InputError:
    return InputError(at(place, "", message))


#: A node with its size and its depth, aliases expanded.
_Sized = tuple[Node, int, int]


class _Builder:
    """Builds nodes from the parser's events, in their order."""

    def __init__(self, path: str, text: str):
        self.path, self.text = path, text
        self.events = YAML(typ="safe", pure=True).parse(text)
        # None while what an anchor names is incomplete.
        self.anchors: dict[str, _Sized | None] = {}
        self.aliased = 0
        self.faults: list[Fault] = []

    def document(self) -> Node:
        root = None
        for event in self.events:
            if isinstance(event, events.DocumentStartEvent):
                if root is not None:
                    raise _refusal("a second document begins here; one is expected", self._place(event))
                if event.version not in (None, (1, 2)):
                    # The event begins after the line that is wrong.
                    before = re.split("^%YAML", self.text, maxsplit=1, flags=re.MULTILINE)[0]
                    message = f"YAML 1.2 is expected, got {'.'.join(map(str, event.version))}"
                    raise _refusal(message, _place_after(before, self.path))
            elif isinstance(event, events.NodeEvent):
                root, _, _ = self._node(event, 0)
        return root or Node(None, Place(self.path))

    def _place(self, event: Any) -> Place:
        return Place(self.path, event.start_mark.line + 1, event.start_mark.column + 1)

    def _node(self, event: Any, level: int) -> _Sized:
        """What begins with an event, inside as many mappings and lists as its level says."""
        if isinstance(event, events.AliasEvent):
            return self._alias(event, level)
        place = self._begin(event)
        if isinstance(event, events.ScalarEvent):
            node: _Sized = (Node(self._scalar(event, place), place), 1, 0)
        else:
            self._check_depth(level + 1, place)
            node = self._collection(event, place, level + 1)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def _begin(self, event: Any) -> Place:
        place = self._place(event)
        if event.tag is not None:
            raise _refusal(f"tags are not allowed, got {event.tag}", place)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        if isinstance(event, events.ScalarEvent) and _SURROGATE.search(event.value):
            raise _refusal("half of a surrogate pair is not a character", place)
        return place

    def _scalar(self, event: Any, place: Place) -> Any:
        try:
            return scalar(event.value) if event.implicit[0] else event.value
        except ValueError as error:
            self.faults.append(at(place, "", str(error)))
            return event.value

    def _collection(self, start: Any, place: Place, level: int) -> _Sized:
        entries: list[tuple[str, Node]] = []
        keys: dict[str, Place] = {}
        is_mapping = isinstance(start, events.MappingStartEvent)
        size = depth = 1
        while not isinstance(event := next(self.events), events.CollectionEndEvent):
            key = self._key(event, keys, level) if is_mapping else ""
            node, more, below = self._node(next(self.events) if is_mapping else event, level)
            size, depth = size + more, max(depth, below + 1)
            entries.append((key, node))
        content = dict(entries) if is_mapping else [node for _, node in entries]
        return Node(content, place, keys), size, depth

    def _key(self, event: Any, keys: dict[str, Place], level: int) -> str:
        """A key of a mapping; its place is added to those of the others."""
        if isinstance(event, events.AliasEvent):
            place, key = self._place(event), self._alias(event, level)[0].content
        else:
            place, key = self._begin(event), getattr(event, "value", None)
            if key == "" and not event.style:
                raise _refusal("a key is missing before ':'", place)
            if event.anchor is not None:
                self.anchors[event.anchor] = (Node(key, place), 1, 0)
        if not isinstance(key, str):
            raise _refusal("a key must be a name or a number", place)
        if key in keys:
            message = f"the key {key!r} is given twice; the first is at {keys[key].line}:{keys[key].column}"
            self.faults.append(at(place, "", message))
        keys.setdefault(key, place)
        return key

    def _alias(self, event: Any, level: int) -> _Sized:
        place, anchor = self._place(event), event.anchor
        if anchor not in self.anchors:
            raise _refusal(f"no anchor &{anchor} stands before this alias", place)
        if (node := self.anchors[anchor]) is None:
            raise _refusal(f"the alias *{anchor} stands inside what it refers to", place)
        _, size, depth = node
        self.aliased += size
        if self.aliased > MOST_ALIASED:
            raise _refusal(f"aliases expand to more than {MOST_ALIASED:,} values", place)
        self._check_depth(level + depth, place)
        return node

    def _check_depth(self, depth: int, place: Place) -> None:
        if depth > MOST_DEPTH:
            raise _refusal(f"more than {MOST_DEPTH} mappings and lists stand inside each other", place)


class _Representer(SafeRepresenter):
    """Writes everything out: no anchors and aliases, which a reader would have to follow."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_str(self, data: str) -> ScalarNode:
        """Write text in double quotes, where all else has escapes, if it holds more than visible characters."""
        style = None if data.isprintable() else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", data, style)


_Representer.add_representer(str, _Representer.represent_str)


def write(tree: dict[str, Any]) -> str:
    """Write a tree of dictionaries, lists and scalars; reading it gives the same tree."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Representer = _Representer
    yaml.default_flow_style = None  # in one line what has nothing nested
    yaml.allow_unicode = True
    yaml.width = 110
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    text = io.StringIO()
    yaml.dump(tree, text)
    return text.getvalue()


def runs_of(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """First and last of each run of numbers that follow each other."""
    # A number less its place is the same within a run.
    runs = groupby(enumerate(sorted(numbers)), lambda placed: placed[1] - placed[0])
    ends = ([number for _, number in run] for _, run in runs)
    return [(run[0], run[-1]) for run in ends]


def to_ranges(numbers: Iterable[int]) -> str:
    """Write a set of numbers as ``0-4,7``."""
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs_of(numbers))


def cells_named(numbers: Collection[int]) -> str:
    """``cell 3``, or ``cells 0-4,7``."""
    return f"cell{'s' if len(numbers) > 1 else ''} {to_ranges(numbers)}"


def from_ranges(text: str) -> list[int]:
    """Inverse of `to_ranges`."""
    numbers: list[int] = []
    for piece in filter(None, text.split(",")):
        first, _, last = piece.partition("-")
        numbers.extend(range(int(first), int(last or first) + 1))
    return numbers
