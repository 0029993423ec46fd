"""Readers of graph formats: GML, GraphML, and plain text with lists of edges or matrices of weights.

GML is keys and values, and lists of them in brackets (Himsolt, "GML: A portable graph file format", 1997). In GraphML,
nodes and links without a value of a key take the default that the key gives.
"""

from __future__ import annotations

import ast
import io
import itertools
import math
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.core.text_tables import BeyondFloatError, matrix_of, number, refuse_beyond, rows_of, shown
from p2psim.network.graph import Graph, digits, from_edges, refusal, unlike
from p2psim.network.graph_files import KEY, FileGraph, file_graph, text_of, whole_or_real

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

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
    found = [value for key, value in parse_gml(text_of(place), place) if key == "graph" and _is_list(value)]
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


def parse_gml(text: str, place: Path) -> Entries:
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


_TRUTHS = {"true": True, "false": False, "1": True, "0": False}


def _whole(text: str) -> int:
    if not re.fullmatch(r"\s*[+-]?[0-9]+\s*", text):
        raise ValueError(text)
    return int(text)


def _real(text: str) -> float:
    """Take a number; whole ones that no double equals keep their digits."""
    value = math.nan if text.strip().lower() == "nan" else number(text)
    if value is None:
        raise ValueError(text)
    whole = whole_or_real(text.strip())
    return whole if whole != value and value == value else value


#: By type: how a value is read, and what it must be.
_TYPES: dict[str, tuple[Callable[[str], Any], str]] = {
    "boolean": (lambda text: _TRUTHS[text.strip().lower()], "true or false"),
    "int": (_whole, "a whole number"),
    "long": (_whole, "a whole number"),
    "float": (_real, "a number"),
    "double": (_real, "a number"),
    "string": (str, "text"),
}


@dataclass(frozen=True)
class _Key:
    """An attribute that the file declares."""

    name: str
    kind: str
    of: str
    default: Element | None

    def value(self, element: Element, what: str) -> Any:
        """Read the text of an element, which errors call `what`."""
        if self.kind not in _TYPES:
            raise ValueError(
                f"{self.name} has the unknown type {shown(self.kind)}; known: {', '.join(_TYPES)}"
            )
        read, expected = _TYPES[self.kind]
        text = element.text or ""
        try:
            return read(text)
        except BeyondFloatError as error:
            raise ValueError(f"{what} must be a number: {error}") from None
        except (KeyError, ValueError):
            got = shown(text) if text.strip() else "nothing"
            raise ValueError(f"{what} must be {expected} ({self.kind}), got {got}") from None


def read_graphml(place: Path) -> FileGraph:
    """Read the file's graph; nodes are called by their id, or, where that only counts them, by name or label.

    Raises
    ------
    ValueError
        If it is no graph.
    """
    from xml.etree.ElementTree import ParseError, parse

    try:
        root = parse(place).getroot()
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from None
    except ParseError as error:
        line, column = error.position
        why = str(error).partition(":")[0]
        raise MeaningError(KEY, f"{place}:{line}:{column + 1}: cannot be read as GraphML: {why}") from None
    graphs = root.findall("{*}graph")
    if len(graphs) != 1:
        raise ValueError(f"there must be one graph, got {len(graphs)}")
    if graphs[0].find(".//{*}hyperedge") is not None:
        raise ValueError("it has links of more than two nodes")
    keys = {key.get("id", ""): _key(key) for key in root.findall("{*}key")}
    nodes: dict[str, dict[str, Any]] = {}
    for node in graphs[0].findall(".//{*}node"):
        name = node.get("id", "")
        if not name or name in nodes:
            raise ValueError(f"two nodes have the id {name}" if name else "a node has no id")
        nodes[name] = _graphml_attributes(node, "node", f"the node {name}", keys)
    edges = []
    elements = graphs[0].findall(".//{*}edge")
    for edge in elements:
        a, b = ends = edge.get("source", ""), edge.get("target", "")
        if not all(ends):
            raise ValueError(f"a link needs a source and a target, got {a!r} and {b!r}")
        edges.append((a, b, _graphml_attributes(edge, "edge", f"the link {a} – {b}", keys)))
    usual = graphs[0].get("edgedefault", "undirected")
    directed = any(
        edge.get("directed", str(usual == "directed")).lower() in ("true", "1") for edge in elements
    )
    if not all(re.fullmatch(r"n?\d+", name) for name in nodes):
        return file_graph(nodes, edges, directed, ("", "name", "label"))
    # The program that wrote the file counts its nodes: 0, 1, … or n0, n1, …
    found = file_graph(nodes, edges, directed, ("name", "label", ""))
    return replace(found, names=[*found.names, [name.removeprefix("n") for name in nodes]])


def _key(element: Element) -> _Key:
    name = element.get("attr.name", element.get("id", ""))
    default = element.find("{*}default")
    return _Key(name, element.get("attr.type", "string"), element.get("for", "all"), default)


def _graphml_attributes(element: Element, kind: str, whose: str, keys: dict[str, _Key]) -> dict[str, Any]:
    """Attributes of a node or link, those that it does not have by their defaults."""
    found = {
        key.name: key.value(key.default, f"the <default> of {key.name}")
        for key in keys.values()
        if key.default is not None and not len(key.default) and key.of in (kind, "all")
    }
    for data in element.findall("{*}data"):
        key = data.get("key", "")
        if key not in keys:
            raise ValueError(f"the key {key} of {whose} is not declared")
        if not len(data):  # what has elements inside is how a program draws it
            found[keys[key].name] = keys[key].value(data, f"{keys[key].name} of {whose}")
    return found


