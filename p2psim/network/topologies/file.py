"""Graphs that are given as they are: in a file, or by a Python program, which a scenario file cannot do."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import (
    BeforeValidator,
    Field,
    InstanceOf,
    PlainSerializer,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from p2psim.core.agent_names import some
from p2psim.core.errors import MeaningError, first_line
from p2psim.core.events import LEARNER
from p2psim.core.files import DataPath, Seal, checked, sealed
from p2psim.network.graph import Graph, TopologyInputs, checked_links, links
from p2psim.network.graph_files import KEY, FileGraph, are_numbers
from p2psim.network.graph_formats import read_edges, read_gml, read_graphml, read_matrix
from p2psim.network.topologies import base

if TYPE_CHECKING:
    import networkx as nx

_SUFFIXES = {
    ".graphml": "graphml",
    ".gml": "gml",
    ".csv": "adjacency-csv",
    ".edgelist": "edge-list",
    ".edges": "edge-list",
    ".txt": "edge-list",
}


class ExplicitTopology(base.Topology):
    """A graph that is written down: nodes with names, which are the agents, and links between them."""

    if TYPE_CHECKING:
        nodes: Any
        weight: str
        allow_disconnected: bool

    @abstractmethod
    def _contents(self) -> FileGraph | Graph:
        """Return what is written."""

    @property
    @abstractmethod
    def _called(self) -> str:
        """What errors call the graph."""

    _key: ClassVar[str] = KEY

    def links(
        self, agents: int | None, random: np.random.Generator, given: TopologyInputs, learner: bool = False
    ) -> Graph:
        """Links of the graph; see :func:`p2psim.network.topologies.draw_links`."""
        base.no_learner(self.kind, learner)
        self.size_and_names()
        found = self.read(given.labels)
        base.settle(found.agents, agents, given, key=self._key)
        return found

    def read(self, labels: Sequence[str] | None = None) -> Graph:
        """Read the graph.

        Parameters
        ----------
        labels : sequence of str, optional
            The agents' names in the data.

        Raises
        ------
        MissingSourceError
            If there is no such file.
        MeaningError
            If it is not of its format, or the graph is directed, has a link of an agent with itself, a weight
            that is not a positive finite number, an agent without links, or parts that no link joins; no link
            has the attribute that is asked for; or nodes cannot be paired with agents.
        """
        found = self._contents()
        if isinstance(found, Graph):
            return checked_links(found, self._key, self.allow_disconnected)
        if labels is not None and are_numbers(labels):  # so that names have nothing to say of their number
            base.settle(found.agents, None, TopologyInputs(len(labels)), key=self._key)
        import networkx as nx

        agent_of = found.agent_of_node(self.nodes, labels)
        graph, agents = found.graph, dict(zip(found.graph, agent_of, strict=True))
        if any(node != agent for node, agent in agents.items()):
            graph = nx.relabel_nodes(graph, agents)
        known = {name for *_, table in graph.edges(data=True) for name in table if self.weight != "weight"}
        if self.weight not in known and self.weight != "weight":
            raise MeaningError(
                "network.topology.weight",
                f"no link of {self._called} has the attribute {self.weight}; they have "
                f"{', '.join(sorted(known)) or 'none'}",
            )
        name = dict(zip(agent_of, found.names[0], strict=True))
        return links(graph, self._key, self.weight, self.allow_disconnected, name.__getitem__)

    def size_and_names(self) -> tuple[int, tuple[str, ...] | None]:
        """How many agents there are, and the names of those whom the data does not name; None: 0 … n − 1.

        Raises
        ------
        MissingSourceError, MeaningError
            If the file cannot be read, or holds another number of agents than the scenario says.
        """
        found = self._contents()
        if getattr(self, "agents", None) not in (None, found.agents):
            message = f"is {self.size}, but {self._called} has {found.agents} nodes"
            raise MeaningError("network.topology.agents", message)
        if self.nodes == "order" and isinstance(found, FileGraph):
            return found.agents, tuple(found.names[0])
        return found.agents, None

    def by_order(self) -> Self:
        """The same with agents numbered as the nodes occur."""
        return self.model_copy(update={"nodes": "order"})

    def check_owners(self, labels: Sequence[str]) -> None:
        """Raise if there are more nodes than owners, or fewer, and say which names one side alone has.

        Raises
        ------
        MeaningError
        """
        found = self._contents()
        if found.agents != len(labels):
            which = found.differing(labels) if isinstance(found, FileGraph) else some(labels)
            message = (
                f"{self._called} has {found.agents} nodes, but the data has {len(labels)} owners: {which}"
            )
            raise MeaningError(self._key, message)


class FromFile(ExplicitTopology):
    """A graph that a file holds, with its weights; every link once, or in both directions alike.

    Choices
    -------
    format: edge-list
        a line for each link: two names and perhaps a weight
    format: graphml
        GraphML
    format: gml
        GML, the Graph Modelling Language
    format: adjacency-csv
        a matrix of weights; 0 is no link
    nodes: numbers
        nodes are named 0 … n − 1
    nodes: order
        agents are numbered as nodes first occur
    """

    is_file: ClassVar[bool] = True
    kind: Literal["file"] = "file"
    path: DataPath = Field(description="the file; a relative path starts from the scenario's folder")
    sha256: Seal = ""
    format: Literal["edge-list", "graphml", "gml", "adjacency-csv"] | None = Field(
        None,
        description="edge-list: two nodes per line, and a weight or a mapping in Python's notation, separated by "
        "commas in a .csv whose first line has one; graphml; gml; "
        "adjacency-csv: the matrix W, 0 for no link; left out, what the name ends in says it: .edgelist, .edges, "
        ".txt; .graphml; .gml; .csv",
    )
    weight: str = Field(
        "weight",
        description="attribute of links that holds W_ij: of all links, or, if it is weight, of none, which are 1 then",
    )
    nodes: Literal["names", "numbers", "order"] = Field(
        "names",
        description="which agent a node is. names: the one of its name (a label of GML, an id of GraphML, else the "
        "attribute name or label), or nodes are named 0 … n − 1; numbers: nodes are named 0 … n − 1, whatever "
        "agents are called; order: agents are numbered as nodes first occur, and those without a name get theirs",
    )
    agents: base.Agents = None
    allow_disconnected: base.AllowDisconnected = False
    weights: base.Weights = None
    normalise: base.Normalise = None

    @model_validator(mode="before")
    @classmethod
    def _seal(cls, value: Any, info: ValidationInfo) -> Any:
        return sealed(value, info)

    @property
    def _called(self) -> str:
        return self.path

    def _contents(self) -> FileGraph | Graph:
        place = checked(self.path, KEY)
        form = self.format or _SUFFIXES.get(place.suffix.lower())
        if form is None:
            raise MeaningError(
                "network.topology.format",
                f"cannot be told from the name {place.name}; say edge-list, graphml, gml or adjacency-csv",
            )
        return _read(str(place), form, self.sha256)


@lru_cache(maxsize=4)
def _read(path: str, form: str, sha256: str) -> FileGraph | Graph:
    """Read a file once for all cells and replicas."""
    name, read = _READERS[form]
    place = Path(path)
    try:
        return read(place)
    except (ValueError, LookupError) as error:
        raise MeaningError(KEY, f"{place} cannot be read as {name}: {first_line(error)}") from None
    except (RecursionError, MemoryError):
        raise MeaningError(KEY, f"{place} cannot be read as {name}: it is nested too deep") from None


_READERS: dict[str, tuple[str, Callable[[Path], FileGraph | Graph]]] = {
    "edge-list": ("an edge list", read_edges),
    "graphml": ("GraphML", read_graphml),
    "gml": ("GML", read_gml),
    "adjacency-csv": ("a matrix", read_matrix),
}


@dataclass(frozen=True)
class HashedGraph:
    """A copy of a NetworkX graph, compared and written down by a digest of its nodes and links.

    Attributes
    ----------
    contents : FileGraph
    digest : str
    title : str
        What tables call it: the graph's own name if it has one.
    """

    contents: FileGraph = field(compare=False)
    digest: str
    title: str = field(compare=False)

    @classmethod
    def of(cls, graph: nx.Graph[Any]) -> HashedGraph:
        """Copy a graph.

        Raises
        ------
        ValueError
            If two nodes have the same name, or a node is a learner or has a rate, which other keys say.
        """
        names = [str(node) for node in graph]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"two nodes of the graph are called {twice}")
        if LEARNER in graph:
            raise ValueError("the graph has a learner (node −1); p2psim.assemble takes such a star")
        if any("rate" in table for _, table in graph.nodes(data=True)):
            raise ValueError("nodes have rates; give them as network.clock.rate, or use p2psim.assemble")
        links = [(str(a), str(b), sorted(table.items())) for a, b, table in graph.edges(data=True)]
        digest = hashlib.sha256(repr((graph.is_directed(), names, links)).encode()).hexdigest()
        title = str(graph.name or f"{len(names)} nodes and {len(links)} links, {digest[:8]}")
        return cls(FileGraph(graph.copy(), (names,), FromGraph.key), digest, title)

    def __str__(self) -> str:
        return self.title


def _only_in_python(value: Any) -> Any:
    if isinstance(value, HashedGraph):
        return value
    if base.is_graph(value):
        return HashedGraph.of(value)
    if isinstance(value, str):
        raise ValueError(
            "a graph was given in Python, and only its hash is written here; give the graph again"
        )
    raise ValueError("must be a networkx.Graph, from Python; a scenario file can name a graph of kind file")


class FromGraph(ExplicitTopology):
    """A NetworkX graph, from Python only. Its nodes are the agents, by name."""

    key: ClassVar[str] = "network.topology"

    kind: Literal["networkx"] = "networkx"
    graph: Annotated[
        InstanceOf[HashedGraph] | None,
        BeforeValidator(_only_in_python),
        PlainSerializer(lambda graph: graph.digest, return_type=str),
        WithJsonSchema({"type": "string", "description": "digest of a graph given in Python"}),
    ] = Field(None, validate_default=True, description="given in Python only; written down as a digest")
    weight: str = Field("weight", description="attribute of links that holds W_ij, as of a graph in a file")
    nodes: Literal["names", "numbers", "order"] = Field(
        "names",
        description="which agent a node is, as of a graph in a file; owners without names take the nodes'",
    )
    allow_disconnected: base.AllowDisconnected = False
    weights: base.Weights = None
    normalise: base.Normalise = None

    _key: ClassVar[str] = key

    @property
    def _called(self) -> str:
        return "the graph"

    def _contents(self) -> FileGraph:
        assert self.graph is not None
        return self.graph.contents

    def size_and_names(self) -> tuple[int, tuple[str, ...] | None]:
        """How many agents there are, and the names of those whom the data does not name; None: 0 … n − 1."""
        names = tuple(self._contents().names[0])
        numbered = self.nodes == "numbers" or set(names) == set(map(str, range(len(names))))
        return len(names), None if numbered and self.nodes != "order" else names

    def read(self, labels: Sequence[str] | None = None) -> Graph:
        """Arrays of the graph; without data its nodes are in their own order."""
        return super().read(self.size_and_names()[1] if labels is None else labels)
