"""A graph from a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, ValidationInfo, model_validator

from p2psim.errors import MeaningError, first_line
from p2psim.network.links import Given, Links, checked_links, from_edges, links
from p2psim.network.topologies.parts import Agents, AllowDisconnected, no_learner, settle
from p2psim.options import Options
from p2psim.paths import DataPath, Seal, checked, sealed

if TYPE_CHECKING:
    import networkx as nx

_KEY = "network.topology.path"

_SUFFIXES = {
    ".graphml": "graphml",
    ".gml": "gml",
    ".csv": "adjacency-csv",
    ".edgelist": "edge-list",
    ".edges": "edge-list",
    ".txt": "edge-list",
}


class FromFile(Options):
    """A graph that a file holds, with its weights; every link once, or in both directions alike."""

    kind: Literal["file"] = "file"
    path: DataPath = Field(description="the file; a relative path starts from the scenario's folder")
    sha256: Seal = ""
    format: Literal["edge-list", "graphml", "gml", "adjacency-csv"] | None = Field(
        None,
        description="edge-list: two nodes a line, and a weight or a mapping in Python's notation; graphml; gml; "
        "adjacency-csv: the matrix W, 0 for no link; left out, what the name ends in says it: .edgelist, .edges, "
        ".txt; .graphml; .gml; .csv",
    )
    weight: str = Field(
        "weight",
        description="attribute of links that holds W_ij; 1 where a link has none, but any other than weight must occur",
    )
    nodes: Literal["numbers", "order"] = Field(
        "numbers",
        description="numbers: nodes are named 0 … n − 1; order: whatever they are called, agents are numbered as "
        "nodes first occur",
    )
    agents: Agents = None
    allow_disconnected: AllowDisconnected = False

    is_random: ClassVar[bool] = False

    @model_validator(mode="before")
    @classmethod
    def _seal(cls, value: Any, info: ValidationInfo) -> Any:
        return sealed(value, info)

    def links(
        self, agents: int | None, random: np.random.Generator, given: Given, learner: bool = False
    ) -> Links:
        """Links of the graph; see :func:`p2psim.network.topologies.draw_links`."""
        no_learner(self.kind, learner)
        found = self.read()
        settle(found.agents, agents, given, key=_KEY)
        settle(self.agents, found.agents, Given())
        return found

    def read(self) -> Links:
        """Read the file.

        Raises
        ------
        MissingSourceError
            If there is no such file.
        MeaningError
            If it is not of its format, or the graph is directed, has a link of an agent with itself, a weight
            that is not a positive finite number, an agent without links, or parts that no link joins; or no link
            has the attribute that is asked for.
        """
        place = checked(self.path, _KEY)
        form = self.format or _SUFFIXES.get(place.suffix.lower())
        if form is None:
            raise MeaningError(
                "network.topology.format",
                f"cannot be told from the name {place.name}; say edge-list, graphml, gml or adjacency-csv",
            )
        if form == "adjacency-csv":
            return checked_links(_read_matrix(place), _KEY, self.allow_disconnected)
        graph = _numbered(_READERS[form](place), self.nodes, place)
        known = {name for *_, attributes in graph.edges(data=True) for name in attributes}
        if self.weight not in known and self.weight != "weight":
            raise MeaningError(
                "network.topology.weight",
                f"no link of {place} has the attribute {self.weight}; they have {', '.join(sorted(known)) or 'none'}",
            )
        return links(graph, _KEY, self.weight, self.allow_disconnected)


def _read_matrix(place: Path) -> Links:
    text = place.read_text(encoding="utf-8-sig", errors="replace").strip()
    if not text:
        raise MeaningError(_KEY, f"{place} is empty")
    try:
        matrix = np.loadtxt(text.splitlines(), delimiter=",", ndmin=2)
    except ValueError as error:
        raise MeaningError(_KEY, f"{place} is not a matrix of numbers: {first_line(error)}") from None
    if matrix.shape[0] != matrix.shape[1]:
        raise MeaningError(
            _KEY, f"{place} must be a square matrix, got {matrix.shape[0]} × {matrix.shape[1]}"
        )
    _refuse(~np.isfinite(matrix) | (matrix < 0), matrix, "must be a positive number, or 0 for no link")
    _refuse(np.diag(np.diag(matrix) != 0), matrix, "would link an agent with itself")
    differs = np.argwhere(matrix != matrix.T)
    if differs.size:
        i, j = differs[0]
        raise MeaningError(
            _KEY,
            f"links must go both ways: row {i}, column {j} (from 0) is {matrix[i, j]:g}, but row {j}, column {i} "
            f"is {matrix[j, i]:g}",
        )
    a, b = np.nonzero(np.triu(matrix))
    return from_edges(len(matrix), a, b, matrix[a, b])


def _refuse(wrong: np.ndarray, matrix: np.ndarray, message: str) -> None:
    found = np.argwhere(wrong)
    if found.size:
        i, j = found[0]
        raise MeaningError(_KEY, f"row {i}, column {j} (from 0) is {matrix[i, j]:g}, which {message}")


def _read_edges(place: Path) -> nx.Graph[Any]:
    """Lines of two nodes, and a weight or attributes; what follows ``#`` is a comment."""
    import networkx as nx

    lines = place.read_text(encoding="utf-8-sig").splitlines()
    rows = [row for row in (line.split("#", 1)[0].split(None, 2) for line in lines) if row]
    if not rows:
        raise MeaningError(_KEY, f"{place} is empty")
    mapped = any(len(row) > 2 and row[2].lstrip().startswith("{") for row in rows)
    if any(len(row) == 1 for row in rows):
        raise MeaningError(_KEY, f"{place}: a line must hold two nodes")
    data: Any = mapped or ([("weight", float)] if any(len(row) > 2 for row in rows) else False)
    return nx.parse_edgelist(lines, create_using=nx.MultiGraph, data=data)


