"""Graphs that change with time: their base class, and those whose links are drawn anew in each interval.

A graph that changes is made of all links that there can be, and of changes (`p2psim.network.changes`). Where any two
agents can be linked some time, all pairs are links that there can be, so that there are at most 2,000 agents.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.errors import MeaningError
from p2psim.core.options import Positive
from p2psim.network.changes import Change
from p2psim.network.graph import Graph, TopologyInputs, from_edges
from p2psim.network.topologies.base import Agents, EdgeEnds, Seed, SizedTopology, Topology, pair_keys
from p2psim.network.topologies.regular import Complete

#: Agents of a graph in which any two can be linked some time: 4 million directed links.
MOST = 2_000

Interval = Annotated[
    Positive, Field(description="time after which links change; the k-th time is k·interval")
]


class ChangingTopology(Topology):
    """Base of graphs whose links come and go with time.

    One of your own has what every `Topology` has, where ``links`` gives all links that there can be, and says in
    ``changes`` when they come and go. It sets ``is_random`` if either draws random numbers. Nothing else is to be done:
    both engines, the verifier and `p2psim.network.changes.ActiveLinks` read the same changes.
    """

    @abstractmethod
    def changes(self, graph: Graph, random: np.random.Generator, given: TopologyInputs) -> Iterable[Change]:
        """Say when links come and go.

        Parameters
        ----------
        graph : Graph
            What `links` gave.
        random : numpy.random.Generator
            The only source of random numbers; not the one of `links`.
        given : TopologyInputs
            What the data says.

        Returns
        -------
        iterable of Change
            In order of time, the first at time 0, with the links that are there at first. It may go on for ever: no
            more is taken from it than a run needs.
        """

    def period(self, agents: int) -> int | None:
        """Number of changes after which the graph is the first again, and so on; None where there is none."""
        return None


class IntervalTopology(ChangingTopology, SizedTopology):
    """Base of graphs that are another one in each interval: ``rounds`` gives one after the other, without end."""

    if TYPE_CHECKING:
        interval: float

    @abstractmethod
    def rounds(self, graph: Graph, random: np.random.Generator, given: TopologyInputs) -> Iterator[EdgeEnds]:
        """Give both ends of the links of each interval; parameters are those of `changes`."""

    def changes(self, graph: Graph, random: np.random.Generator, given: TopologyInputs) -> Iterator[Change]:
        """See `ChangingTopology.changes`."""
        n, before = graph.agents, np.zeros(0, np.int64)
        for number, (a, b) in enumerate(self.rounds(graph, random, given)):
            keys = np.unique(pair_keys(n, np.asarray(a, np.int64), np.asarray(b, np.int64)))
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
    agents: Agents = None

    def build(self, agents: int, random: np.random.Generator, given: TopologyInputs) -> Graph:
        """All links that there can be: the hypercube."""
        if agents & (agents - 1):
            raise MeaningError(
                self.size_key, f"this graph takes a power of two of agents, 2, 4, 8, …; got {agents}"
            )
        a, b = zip(*(_partners(agents, k) for k in range(self.period(agents))), strict=True)
        return from_edges(agents, np.concatenate(a), np.concatenate(b))

    def rounds(self, graph: Graph, random: np.random.Generator, given: TopologyInputs) -> Iterator[EdgeEnds]:
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


def _partners(agents: int, exponent: int) -> EdgeEnds:
    place = np.arange(agents, dtype=np.int64)
    lower = place[place & (1 << exponent) == 0]
    return lower, lower | (1 << exponent)


class RandomMatching(IntervalTopology):
    """In each interval agents are paired at random, all pairings equally likely; of an odd number one is alone."""

    kind: Literal["random-matching"] = "random-matching"
    interval: Interval
    agents: Agents = None
    seed: Seed = None

    is_random: ClassVar[bool] = True
    most: ClassVar[int | None] = MOST

    def build(self, agents: int, random: np.random.Generator, given: TopologyInputs) -> Graph:
        """All links that there can be."""
        return all_pairs(agents)

    def rounds(self, graph: Graph, random: np.random.Generator, given: TopologyInputs) -> Iterator[EdgeEnds]:
        """See `IntervalTopology.rounds`."""
        half = graph.agents // 2
        while True:
            order = random.permutation(graph.agents)
            yield order[:half], order[half : 2 * half]

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return float(agents)
