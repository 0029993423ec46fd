"""Graphs from files: how their nodes are paired with agents, and helpers that the readers of all formats share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2psim.core.agent_names import AgentNames, differing, some
from p2psim.core.errors import MeaningError
from p2psim.core.text_tables import decimal

if TYPE_CHECKING:
    import networkx as nx

#: The key that errors of a file are about.
KEY = "network.topology.path"


@dataclass(frozen=True)
class FileGraph:
    """A graph in a file.

    Attributes
    ----------
    graph : networkx.MultiGraph or networkx.MultiDiGraph
        Its nodes are in the order in which the file names them first.
    names : sequence of sequence of str
        Names of the nodes, in that order. Where the format has several (an id, a label), the preferred one is first.
    key : str
        The dotted scenario key that errors name.
    """

    graph: nx.Graph[Any]
    names: Sequence[Sequence[str]]
    key: str = KEY

    @property
    def agents(self) -> int:
        """Number of nodes."""
        return len(self.names[0])

    def agent_of_node(self, nodes: str, labels: Sequence[str] | None) -> list[int]:
        """Return the agent that each node is.

        Parameters
        ----------
        nodes : str
            ``names``, ``numbers`` or ``order``; see :class:`p2psim.network.topologies.file.FromFile`.
        labels : sequence of str or None
            The agents' names in the data; None where there is no data.

        Raises
        ------
        MeaningError
            If nodes and agents cannot be paired in that way, or have the same names and would be paired otherwise.
        """
        by_label = None if labels is None else self._by_label(labels)
        if nodes == "names" and by_label is not None:
            return by_label
        found = list(range(self.agents)) if nodes == "order" else self._by_number(nodes, labels)
        if by_label is not None and by_label != found:
            raise MeaningError(
                "network.topology.nodes",
                f"{nodes} pairs nodes and owners that have different names, although both have the same set of names, "
                f"{some(sorted(labels or ()))}; leave nodes out to pair them by name",
            )
        return found

    def differing(self, labels: Sequence[str]) -> str:
        """Which names the graph alone has, and which the data, by the names of nodes that most owners have."""
        return differing(max(self.names, key=lambda names: len(set(names) & set(labels))), labels)

    def _by_label(self, labels: Sequence[str]) -> list[int] | None:
        """Pair by name; None where the nodes' names are not those of the agents."""
        place = {label: i for i, label in enumerate(labels)}
        for names in self.names:
            if len(names) == len(labels) and set(names) == place.keys():
                return [place[name] for name in names]
        return None

    def _by_number(self, nodes: str, labels: Sequence[str] | None) -> list[int]:
        """Pair by number, where the nodes are called 0 … n − 1."""
        n = self.agents
        numbers = {str(i): i for i in range(n)}
        foreign = [names for names in self.names if set(names) != numbers.keys()]
        if nodes == "names" and labels is not None and not are_numbers(labels) and foreign:
            raise MeaningError(
                self.key,
                "nodes of the graph and owners of the data have different names: "
                f"{differing(foreign[0], labels)}; nodes: order pairs them by position",
            )
        if len(foreign) == len(self.names):
            stranger = next(name for name in foreign[0] if name not in numbers)
            raise MeaningError(
                self.key,
                f"nodes must be named 0 … {n - 1}, got {stranger!r}; nodes: order numbers them as they occur",
            )
        names = next(names for names in self.names if names not in foreign)
        if nodes == "names" and labels is not None and len(labels) == n:
            AgentNames(labels).resolve(names, self.key)
        return [numbers[name] for name in names]


def are_numbers(labels: Sequence[str]) -> bool:
    """Whether agents are called 0 … n − 1, in order: they have no other names."""
    return all(label == str(i) for i, label in enumerate(labels))


def file_graph(
    nodes: Mapping[Any, Mapping[str, Any]],
    edges: Iterable[tuple[Any, Any, dict[str, Any]]],
    directed: bool,
    names: Sequence[str],
) -> FileGraph:
    """Put a graph together.

    Parameters
    ----------
    nodes : mapping
        From the id of each node to its attributes.
    edges : iterable of (source, target, attributes)
        Ends are ids.
    directed : bool
    names : sequence of str
        Attributes that hold names of nodes; ``""`` stands for the id. One that some node lacks, or that two nodes
        share, is none.

    Raises
    ------
    ValueError
        If there are no nodes, or an edge ends at none.
    """
    import networkx as nx

    if not nodes:
        raise ValueError("it has no nodes")
    place = {node: i for i, node in enumerate(nodes)}
    graph: nx.Graph[Any] = nx.MultiDiGraph() if directed else nx.MultiGraph()
    graph.add_nodes_from(place.values())
    # With keys of their own: an attribute may be called key.
    for key, (source, target, attributes) in enumerate(edges):
        for end in (source, target):
            if end not in place:
                raise ValueError(f"a link ends at {end}, which is the id of no node")
        graph.add_edges_from([(place[source], place[target], key, attributes)])  # type: ignore[list-item]
    known = []
    for name in names:
        found = [str(node if name == "" else table.get(name, "")) for node, table in nodes.items()]
        if name == "" or ("" not in found and len(set(found)) == len(found)):
            known.append(found)
    if not known:
        name = next(name for name in names if any(name in table for table in nodes.values()))
        seen = [str(table.get(name, "")) for table in nodes.values()]
        twice = next((one for one in seen if one and seen.count(one) > 1), None)
        raise ValueError(f"two nodes have the same {name} {twice!r}" if twice else f"a node has no {name}")
    return FileGraph(graph, known)


def text_of(place: Path) -> str:
    """Read a file of UTF-8, with or without a byte-order mark.

    Raises
    ------
    MeaningError
        If it cannot be read, or is not UTF-8.
    """
    try:
        raw = place.read_bytes()
    except OSError as error:
        raise MeaningError(KEY, f"{place} cannot be read: {error.strerror or error}") from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise MeaningError(
            KEY, f"{place}:{line}: byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8"
        ) from None


def whole_or_real(text: str) -> int | float:
    """Take a number in decimal notation; whole numbers keep all their digits, so that none is rounded unsaid."""
    is_whole = text.lstrip("+-").isdigit() and len(text) < 1000
    return int(text) if is_whole else decimal(text)