def read_edges(place: Path) -> FileGraph:
    """Read lines of two nodes, and a weight or attributes; what follows ``#`` is a comment.

    They are separated by commas in a ``.csv`` file whose first line has one, and otherwise by spaces or tabs.

    Raises
    ------
    MeaningError
        With the line, if it does not hold two nodes, a weight is no number or attributes are no mapping; or if there is
        no line.
    """
    nodes: dict[str, dict[str, Any]] = {}
    edges = []
    lines = [text.split("#", 1)[0] for text in io.StringIO(text_of(place), newline=None)]
    first = next((line for line in lines if line.strip()), "")
    by_commas = place.suffix.lower() == ".csv" and "," in first.split("{", 1)[0]
    mark, marks = (",", "a comma") if by_commas else (None, "spaces or tabs")
    for line, text in enumerate(lines, 1):
        fields = [field.strip() for field in text.split(mark, 2)]
        if not any(fields):
            continue
        if len(fields) == 1 or not all(fields[:2]):
            message = f"must hold two nodes, separated by {marks}, got {shown(text.strip())}"
            raise MeaningError(KEY, f"{place}:{line}: {message}")
        a, b = fields[:2]
        nodes |= {a: {}, b: {}}
        edges.append((a, b, _attributes("".join(fields[2:]).strip(), f"{place}:{line}")))
    if not edges:
        raise MeaningError(KEY, f"{place} is empty")
    return file_graph(nodes, edges, False, ("",))


def _attributes(text: str, where: str) -> dict[str, Any]:
    """Read what a line says of a link beside its ends."""
    if not text:
        return {}
    try:
        refuse_beyond(text)
    except BeyondFloatError as error:
        raise MeaningError(KEY, f"{where}: {error}") from None
    if not text.startswith("{"):
        if number(text) is None:
            raise MeaningError(KEY, f"{where}: the weight must be a number, got {shown(text)}")
        return {"weight": whole_or_real(text)}
    found: Any = None
    try:
        with warnings.catch_warnings(action="ignore"):
            found = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        pass
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        expected = "a mapping in Python's notation, such as {'weight': 2.0}"
        raise MeaningError(KEY, f"{where}: attributes must be {expected}, got {shown(text)}")
    return found


def read_matrix(place: Path) -> Graph:
    """Read the matrix W: row and column i are agent i; 0 is no link.

    Raises
    ------
    MeaningError
        If it is no square matrix of numbers of 0 or more, has a link of an agent with itself, or is not symmetric. Two
        entries that differ by rounding alone are one: that of the upper triangle.
    """
    lines = [line for line in text_of(place).splitlines() if line.split("#", 1)[0].strip()]
    if not lines:
        raise MeaningError(KEY, f"{place} is empty")
    try:
        refuse_beyond("\n".join(lines))
        matrix = np.loadtxt(lines, delimiter=",", ndmin=2)
    except ValueError:
        matrix = _slowly(place)
    if matrix.shape[0] != matrix.shape[1]:
        raise MeaningError(KEY, f"{place} must be a square matrix, got {matrix.shape[0]} × {matrix.shape[1]}")
    _refuse(place, ~np.isfinite(matrix) | (matrix < 0), matrix, "must be a positive number, or 0 for no link")
    _refuse(place, np.diag(np.diag(matrix) != 0), matrix, "would link an agent with itself")
    _refuse_rounded(place, matrix)
    differs = np.argwhere(unlike(matrix, matrix.T))
    if differs.size:
        i, j = differs[0]
        raise MeaningError(
            KEY,
            f"{_where(place, i)}: links must go both ways: row {i}, column {j} (from 0) is {digits(matrix[i, j])}, but "
            f"row {j}, column {i} is {digits(matrix[j, i])}",
        )
    a, b = np.nonzero(np.triu(matrix))
    return from_edges(len(matrix), a, b, matrix[a, b])


def _slowly(place: Path) -> np.ndarray:
    """Read what has quotation marks, or a fault."""
    try:
        return matrix_of(place, KEY)
    except MeaningError as error:
        hint = "expected the matrix W, without names of rows or columns; if lines are links, give format: edge-list"
        raise MeaningError(KEY, f"{error.faults[0].message}; {hint}") from None


def _refuse(place: Path, wrong: np.ndarray, matrix: np.ndarray, message: str) -> None:
    found = np.argwhere(wrong)
    if found.size:
        i, j = found[0]
        raise MeaningError(
            KEY,
            f"{_where(place, i)}: row {i}, column {j} (from 0) is {digits(matrix[i, j])}, which {message}",
        )


def _refuse_rounded(place: Path, matrix: np.ndarray) -> None:
    """Refuse a whole number that no double holds, as `p2psim.network.graph` does."""
    for i in np.flatnonzero((matrix >= 2.0**53).any(axis=1)):
        line, cells = next(itertools.islice(rows_of(place, KEY), int(i), None))
        for value in map(whole_or_real, map(str.strip, cells)):
            if value and (why := refusal(value)):
                raise MeaningError(KEY, f"{place}:{line}: a weight {why}")


def _where(place: Path, row: int) -> str:
    """Place of a row, which counts from 0."""
    line, _ = next(itertools.islice(rows_of(place, KEY), int(row), None))
    return f"{place}:{line}"
