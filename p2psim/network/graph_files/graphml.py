"""GraphML, with the values that its keys give to nodes and links that have none."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2psim.network.graph_files.contents import FileGraph, file_graph

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_TRUTHS = {"true": True, "false": False, "1": True, "0": False}

_TYPES: dict[str, Callable[[str], Any]] = {
    "boolean": lambda text: _TRUTHS[text.strip().lower()],
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "string": str,
}


@dataclass(frozen=True)
class _Key:
    """An attribute that the file declares."""

    name: str
    kind: str
    of: str
    default: Element | None

    def value(self, element: Element) -> Any:
        try:
            return _TYPES[self.kind](element.text or "")
        except (KeyError, ValueError):
            raise ValueError(f"{self.name} must be of type {self.kind}, got {element.text!r}") from None


def read_graphml(place: Path) -> FileGraph:
    """Read the file's graph; nodes are called by their id, or, where that only counts them, by name or label.

    Raises
    ------
    ValueError
        If it is no graph.
    """
    from xml.etree.ElementTree import parse

    root = parse(place).getroot()
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
        nodes[name] = _attributes(node, "node", keys)
    elements = graphs[0].findall(".//{*}edge")
    edges = [(edge.get("source"), edge.get("target"), _attributes(edge, "edge", keys)) for edge in elements]
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


def _attributes(element: Element, kind: str, keys: dict[str, _Key]) -> dict[str, Any]:
    """Attributes of a node or link, those that it does not have by their defaults."""
    found = {
        key.name: key.value(key.default)
        for key in keys.values()
        if key.default is not None and not len(key.default) and key.of in (kind, "all")
    }
    for data in element.findall("{*}data"):
        key = data.get("key", "")
        if key not in keys:
            raise ValueError(f"the key {key} of one {kind} is not declared")
        if not len(data):  # what has elements inside is how a program draws it
            found[keys[key].name] = keys[key].value(data)
    return found
