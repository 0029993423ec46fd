"""Random topologies: Erdős–Rényi, scale-free, small world, and two clusters."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.errors import MeaningError
from p2psim.core.options import Count, Fraction
from p2psim.network.graph import Graph, TopologyInputs, from_edges
from p2psim.network.topologies.base import (
    Agents,
    AllowDisconnected,
    EdgeEnds,
    Seed,
    Topology,
    draw_until_joined,
    is_first,
    no_learner,
    pair_keys,
    pairs_between,
    pairs_within,
    settle,
)


class ErdosRenyi(Topology):
    """Each pair is linked with the same probability, independently; drawn again until connected.

    G(n, p) of Gilbert (1959), conditioned on being connected.
    """

    kind: Literal["erdos-renyi"] = "erdos-renyi"
    probability: Annotated[float, Field(gt=0, le=1)] = Field(description="chance that two agents are linked")
    agents: Agents = None
    seed: Seed = None
    allow_disconnected: AllowDisconnected = False

    is_random: ClassVar[bool] = True

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return self.probability * agents * (agents - 1)

    def links(
        self, agents: int | None, random: np.random.Generator, given: TopologyInputs, learner: bool = False
    ) -> Graph:
        """Links of one draw; see :func:`p2psim.network.topologies.draw_links`."""
        no_learner(self.kind, learner)
        number = settle(self.agents, agents, given)
        return draw_until_joined(
            number,
            lambda: pairs_within(number, self.probability, random),
            self.allow_disconnected,
            f"a probability well above ln(n)/n = {np.log(number) / number:.3g} would help, or random-regular",
        )


class ScaleFree(Topology):
    """Agents come one by one and attach to earlier ones, in proportion to their degrees; always connected.

    Barabási and Albert (1999), from a star of attach + 1 agents: each newcomer draws different earlier agents,
    one after the other.
    """

    kind: Literal["scale-free"] = "scale-free"
    attach: Count = Field(description="links that each newcomer makes")
    agents: Agents = None
    seed: Seed = None

    is_random: ClassVar[bool] = True

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return 2.0 * agents * self.attach

    def links(
        self, agents: int | None, random: np.random.Generator, given: TopologyInputs, learner: bool = False
    ) -> Graph:
        """Links of one draw; see :func:`p2psim.network.topologies.draw_links`."""
        no_learner(self.kind, learner)
        number = settle(self.agents, agents, given, least=self.attach + 1)
        return from_edges(number, *_attach(number, self.attach, random))


def _attach(agents: int, attach: int, random: np.random.Generator) -> EdgeEnds:
    # Every link leaves both its ends in the urn, so that a uniform draw from it goes by degree.
    urn = [0] * attach + list(range(1, attach + 1))
    draws, place = random.random(1 << 12).tolist(), 0
    links = [(0, other) for other in range(1, attach + 1)]
    for newcomer in range(attach + 1, agents):
        chosen: dict[int, None] = {}  # in the order drawn: sets have none to rely on
        while len(chosen) < attach:
            if place == len(draws):
                draws, place = random.random(1 << 12).tolist(), 0
            chosen[urn[int(draws[place] * len(urn))]] = None
            place += 1
        for other in chosen:
            links.append((newcomer, other))
            urn += (newcomer, other)
    ends = np.array(links, dtype=np.int64)
    return ends[:, 0], ends[:, 1]


#: A link finds a new end among those that are free, or, after so many tries in a full graph, stays.
_TRIES = 1000


class SmallWorld(Topology):
    """A ring of near neighbours, some of whose links lead elsewhere; drawn again until connected.

    Watts and Strogatz (1998): each agent is linked with the nearest, half on either side; each link keeps its
    first end and, with the given chance, takes a second one, uniformly among those whom it is not linked with by then
    and was not on the ring.
    """

    kind: Literal["small-world"] = "small-world"
    neighbours: Count = Field(
        description="nearest agents on the ring that each is linked with at first; even"
    )
    rewire: Fraction = Field(description="chance that a link leads elsewhere")
    agents: Agents = None
    seed: Seed = None
    allow_disconnected: AllowDisconnected = False

    is_random: ClassVar[bool] = True

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return float(agents) * self.neighbours

    def links(
        self, agents: int | None, random: np.random.Generator, given: TopologyInputs, learner: bool = False
    ) -> Graph:
        """Links of one draw; see :func:`p2psim.network.topologies.draw_links`."""
        no_learner(self.kind, learner)
        number = settle(self.agents, agents, given, least=3)
        if self.neighbours % 2 or self.neighbours >= number:
            raise MeaningError(
                "network.topology.neighbours",
                f"must be even and less than the number of agents, {number}; got {self.neighbours}",
            )
        return draw_until_joined(
            number,
            lambda: self._draw(number, random),
            self.allow_disconnected,
            "more neighbours or less rewiring would help",
        )

    def _draw(self, agents: int, random: np.random.Generator) -> EdgeEnds:
        half = self.neighbours // 2
        a = np.tile(np.arange(agents, dtype=np.int64), half)
        b = (a + np.repeat(np.arange(1, half + 1), agents)) % agents
        moving = np.flatnonzero(random.random(a.size) < self.rewire)
        taken = np.sort(pair_keys(agents, a, b))
        for _ in range(_TRIES):
            if not moving.size:
                break
            end = random.integers(agents, size=moving.size)
            start = a[moving]
            keys = pair_keys(agents, start, end)
            free = taken[np.minimum(np.searchsorted(taken, keys), taken.size - 1)] != keys
            fits = free & is_first(keys) & (start != end)
            b[moving[fits]] = end[fits]
            taken = np.sort(np.concatenate([taken, keys[fits]]))
            moving = moving[~fits]
        return a, b


class TwoCluster(Topology):
    """Two halves, linked densely within and sparsely between; drawn again until connected.

    A stochastic block model: the first ⌈n/2⌉ agents are one cluster, the others the other; every pair is linked
    independently.
    """

    kind: Literal["two-cluster"] = "two-cluster"
    within: Fraction = Field(description="chance that two agents of a cluster are linked")
    between: Fraction = Field(description="chance that two agents of different clusters are linked")
    agents: Agents = None
    seed: Seed = None
    allow_disconnected: AllowDisconnected = False

    is_random: ClassVar[bool] = True

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return (self.within + self.between) / 2 * agents * (agents - 2)

    def links(
        self, agents: int | None, random: np.random.Generator, given: TopologyInputs, learner: bool = False
    ) -> Graph:
        """Links of one draw; see :func:`p2psim.network.topologies.draw_links`."""
        no_learner(self.kind, learner)
        number = settle(self.agents, agents, given)
        return draw_until_joined(
            number,
            lambda: self._draw(number, random),
            self.allow_disconnected,
            "larger chances would help, or allow_disconnected: true",
        )

    def _draw(self, agents: int, random: np.random.Generator) -> EdgeEnds:
        second = agents // 2
        first = agents - second
        one, two = pairs_within(first, self.within, random), pairs_within(second, self.within, random)
        across = pairs_between(first, second, self.between, random)
        a = np.concatenate([one[0], two[0] + first, across[0]])
        b = np.concatenate([one[1], two[1] + first, across[1]])
        return a, b
