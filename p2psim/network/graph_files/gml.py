"""GML: keys and values, and lists of them in brackets (Himsolt, "GML: A portable graph file format", 1997)."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

from p2psim.decimals import BeyondFloatError
from p2psim.errors import MeaningError
from p2psim.network.graph_files.contents import KEY, FileGraph, file_graph, text_of, whole_or_real

#: Lists within lists; graphs need three or four.
MOST_DEPTH = 50

_TOKEN = re.compile(
    r"""(?P<blank>\s+|\#[^\n]*)
    |(?P<number>[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[Ee][+-]?\d+)?|(?i:infinity|inf|nan))(?![\w.]))
    |(?P<key>[A-Za-z_]\w*)
    |"(?P<string>[^"]*)"
    |(?P<open>\[)
    |(?P<close>\])""",
    re.VERBOSE | re.ASCII,
)

#: Keys and values of a list, in order.
Entries = list[tuple[str, Any]]


def read_gml(place: Path) -> FileGraph:
    """Read the file's graph; nodes are called by their label where all have one, else by name or id.

    Raises
    ------
    MeaningError
        With line and column where the text is not GML.
    ValueError
        If it is no graph.
    """
    found = [value for key, value in parse(text_of(place), place) if key == "graph" and _is_list(value)]
    if len(found) != 1:
        raise ValueError(f"there must be one graph, got {len(found)}")
    nodes: dict[Any, dict[str, Any]] = {}
    for node in _tables(found[0], "node"):
        if "id" not in node:
            raise ValueError("a node has no id")
        if node["id"] in nodes:
            raise ValueError(f"two nodes have the id {node['id']}")
        nodes[node["id"]] = node
    if len({node.get("label", key) for key, node in nodes.items()}) < len(nodes):
        raise ValueError("two nodes have the same label")
    names = ("label", "name") if all("label" in node for node in nodes.values()) else ("name", "")
    edges = [(edge.pop("source", None), edge.pop("target", None), edge) for edge in _tables(found[0], "edge")]
    return file_graph(nodes, edges, _table(found[0]).get("directed") == 1, names)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _tables(entries: Entries, kind: str) -> list[dict[str, Any]]:
    return [_table(value) for key, value in entries if key == kind and _is_list(value)]


def _table(entries: Entries) -> dict[str, Any]:
    """A list as a mapping; a key that comes several times has all its values."""
    table: dict[str, Any] = {}
    for key, value in entries:
        table[key] = (table[key], value) if key in table else value
    return table


def parse(text: str, place: Path) -> Entries:
    """Return the keys and values of a text; values are numbers, strings, or lists of keys and values.

    Raises
    ------
    MeaningError
        With line and column.
    """

    def fail(message: str, at: int) -> MeaningError:
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        return MeaningError(KEY, f"{place}:{line}:{column}: cannot be read as GML: {message}")

    stack: list[Entries] = [[]]
    key, at = "", 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise fail(f"expected a key, a number, text in quotes, [ or ], got {text[at : at + 20]!r}", at)
        kind, written, here, at = match.lastgroup, match.group(), at, match.end()
        if kind == "blank":
            continue
        if kind == "close":
            if key or len(stack) == 1:
                raise fail("unexpected ]", here)
            stack.pop()
        elif not key:
            if kind != "key" and not written.isalpha():
                raise fail(f"expected a key, got {written[:20]!r}", here)
            key = written
        elif kind == "key":
            raise fail(f"expected the value of {key}, got {written[:20]!r}", here)
        elif kind == "open":
            if len(stack) > MOST_DEPTH:
                raise fail(f"lists are nested more than {MOST_DEPTH} deep", here)
            inner: Entries = []
            stack[-1].append((key, inner))
            stack.append(inner)
            key = ""
        else:
            try:
                value = unescape(match["string"]) if kind == "string" else whole_or_real(written)
            except BeyondFloatError as error:
                raise fail(str(error), here) from None
            stack[-1].append((key, value))
            key = ""
    if key or len(stack) > 1:
        raise fail("the file ends within a list", len(text))
    return stack[0]
