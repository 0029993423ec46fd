"""The arrays that engines and algorithms work on, and how a graph becomes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.core.events import LEARNER

if TYPE_CHECKING:
    import networkx as nx


class Turned(NamedTuple):
    """What changes at one moment, as places in ``Graph.indices``, each link in both directions.

    Attributes
    ----------
    time : float
    comes, goes : ndarray of int64, shape (2k,)
        Of links that are there from then on, and of those that are not.
    """

    time: float
    comes: np.ndarray
    goes: np.ndarray


class Changes(Protocol):
    """When links of a graph come and go: see `p2psim.network.changes.LinkChanges`."""

    @property
    def digest(self) -> str:
        """Tells apart changes that the same topology makes of different random numbers."""

    def read(self, graph: Graph) -> Iterator[Turned]:
        """Changes of the graph, in order of time."""

    def period(self, agents: int) -> int | None:
        """Number of changes after which the graph is the first again, and so on; None where there is none."""


@dataclass(frozen=True)
class Graph:
    """Neighbours of every agent with their weights, as compressed rows.

    Attributes
    ----------
    indptr : ndarray of int64, shape (n + 1,)
    indices : ndarray of int32, shape (m,)
        ``indices[indptr[i]:indptr[i + 1]]`` are the neighbours of agent i, in rising order.
    star : bool
        Whether there is a learner (−1), to which then every agent is linked, and nobody else.
    weights : ndarray of float64, shape (m,)
        W_ij > 0 of each entry of `indices`, the same in both directions; ones where there are no weights.
    attributes : mapping from str to ndarray of float64, shape (m,)
        Other numbers that every link of a graph given by the user has, such as its delay.
    changes : Changes, optional
        When links come and go; the graph is then all links that there can be (`p2psim.network.changes`).
    """

    indptr: np.ndarray
    indices: np.ndarray
    star: bool
    weights: np.ndarray
    attributes: Mapping[str, np.ndarray] = field(default_factory=dict)
    changes: Changes | None = None

    @property
    def agents(self) -> int:
        """Number of agents, the learner not counted."""
        return self.indptr.size - 1

    def of(self, agent: int) -> np.ndarray:
        """Neighbours of one agent."""
        return self.indices[self.indptr[agent] : self.indptr[agent + 1]]

    def weights_of(self, agent: int) -> np.ndarray:
        """W_ij for each of `of`."""
        return self.weights[self.indptr[agent] : self.indptr[agent + 1]]

    @cached_property
    def parts(self) -> int:
        """Number of parts that no link joins; a star is one."""
        if self.star:
            return 1
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order, connected_components

        matrix = csr_array((self.weights, self.indices, self.indptr), shape=(self.agents, self.agents))
        # Nearly all graphs are one part, which this walk shows in a third of the time.
        if breadth_first_order(matrix, 0, return_predecessors=False).size == self.agents:
            return 1
        # Links go both ways, so that parts are strong ones too: SciPy then needs no transposed copy.
        return int(connected_components(matrix, connection="strong")[0])

    def degrees(self) -> np.ndarray:
        """D_ii, the sum of each agent's weights, shape (n,)."""
        if (np.diff(self.indptr) == 0).any():  # `reduceat` takes an empty row for one that is not
            rows = np.repeat(np.arange(self.agents), np.diff(self.indptr))
            return np.bincount(rows, self.weights, self.agents)
        return np.add.reduceat(self.weights, self.indptr[:-1])


@dataclass(frozen=True)
class TopologyInputs:
    """What the data tells a topology.

    Attributes
    ----------
    agents : int, optional
        How many agents hold data; None where the data takes as many as the topology asks for.
    profiles : ndarray or scipy.sparse array, shape (n, q), optional
        A vector for each agent, which neighbours are found by.
    targets : ndarray, shape (n, p), optional
        The model that each agent's data was generated from.
    labels : sequence of str, optional
        The agents' names.
    """

    agents: int | None = None
    profiles: Any = None
    targets: np.ndarray | None = None
    labels: Sequence[str] | None = None


