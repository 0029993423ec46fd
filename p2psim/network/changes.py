"""Graphs that change: when links come and go, and who is linked with whom at a moment.

A graph that changes is a `Graph` of all links that there ever can be, and its `LinkChanges`. Links change before
anything else happens at their instant: at time t those links are there whose last change at or before t lets them come.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.core.events import NEIGHBOURS, SEND
from p2psim.core.printing import exact
from p2psim.core.randomness import generator
from p2psim.network.graph import Graph, TopologyInputs, Turned

#: The key that errors name.
KEY = "network.topology"

#: Both ends of each of some links, shape (k, 2), or pairs of agents.
Pairs = np.ndarray | Sequence[tuple[int, int]]


class Change(NamedTuple):
    """What changes at one moment.

    Attributes
    ----------
    time : float
    comes, goes : ndarray of int, shape (k, 2)
        Both ends of links that are there from then on, and of those that are not; each link once, in either direction.
    """

    time: float
    comes: Pairs
    goes: Pairs


class Changing(Protocol):
    """What says when links come and go: see `p2psim.network.topologies.base.ChangingTopology`."""

    def changes(self, graph: Graph, random: np.random.Generator, given: TopologyInputs) -> Iterable[Change]:
        """Changes in order of time, the first at time 0."""

    def period(self, agents: int) -> int | None:
        """Number of changes after which the graph is the first again, and so on; None where there is none."""


@dataclass(frozen=True, eq=False)
class LinkChanges:
    """When links of a graph come and go; whoever reads begins at time 0, and reads the same.

    Attributes
    ----------
    source : Changing
    given : TopologyInputs
        What the data says.
    key : ndarray of uint64, shape (2,)
        Of the random stream.
    """

    source: Changing
    given: TopologyInputs
    key: np.ndarray

    @property
    def digest(self) -> str:
        """Tells apart changes that the same topology makes of different random numbers."""
        return hashlib.blake2b(self.key.tobytes(), digest_size=16).hexdigest()

    def period(self, agents: int) -> int | None:
        """Number of changes after which the graph is the first again, and so on; None where there is none."""
        return self.source.period(agents)

    def read(self, graph: Graph) -> Iterator[Turned]:
        """Changes of a graph, which is all links that there can be, in order of time.

        Raises
        ------
        MeaningError
            If the first change is not at time 0, times do not rise, a link comes that there cannot be or that is there
            already, or one goes that is not there.
        """
        n, last = graph.agents, -np.inf
        keys = np.repeat(np.arange(n, dtype=np.int64), np.diff(graph.indptr)) * n + graph.indices
        is_there = np.zeros(keys.size, bool)
        # Lane 0 is of the graph itself.
        for change in self.source.changes(graph, generator(self.key, lane=1), self.given):
            time = float(change.time)
            if not (time > last and time < np.inf) or (last == -np.inf and time != 0):
                raise MeaningError(
                    KEY,
                    f"links change at rising times from 0 on; got {exact(time)} after {last if last >= 0 else 'none'}",
                )
            comes, goes = _places(keys, n, change.comes, time), _places(keys, n, change.goes, time)
            if is_there[comes].any() or not is_there[goes].all():
                raise MeaningError(
                    KEY, f"at {time:g} a link is added that exists already, or removed that does not exist"
                )
            is_there[comes], is_there[goes] = True, False
            last = time
            yield Turned(time, comes, goes)


def _places(keys: np.ndarray, n: int, pairs: Pairs, time: float) -> np.ndarray:
    """Where links stand in ``Graph.indices``, in both directions."""
    ends = np.asarray(pairs, np.int64).reshape(-1, 2)
    wanted = np.concatenate([ends[:, 0] * n + ends[:, 1], ends[:, 1] * n + ends[:, 0]])
    places = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    if not (keys[places] == wanted).all() or np.unique(wanted).size < wanted.size:
        raise MeaningError(
            KEY,
            f"at {time:g} a link changes twice, or a link changes that the graph of all links does not have",
        )
    return places


def _not_beyond(moment: float, end: float) -> float:
    """A moment, or the end of the run where rounding alone puts it beyond."""
    from p2psim.core.times import until  # compiled: scenarios are read without it

    return float(until(moment, end))


class ActiveLinks:
    """Who is linked with whom at a moment, which goes forward; of a graph that does not change, at all times.

    Parameters
    ----------
    graph : Graph
    end : float, optional
        End of the run, if it has one: a change that rounding alone puts after it is one of that moment.

    Attributes
    ----------
    time : float
        The moment.
    is_there : ndarray of bool, shape (links,)
        Whether each of ``Graph.indices`` is there.

    Examples
    --------
    >>> import p2psim
    >>> topology = p2psim.OnePeerExponential(agents=8, interval=1.0)
    >>> network = p2psim.Network.of_graph(topology, p2psim.Gossip())
    >>> links = p2psim.ActiveLinks(network.links)
    >>> links.of(0).tolist(), links.advance(1.5).of(0).tolist()
    ([1], [2])
    """

    def __init__(self, graph: Graph, end: float | None = None):
        self._graph, self._end, self.time = graph, np.inf if end is None else end, 0.0
        self.is_there = np.full(graph.indices.size, graph.changes is None)
        self._changes = iter(graph.changes.read(graph)) if graph.changes is not None else iter(())
        self._next = next(self._changes, None)
        self.advance(0.0)

    def advance(self, time: float) -> ActiveLinks:
        """Go on to a moment, and make all changes until then; returns itself."""
        while self._next is not None and self.upcoming <= time:
            self.is_there[self._next.comes], self.is_there[self._next.goes] = True, False
            self._next = next(self._changes, None)
        self.time = max(self.time, time)
        return self

    @property
    def upcoming(self) -> float:
        """When links change next; infinite if they never do."""
        return np.inf if self._next is None else _not_beyond(self._next.time, self._end)

    def places(self, agent: int) -> np.ndarray:
        """Places of an agent's links in ``Graph.indices``, in rising order."""
        first, last = self._graph.indptr[agent], self._graph.indptr[agent + 1]
        return first + np.flatnonzero(self.is_there[first:last])

    def of(self, agent: int) -> np.ndarray:
        """Neighbours of one agent, in rising order."""
        return self._graph.indices[self.places(agent)]

    def weights_of(self, agent: int) -> np.ndarray:
        """W_ij for each of `of`."""
        return self._graph.weights[self.places(agent)]

    def degree(self, agent: int) -> int:
        """Number of neighbours of one agent."""
        return int(self.places(agent).size)

    def linked(self, agent: int, peer: int) -> bool:
        """Whether two agents are linked."""
        first, last = self._graph.indptr[agent], self._graph.indptr[agent + 1]
        place = first + int(np.searchsorted(self._graph.indices[first:last], peer))
        return bool(place < last and self._graph.indices[place] == peer and self.is_there[place])

    def receivers(self, events: np.ndarray) -> np.ndarray:
        """To how many agents each of some events sends, 0 where it does not; advances to the last of them.

        Parameters
        ----------
        events : ndarray of EVENT
            In order, of agents on a graph.

        Returns
        -------
        ndarray of int64, shape (events.size,)
        """
        counts = ((events["kind"] == SEND) & (events["peer"] >= 0)).astype(np.int64)
        to_all = np.flatnonzero((events["kind"] == SEND) & (events["peer"] == NEIGHBOURS))
        for place in to_all.tolist():
            counts[place] = self.advance(float(events["time"][place])).degree(int(events["agent"][place]))
        return counts

    def graph(self) -> Graph:
        """The graph of this moment, in which an agent may be alone."""
        there = self.is_there
        indptr = np.concatenate([[0], np.cumsum(there)])[self._graph.indptr]
        return replace(
            self._graph,
            indptr=indptr.astype(np.int64),
            indices=self._graph.indices[there],
            weights=self._graph.weights[there],
            attributes={name: values[there] for name, values in self._graph.attributes.items()},
            changes=None,
        )