def _read_graphml(place: Path) -> nx.Graph[Any]:
    import networkx as nx

    return nx.read_graphml(place)


def _read_gml(place: Path) -> nx.Graph[Any]:
    import networkx as nx

    try:
        return nx.read_gml(place)
    except nx.NetworkXError as error:
        if "label" not in str(error):
            raise
        return nx.read_gml(place, label="id")  # labels are optional


def _reading(read: Callable[[Path], nx.Graph[Any]], name: str) -> Callable[[Path], nx.Graph[Any]]:
    def attempt(place: Path) -> nx.Graph[Any]:
        from xml.etree.ElementTree import ParseError

        import networkx as nx

        try:
            return read(place)
        except (
            nx.NetworkXException,
            ParseError,
            ValueError,
            TypeError,
            KeyError,
            IndexError,
            SyntaxError,
        ) as error:
            raise MeaningError(_KEY, f"{place} cannot be read as {name}: {first_line(error)}") from None

    return attempt


_READERS = {
    "edge-list": _reading(_read_edges, "an edge list"),
    "graphml": _reading(_read_graphml, "GraphML"),
    "gml": _reading(_read_gml, "GML"),
}


def _numbered(graph: nx.Graph[Any], nodes: str, place: Path) -> nx.Graph[Any]:
    import networkx as nx

    n = graph.number_of_nodes()
    if n == 0:
        raise MeaningError(_KEY, f"{place} has no nodes")
    if nodes == "order":
        return nx.relabel_nodes(graph, {node: place for place, node in enumerate(graph)})
    names = {str(number): number for number in range(n)}
    strangers = [node for node in graph if str(node) not in names]
    if strangers:
        raise MeaningError(
            _KEY,
            f"nodes must be named 0 … {n - 1}, got {strangers[0]!r}; nodes: order numbers them as they occur",
        )
    return nx.relabel_nodes(graph, {node: names[str(node)] for node in graph})
