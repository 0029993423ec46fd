"""Graphs that change with time: their base class, and those whose links are drawn anew in each interval.

A graph that changes is made of all links that there can be, and of changes (`p2psim.network.changes`). Where any two
agents can be linked some time, all pairs are links that there can be, so that there are at most 2,000 agents.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, ValidationInfo, model_validator

from p2psim.core.errors import MeaningError
from p2psim.core.files import DataPath, Seal, checked, sealed
from p2psim.core.options import Positive
from p2psim.core.text_tables import as_wide, header_of, lines_of, moment
from p2psim.network.changes import Change
from p2psim.network.graph import Graph, TopologyInputs, from_edges
from p2psim.network.graph_files import KEY, FileGraph, file_graph, whole_or_real
from p2psim.network.topologies import base
from p2psim.network.topologies.file import ExplicitTopology
from p2psim.network.topologies.regular import Complete

#: Agents of a graph in which any two can be linked some time: 4 million directed links.
MOST = 2_000

Interval = Annotated[
    Positive, Field(description="time after which links change; the k-th time is k·interval")
]


class IntervalTopology(base.ChangingTopology, base.SizedTopology):
    """Base of graphs that are another one in each interval: ``rounds`` gives one after the other, without end."""

    if TYPE_CHECKING:
        interval: float

    @property
    def redrawn_every(self) -> float:
        """The interval."""
        return self.interval

    @abstractmethod
    def rounds(
        self, graph: Graph, random: np.random.Generator, given: TopologyInputs
    ) -> Iterator[base.EdgeEnds]:
        """Give both ends of the links of each interval; parameters are those of `changes`."""

    def changes(self, graph: Graph, random: np.random.Generator, given: TopologyInputs) -> Iterator[Change]:
        """See `ChangingTopology.changes`."""
        n, before = graph.agents, np.zeros(0, np.int64)
        for number, (a, b) in enumerate(self.rounds(graph, random, given)):
            keys = np.unique(base.pair_keys(n, np.asarray(a, np.int64), np.asarray(b, np.int64)))
            comes = np.setdiff1d(keys, before, assume_unique=True)
            goes = np.setdiff1d(before, keys, assume_unique=True)
            before = keys
            yield Change(number * self.interval, _ends(n, comes), _ends(n, goes))


def _ends(agents: int, keys: np.ndarray) -> np.ndarray:
    return np.stack([keys // agents, keys % agents], axis=1)


def all_pairs(agents: int) -> Graph:
    """The graph of all links, where any can come some time."""
    return Complete().build(agents, np.random.default_rng(0), TopologyInputs())


class OnePeerExponential(IntervalTopology):
    """In interval k agents are paired with those at a distance of 2^k, modulo log₂ n; n is a power of two.

    Round k pairs agent i with i xor 2^(k mod log₂ n), so that everyone has one neighbour, W = (I + P)/2 is symmetric
    and doubly stochastic, and the product of log₂ n rounds is 11ᵀ/n: after so many rounds of averaging all agree. In
    the one-peer exponential graph of Ying et al. (2021) agent i sends to i + 2^k modulo n and hears from another one,
    with the same product; links of p2psim go both ways.
    """

    kind: Literal["one-peer-exponential"] = "one-peer-exponential"
    interval: Interval
    agents: base.Agents = None

    def build(self, agents: int, random: np.random.Generator, given: TopologyInputs) -> Graph:
        """All links that there can be: the hypercube."""
        if agents & (agents - 1):
            raise MeaningError(
                self.size_key, f"this graph takes a power of two of agents, 2, 4, 8, …; got {agents}"
            )
        a, b = zip(*(_partners(agents, k) for k in range(self.period(agents))), strict=True)
        return from_edges(agents, np.concatenate(a), np.concatenate(b))

    def rounds(
        self, graph: Graph, random: np.random.Generator, given: TopologyInputs
    ) -> Iterator[base.EdgeEnds]:
        """See `IntervalTopology.rounds`."""
        number = 0
        while True:
            yield _partners(graph.agents, number % self.period(graph.agents))
            number += 1

    def period(self, agents: int) -> int:
        """log₂ n."""
        return agents.bit_length() - 1

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return float(agents)


def _partners(agents: int, exponent: int) -> base.EdgeEnds:
    place = np.arange(agents, dtype=np.int64)
    lower = place[place & (1 << exponent) == 0]
    return lower, lower | (1 << exponent)


class RandomMatching(IntervalTopology):
    """In each interval agents are paired at random, all pairings equally likely; of an odd number one is alone."""

    kind: Literal["random-matching"] = "random-matching"
    interval: Interval
    agents: base.Agents = None
    seed: base.Seed = None

    is_random: ClassVar[bool] = True
    most: ClassVar[int | None] = MOST

    def build(self, agents: int, random: np.random.Generator, given: TopologyInputs) -> Graph:
        """All links that there can be."""
        return all_pairs(agents)

    def rounds(
        self, graph: Graph, random: np.random.Generator, given: TopologyInputs
    ) -> Iterator[base.EdgeEnds]:
        """See `IntervalTopology.rounds`."""
        half = graph.agents // 2
        while True:
            order = random.permutation(graph.agents)
            yield order[:half], order[half : 2 * half]

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return float(agents)


COLUMNS = ("source", "target", "begin", "end")


@dataclass(frozen=True)
class _Table:
    """A file: all links that there are some time, and the spans in which each is there.

    Attributes
    ----------
    graph : FileGraph
    ends : ndarray of int64, shape (k, 2)
        Nodes, by place, of each span.
    begins, stops : ndarray, shape (k,)
    """

    graph: FileGraph
    ends: np.ndarray
    begins: np.ndarray
    stops: np.ndarray


class ChangingFile(ExplicitTopology, base.ChangingTopology):
    """Links that a table holds, each with the span of time in which it is there, as contact traces are.

    A line is a link, in either direction, and a span [begin, end); an empty end, or .inf, is for ever. Spans of a link
    may come in any order and may touch, but not overlap. With a column ``weight`` each link has a weight, the same in
    all its lines. Everyone must be linked some time; no link need be there at the beginning.

    Choices
    -------
    nodes: numbers
        nodes are named 0 … n − 1
    nodes: order
        agents are numbered as nodes first occur
    """

    is_file: ClassVar[bool] = True
    kind: Literal["changing-file"] = "changing-file"
    path: DataPath = Field(
        description="a CSV file with columns source, target, begin, end, and perhaps weight (.gz, .bz2, .xz, .zip too)"
    )
    sha256: Seal = ""
    nodes: Literal["names", "numbers", "order"] = Field(
        "names", description="which agent a node is, as of a graph in a file"
    )
    agents: base.Agents = None
    allow_disconnected: base.AllowDisconnected = False

    weight: ClassVar[str] = "weight"  # type: ignore[misc]

    @model_validator(mode="before")
    @classmethod
    def _seal(cls, value: Any, info: ValidationInfo) -> Any:
        return sealed(value, info)

    @property
    def _called(self) -> str:
        return self.path

    def _table(self) -> _Table:
        return _read(str(checked(self.path, KEY)), self.sha256)

    def _contents(self) -> FileGraph:
        return self._table().graph

    def changes(self, graph: Graph, random: np.random.Generator, given: TopologyInputs) -> Iterator[Change]:
        """See `ChangingTopology.changes`."""
        table = self._table()
        agents = np.array(table.graph.agent_of_node(self.nodes, given.labels), np.int64)
        ends = np.sort(agents[table.ends], axis=1)
        keys = ends[:, 0] * graph.agents + ends[:, 1]
        is_last = np.isfinite(table.stops)
        times = np.concatenate([[0.0], table.begins, table.stops[is_last]])
        moments, of = np.unique(times, return_inverse=True)
        order = np.argsort(of[1:], kind="stable")
        links = np.concatenate([keys, keys[is_last]])[order]
        comes = (np.arange(order.size) < keys.size)[order]
        cuts = np.searchsorted(of[1:][order], np.arange(moments.size + 1))
        for k, time in enumerate(moments.tolist()):
            here = slice(cuts[k], cuts[k + 1])
            new, old = links[here][comes[here]], links[here][~comes[here]]
            # A span that begins where another ends goes on.
            both = np.intersect1d(new, old)
            yield Change(time, *(_pairs(part[~np.isin(part, both)], graph.agents) for part in (new, old)))


def _pairs(keys: np.ndarray, agents: int) -> np.ndarray:
    return np.stack([keys // agents, keys % agents], axis=1)


@lru_cache(maxsize=4)
def _read(path: str, sha256: str) -> _Table:
    """Read a file once for all cells and replicas."""
    place = Path(path)
    header = [name.strip() for name in header_of(place, KEY)]
    if any(header.count(name) != 1 for name in COLUMNS) or header.count("weight") > 1:
        raise MeaningError(
            KEY,
            f"{place} needs columns source, target, begin, end, each once, and perhaps weight; it has "
            f"{', '.join(header)}",
        )
    columns = [header.index(name) for name in COLUMNS]
    weight = header.index("weight") if "weight" in header else None
    names: dict[str, int] = {}
    links: dict[tuple[int, int, Any], tuple[str, str]] = {}
    spans: dict[tuple[int, int], list[tuple[float, float, str]]] = {}
    for line, cells in as_wide(itertools.islice(lines_of(place, KEY), 1, None), len(header), place, KEY):
        where = f"{place}:{line}"
        source, target, begin, end = (cells[column].strip() for column in columns)
        ends = [names.setdefault(name, len(names)) for name in (source, target)]
        first, last = moment(begin, where, KEY), moment(end or "inf", where, KEY)
        if not first < last:
            raise MeaningError(
                KEY, f"{where}: a link must end after it begins, got {first:.17g} to {last:.17g}"
            )
        link = min(ends), max(ends)
        links[*link, None if weight is None else _weight(cells[weight], where)] = source, target
        spans.setdefault(link, []).append((first, last, where))
    if not names:
        raise MeaningError(KEY, f"{place} has no links")
    for (a, b), rows in spans.items():
        rows.sort()
        for (_, until, one), (begins, _, other) in itertools.pairwise(rows):
            if begins < until:
                named = list(names)
                raise MeaningError(
                    KEY, f"{other}: this span of the link {named[a]} – {named[b]} and that at {one} overlap"
                )
    edges = [
        (source, target, {} if value is None else {"weight": value})
        for (_, _, value), (source, target) in links.items()
    ]
    flat = [(a, b, begins, until) for (a, b), rows in spans.items() for begins, until, _ in rows]
    found = np.array(flat, float)
    graph = file_graph({name: {} for name in names}, edges, False, ("",))
    return _Table(graph, found[:, :2].astype(np.int64), found[:, 2], found[:, 3])


def _weight(text: str, where: str) -> int | float:
    try:
        return whole_or_real(text.strip())
    except ValueError as error:
        raise MeaningError(KEY, f"{where}: {error}") from None