def from_edges(
    agents: int,
    a: np.ndarray,
    b: np.ndarray,
    weights: np.ndarray | None = None,
    attributes: Mapping[str, np.ndarray] | None = None,
) -> Graph:
    """Arrays of a simple graph.

    Parameters
    ----------
    agents : int
    a, b : ndarray of int, shape (m,)
        Ends of each link; every link once, in either direction. Not checked.
    weights : ndarray, shape (m,), optional
        Ones when left out.
    attributes : mapping from str to ndarray, shape (m,), optional
    """
    keys = np.concatenate([a, b]).astype(np.int64, copy=False)
    keys *= agents
    keys[: a.size] += b
    keys[a.size :] += a
    order = None if weights is None and not attributes else np.argsort(keys)
    keys = np.sort(keys) if order is None else keys[order]
    # In this order rows are counted one after the other, not all over the memory.
    rows, indptr = keys // agents, np.zeros(agents + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=agents), out=indptr[1:])
    rows *= agents
    keys -= rows

    def both_ways(values: np.ndarray) -> np.ndarray:
        return np.concatenate([values, values]).astype(np.float64)[order]

    return Graph(
        indptr,
        keys.astype(np.int32),
        False,
        np.ones(keys.size) if weights is None else both_ways(weights),
        {name: both_ways(values) for name, values in (attributes or {}).items()},
    )


def star_links(owners: int) -> Graph:
    """Arrays of a learner (−1) and its owners."""
    return Graph(
        np.arange(owners + 1, dtype=np.int64), np.full(owners, LEARNER, dtype=np.int32), True, np.ones(owners)
    )


def without_links(links: Graph) -> np.ndarray:
    """Agents that are linked with nobody."""
    return np.flatnonzero(np.diff(links.indptr) == 0)


def components(links: Graph) -> int:
    """Number of parts that no link joins; a star is one."""
    return links.parts


def checked_links(
    links: Graph, key: str = "", allow_disconnected: bool = False, name_of: Callable[[int], str] = str
) -> Graph:
    """Return the links, if everyone has a neighbour and everyone can hear of everyone.

    Raises
    ------
    MeaningError
        If an agent has no link (it has no D_ii to divide by), or there are several parts and that is
        not allowed.
    """
    alone = without_links(links)
    if alone.size:
        more = f" (and {alone.size - 1} others)" if alone.size > 1 else ""
        raise MeaningError(key, f"agent {name_of(int(alone[0]))}{more} has no link")
    if not allow_disconnected:
        parts = components(links)
        if parts > 1:
            raise MeaningError(
                key,
                f"the graph falls into {parts} parts that no link joins; allow_disconnected: true takes it as it is",
            )
    return links


def links(
    graph: nx.Graph[Any],
    key: str = "",
    weight: str = "weight",
    allow_disconnected: bool = False,
    name_of: Callable[[int], str] = str,
) -> Graph:
    """Arrays of an undirected graph whose nodes are 0 … n − 1, and −1 where there is a learner.

    Parameters
    ----------
    graph : networkx.Graph
        Several links of the same two agents count once, and must agree.
    key : str
        The dotted scenario key, named in errors.
    weight : str
        The edges' attribute that holds W_ij; they are 1 where no edge has it.
    allow_disconnected : bool
        Whether there may be parts that no link joins.
    name_of : callable
        What errors call an agent.

    Raises
    ------
    MeaningError
        If the graph is directed, its nodes are not numbered so, a weight is not a positive finite number or only
        some edges have one, an agent is linked with itself or with nobody, the graph is not connected, or there is a
        learner and the graph is not a star.
    """
    if graph.is_directed():
        raise MeaningError(key, "the graph is directed; links must go both ways")
    star = LEARNER in graph
    agents = graph.number_of_nodes() - star
    if agents < 1 or not all(agent in graph for agent in range(agents)):
        raise MeaningError(key, f"the graph's nodes must be 0 … {agents - 1} (and {LEARNER} for a learner)")
    absent: Any = object()
    ends, weights = [], []
    for a, b, value in graph.edges(data=weight, default=absent):
        if a == b:
            who = "the learner" if a == LEARNER else f"agent {name_of(a)}"
            raise MeaningError(key, f"{who} is linked with itself")
        ends.append((a, b) if a < b else (b, a))
        weights.append(value)
    if weighted := sum(value is not absent for value in weights):
        without = f"is not given, but {weighted} of {len(ends)} links have one; give all links one, or none"
        for (a, b), one in zip(ends, weights, strict=True):
            if why := without if one is absent else refusal(one):
                # In the same order whichever agents the ends are: where names pair them, that is known later.
                first, second = sorted((str(name_of(a)), str(name_of(b))))
                raise MeaningError(key, f"the {weight} of the link {first} – {second} {why}")
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
    values = np.array(weights, dtype=np.float64) if weighted else np.ones(len(ends))
    attributes = _attributes(graph)
    if star or graph.is_multigraph():
        pairs, values, attributes = _once(pairs, values, attributes, key, name_of)
    if star:
        return _star(graph, agents, values, attributes, key)
    arrays = from_edges(agents, pairs[:, 0], pairs[:, 1], values, attributes)
    return checked_links(arrays, key, allow_disconnected, name_of)


