"""GraphML, with the values that its keys give to nodes and links that have none."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2psim.decimals import BeyondFloatError
from p2psim.errors import MeaningError
from p2psim.network.graph_files.contents import KEY, FileGraph, file_graph, whole_or_real
from p2psim.text_tables import number, shown

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

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
        nodes[name] = _attributes(node, "node", f"the node {name}", keys)
    edges = []
    elements = graphs[0].findall(".//{*}edge")
    for edge in elements:
        a, b = ends = edge.get("source", ""), edge.get("target", "")
        if not all(ends):
            raise ValueError(f"a link needs a source and a target, got {a!r} and {b!r}")
        edges.append((a, b, _attributes(edge, "edge", f"the link {a} – {b}", keys)))
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


def _attributes(element: Element, kind: str, whose: str, keys: dict[str, _Key]) -> dict[str, Any]:
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
