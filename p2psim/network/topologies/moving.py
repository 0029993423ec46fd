"""Graphs that change little by little: agents that move in a square, and links that take other ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, field_validator, model_validator

from p2psim.core.errors import MeaningError
from p2psim.core.options import AS_TUPLE, BY_NAME, NonNegative, Positive
from p2psim.core.part_types import AnyOf
from p2psim.network.graph import Graph, TopologyInputs
from p2psim.network.topologies.base import Agents, ChangingTopology, EdgeEnds, Seed, Topology
from p2psim.network.topologies.changing import MOST, Interval, IntervalTopology, all_pairs
from p2psim.network.topologies.random import move_ends

#: Those that change themselves, a learner's star, and what only a program can give.
_NOT = (
    "one-peer-exponential", "random-matching", "rewired", "random-waypoint", "changing-file", "star", "networkx",
)  # fmt: skip


class RandomWaypoint(IntervalTopology):
    """Agents move in the unit square, and are linked while they are within a radius (Johnson and Maltz 1996).

    Each agent starts at a uniform place. It goes straight to a uniform destination at a uniform speed, pauses there,
    and goes on to the next. Who is near whom is looked at once an interval: a link lasts until the first look
    at which its ends are further apart. The same agents take the same paths whatever the radius and the interval.

    Agents that travel are more often in the middle than at the rim, and slow travels last longer than fast ones: at
    time 0 neither is so yet, and ``warm_up`` lets them walk before. The lowest speed is positive, since otherwise the
    mean speed would tend to 0 (Yoon, Liu and Noble 2003).
    """

    kind: Literal["random-waypoint"] = "random-waypoint"
    radius: Positive = Field(
        description="distance up to which two agents are linked; the square has sides of 1"
    )
    speed: Annotated[tuple[Positive, Positive], AS_TUPLE] = Field(
        description="lowest and highest speed, in sides of the square per unit of time"
    )
    pause: NonNegative = Field(0.0, description="time that an agent stays at each destination")
    interval: Positive = Field(
        description="time between checks of distances; the k-th check is at k·interval"
    )
    warm_up: NonNegative = Field(0.0, description="time that agents have moved before time 0")
    agents: Agents = None
    seed: Seed = None

    is_random: ClassVar[bool] = True
    most: ClassVar[int | None] = MOST

    @model_validator(mode="after")
    def _is_in_order(self) -> Self:
        if self.speed[0] > self.speed[1]:
            raise ValueError(f"speed: the lowest, {self.speed[0]:g}, is above the highest, {self.speed[1]:g}")
        return self

    def build(self, agents: int, random: np.random.Generator, given: TopologyInputs) -> Graph:
        """All links that there can be."""
        return all_pairs(agents)

    def rounds(self, graph: Graph, random: np.random.Generator, given: TopologyInputs) -> Iterator[EdgeEnds]:
        """See `IntervalTopology.rounds`."""
        from scipy.spatial import cKDTree

        where, number = self.walk(graph.agents, random), 0
        while True:
            pairs = cKDTree(where(number * self.interval)).query_pairs(self.radius, output_type="ndarray")
            yield pairs[:, 0], pairs[:, 1]
            number += 1

    def walk(self, agents: int, random: np.random.Generator) -> Callable[[float], np.ndarray]:
        """Let agents walk.

        Returns
        -------
        callable
            Gives the places of all agents at a time, shape (agents, 2); times that it is asked for must not go back.
        """
        low, high = self.speed
        begin, start = np.zeros(agents), random.random((agents, 2))
        # Way ℓ of all agents is drawn together when the first of them sets out on it.
        ways: dict[int, np.ndarray] = {}
        numbers, drawn = np.zeros(agents, np.int64), 0
        aim, arrives = start.copy(), np.zeros(agents)
        arrives -= self.pause  # so that all set out at once

        def where(time: float) -> np.ndarray:
            nonlocal drawn
            now = time + self.warm_up
            while (late := np.flatnonzero(arrives + self.pause <= now)).size:
                while drawn <= numbers[late].max():
                    ways[drawn] = random.random((agents, 3))
                    drawn += 1
                way = np.stack(
                    [ways[number][i] for i, number in zip(late.tolist(), numbers[late].tolist(), strict=True)]
                )
                begin[late], start[late], aim[late] = arrives[late] + self.pause, aim[late], way[:, :2]
                length = np.hypot(*(aim[late] - start[late]).T)
                arrives[late] = begin[late] + length / (low + (high - low) * way[:, 2])
                numbers[late] += 1
                for done in [number for number in ways if number < numbers.min()]:
                    del ways[done]
            lasts = np.where(arrives > begin, arrives - begin, 1.0)
            share = np.clip((now - begin) / lasts, 0, 1)
            return start + share[:, None] * (aim - start)

        return where

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return min(np.pi * self.radius**2, 1.0) * agents * (agents - 1)


class Rewired(IntervalTopology):
    """A graph whose links move little by little: in each interval, each with the same chance.

    The graph of the first interval is a separate topology. After each interval every link is moved with the chance
    ``share``: it keeps either end, and takes for the other one an agent, uniformly among those with whom that makes
    a new link, as in the small worlds of Watts and Strogatz. So the number of links stays, while some agents can be
    alone for a while.
    """

    kind: Literal["rewired"] = "rewired"
    of: Annotated[Topology, AnyOf("topology", but=_NOT), BY_NAME] = Field(
        description="the graph of the first interval; its links weigh 1, and it must have no seed"
    )
    share: Annotated[float, Field(gt=0, le=1)] = Field(description="chance that a link moves, each interval")
    interval: Interval
    seed: Seed = None

    is_random: ClassVar[bool] = True
    most: ClassVar[int | None] = MOST
    size_key: ClassVar[str] = "network.topology.of"

    @field_validator("of")
    @classmethod
    def _is_plain(cls, of: Topology) -> Topology:
        if isinstance(of, ChangingTopology):
            raise ValueError("changes itself: name a graph that does not")
        if getattr(of, "seed", None) is not None:
            raise ValueError("has a seed: give it to the whole graph, which is then the same in all replicas")
        if getattr(of, "weights", None) is not None or getattr(of, "normalise", None) is not None:
            raise ValueError("asks for weights, and links that move weigh 1")
        return of

    def size_and_names(self) -> tuple[int | None, tuple[str, ...] | None]:
        """How many agents the first graph has, and their names, as far as it says either."""
        return self.of.size_and_names()

    @property
    def size(self) -> int | None:
        """Number of agents that the first graph says."""
        return self.of.size_and_names()[0]

    @property
    def is_file(self) -> bool:  # type: ignore[override]
        """Whether a file holds the first graph."""
        return self.of.is_file

    @property
    def reads_data(self) -> bool:  # type: ignore[override]
        """Whether the first graph depends on the records."""
        return self.of.reads_data

    def by_order(self) -> Self:
        """The same with agents numbered as the nodes of the first graph occur."""
        return self.model_copy(update={"of": self.of.by_order()})

    def check_owners(self, labels: Sequence[str]) -> None:
        """Raise if the data has another number of owners, of these names, than the first graph."""
        self.of.check_owners(labels)

    def build(self, agents: int, random: np.random.Generator, given: TopologyInputs) -> Graph:
        """All links that there can be."""
        first = self.of.links(agents, random, given)
        if (first.weights != 1).any():
            raise MeaningError(
                self.size_key, "links that move weigh 1, and those of the first graph have weights"
            )
        if first.indices.size == agents * (agents - 1):
            raise MeaningError(self.size_key, "links cannot move in a graph that has them all")
        return all_pairs(agents)

    def rounds(self, graph: Graph, random: np.random.Generator, given: TopologyInputs) -> Iterator[EdgeEnds]:
        """See `IntervalTopology.rounds`."""
        n = graph.agents
        first = self.of.links(n, random, given)
        a = np.repeat(np.arange(n, dtype=np.int64), np.diff(first.indptr))
        b = first.indices.astype(np.int64)
        a, b = a[a < b], b[a < b]
        while True:
            yield a, b
            moving = np.flatnonzero(random.random(a.size) < self.share)
            turned = moving[random.random(moving.size) < 0.5]
            a[turned], b[turned] = b[turned], a[turned].copy()
            move_ends(n, a, b, moving, random)

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return self.of.link_ends(agents)