def graph_at(graph: Graph, time: float) -> Graph:
    """The graph of a moment; for many moments in order `ActiveLinks` is faster."""
    return ActiveLinks(graph).advance(time).graph()


def comes_back(graph: Graph) -> bool:
    """Whether a graph stays, or is known to be the first again after some changes."""
    return graph.changes is None or graph.changes.period(graph.agents) is not None


def rounds_of(graph: Graph) -> list[Graph]:
    """The graphs of one period of a graph that changes, in order.

    Raises
    ------
    MeaningError
        If it is not known to be periodic.
    """
    period = graph.changes.period(graph.agents) if graph.changes is not None else 1
    if period is None:
        raise MeaningError(KEY, "the graph changes for ever, and in no period that is known")
    if graph.changes is None:
        return [graph]
    active, found = ActiveLinks(graph), []
    for number, change in enumerate(graph.changes.read(graph)):
        if number == period:
            break
        active.advance(change.time)
        found.append(active.graph())
    return found


@dataclass
class Upcoming:
    """Changes that are read a block at a time, for the compiled engine.

    Attributes
    ----------
    graph : Graph
    end : float
        End of the run, if it has one.
    known : float
        Up to when changes have been handed out.
    """

    graph: Graph
    end: float
    known: float = 0.0
    _changes: Iterator[Turned] = field(init=False)

    #: Links that change in a block, and changes, about.
    MANY, MOMENTS = 1 << 12, 256

    def __post_init__(self) -> None:
        """Begin to read."""
        assert self.graph.changes is not None
        self._changes = iter(self.graph.changes.read(self.graph))

    def more(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times, places and whether they come, of links that change next; afterwards all is known up to `known`."""
        times, places, comes, count = [], [], [], 0
        for _ in range(self.MOMENTS):
            change = next(self._changes, None)
            time = np.inf if change is None else _not_beyond(change.time, self.end)
            if change is None or time > self.end:
                self.known = np.inf
                break
            self.known = time
            both = np.concatenate([change.goes, change.comes])
            places.append(both)
            times.append(np.full(both.size, time))
            comes.append(np.arange(both.size) >= change.goes.size)
            count += both.size
            if count >= self.MANY:
                break
        empty = np.zeros(0, np.int64)
        return (
            np.concatenate([empty.astype(float), *times]),
            np.concatenate([empty, *places]),
            np.concatenate([empty.astype(bool), *comes]),
        )