def _attributes(graph: nx.Graph[Any]) -> dict[str, np.ndarray]:
    """Finite numbers that every link has and doubles hold, in the order of the graph's links."""
    tables = [data for _, _, data in graph.edges(data=True)]
    names = sorted(set.intersection(*(set(map(str, table)) for table in tables))) if tables else []
    found = {}
    for name in names:
        column = [table.get(name) for table in tables]
        if all(_is_finite(value) and _is_double(value) for value in column):
            found[name] = np.array(column, dtype=np.float64)
    return found


def _is_finite(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond all floating-point numbers
        return False


def refusal(value: Any) -> str:
    """Say what is wrong with a weight; empty where nothing is."""
    if not (_is_finite(value) and value > 0):
        got = repr(value.item() if isinstance(value, np.generic) else value)
        return f"must be a positive number, got {got if len(got) <= 60 else f'{got[:57]}...'}"
    if not _is_double(value):
        return f"is {value}, which no floating-point number equals; write {float(value)!r} if that is near enough"
    return ""


def _is_double(value: Any) -> bool:
    return float(value) == value


def _star(
    graph: nx.Graph[Any], agents: int, values: np.ndarray, attributes: Mapping[str, np.ndarray], key: str
) -> Graph:
    """Links of a star; weights and attributes in the order of its owners."""
    for agent in range(agents):
        near = sorted(graph.adj[agent])
        if near != [LEARNER]:
            raise MeaningError(
                key,
                f"there is a learner, so agent {agent} must be linked with it and nobody else; got {near}",
            )
    return replace(star_links(agents), weights=values, attributes=attributes)


def unlike(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Whether numbers differ by more than rounding: both directions of a link may have been computed apart."""
    difference: np.ndarray = np.abs(one - other) > 4 * np.finfo(float).eps * np.maximum(one, other)
    return difference


def digits(value: float) -> str:
    """Write a number with all its digits."""
    return repr(float(value)).removesuffix(".0")


def _once(
    pairs: np.ndarray,
    values: np.ndarray,
    attributes: Mapping[str, np.ndarray],
    key: str,
    name_of: Callable[[int], str],
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Each link once, ordered by its ends; without attributes that differ where a link is given twice."""
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    pairs, values = pairs[order], values[order]
    again = np.flatnonzero((pairs[1:] == pairs[:-1]).all(axis=1)) + 1

    def differing(column: np.ndarray) -> np.ndarray:
        return again[unlike(column[again], column[again - 1])]

    if (differs := differing(values)).size:
        at = differs[0]
        a, b = (name_of(int(end)) for end in pairs[at])
        first, second = digits(values[at - 1]), digits(values[at])
        raise MeaningError(key, f"the link {a} – {b} is given twice, with weights {first} and {second}")
    columns = {name: column[order] for name, column in attributes.items()}
    alike = {name: np.delete(column, again) for name, column in columns.items() if not differing(column).size}
    return np.delete(pairs, again, axis=0), np.delete(values, again), alike


def asking_side(links: Graph) -> np.ndarray:
    """Whether each agent is of the side of a bipartite graph that asks, shape (n,).

    Raises
    ------
    MeaningError
        If the graph has a cycle of odd length.
    """
    sides = np.full(links.agents, -1)
    for first in range(links.agents):
        if sides[first] >= 0:
            continue
        sides[first], reached = 1, [first]
        while reached:
            agent = reached.pop()
            near = links.of(agent)
            if (sides[near] == sides[agent]).any():
                raise MeaningError(
                    "network.exchange.blocking",
                    f"agent {agent} is on a cycle of odd length: where agents that wait answer no others, agents in a "
                    "cycle deadlock; it needs a bipartite graph, such as a ring of an even number of agents",
                )
            fresh = near[sides[near] < 0]
            sides[fresh] = 1 - sides[agent]
            reached += fresh.tolist()
    return sides == 1
