"""Random topologies: Erdős–Rényi, scale-free, small world, and regular graphs."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.errors import MeaningError
from p2psim.core.options import Count, Fraction, stands_for
from p2psim.network.graph import Graph, TopologyInputs, from_edges
from p2psim.network.topologies import base


class ErdosRenyi(base.RedrawnTopology):
    """Each pair is linked with the same probability, independently; drawn again until connected.

    G(n, p) of Gilbert (1959), conditioned on being connected.
    """

    kind: Literal["erdos-renyi"] = "erdos-renyi"
    probability: Annotated[float, Field(gt=0, le=1)] = Field(description="chance that two agents are linked")
    agents: base.Agents = None
    seed: base.Seed = None
    allow_disconnected: base.AllowDisconnected = False
    weights: base.Weights = None
    normalise: base.Normalise = None

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return self.probability * agents * (agents - 1)

    def advice(self, agents: int) -> str:
        """What would help."""
        return (
            f"a probability well above ln(n)/n = {np.log(agents) / agents:.3g} would help, or random-regular"
        )

    def draw(self, agents: int, random: np.random.Generator) -> base.EdgeEnds:
        """Draw one graph."""
        return base.pairs_within(agents, self.probability, random)


class ScaleFree(base.SizedTopology):
    """Agents come one by one and attach to earlier ones, in proportion to their degrees; always connected.

    Barabási and Albert (1999), from a star of attach + 1 agents: each newcomer draws different earlier agents,
    one after the other.
    """

    kind: Annotated[Literal["scale-free", "barabasi-albert"], stands_for("scale-free")] = "scale-free"
    attach: Count = Field(description="links that each newcomer makes")
    agents: base.Agents = None
    seed: base.Seed = None
    weights: base.Weights = None
    normalise: base.Normalise = None

    is_random: ClassVar[bool] = True

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return 2.0 * agents * self.attach

    @property
    def least(self) -> int:  # type: ignore[override]
        """Fewest agents: those of the star that it begins with."""
        return self.attach + 1

    def build(self, agents: int, random: np.random.Generator, given: TopologyInputs) -> Graph:
        """Links of one draw."""
        return from_edges(agents, *_attach(agents, self.attach, random))


def _attach(agents: int, attach: int, random: np.random.Generator) -> base.EdgeEnds:
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


class SmallWorld(base.RedrawnTopology):
    """A ring of near neighbours, some of whose links lead elsewhere; drawn again until connected.

    Watts and Strogatz (1998): each agent is linked with the nearest, half on either side; each link keeps its
    first end and, with the given chance, takes a second one, uniformly among those whom it is not linked with by then
    and was not on the ring.
    """

    kind: Annotated[Literal["small-world", "watts-strogatz"], stands_for("small-world")] = "small-world"
    neighbours: Count = Field(
        description="nearest agents on the ring that each is linked with at first; even"
    )
    rewire: Fraction = Field(description="chance that a link leads elsewhere")
    agents: base.Agents = None
    seed: base.Seed = None
    allow_disconnected: base.AllowDisconnected = False
    weights: base.Weights = None
    normalise: base.Normalise = None

    least: ClassVar[int] = 3

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return float(agents) * self.neighbours

    def advice(self, agents: int) -> str:
        """What would help."""
        return "more neighbours or less rewiring would help"

    def build(self, agents: int, random: np.random.Generator, given: TopologyInputs) -> Graph:
        """Links of one draw."""
        if self.neighbours % 2 or self.neighbours >= agents:
            raise MeaningError(
                "network.topology.neighbours",
                f"must be even and less than the number of agents, {agents}; got {self.neighbours}",
            )
        return super().build(agents, random, given)

    def draw(self, agents: int, random: np.random.Generator) -> base.EdgeEnds:
        """Draw one graph."""
        half = self.neighbours // 2
        a = np.tile(np.arange(agents, dtype=np.int64), half)
        b = (a + np.repeat(np.arange(1, half + 1), agents)) % agents
        moving = np.flatnonzero(random.random(a.size) < self.rewire)
        move_ends(agents, a, b, moving, random)
        return a, b


def move_ends(
    agents: int, a: np.ndarray, b: np.ndarray, moving: np.ndarray, random: np.random.Generator
) -> None:
    """Lead some links elsewhere, in place: each takes a new second end, uniformly among those that make a new link.

    Parameters
    ----------
    agents : int
    a, b : ndarray of int64, shape (m,)
        Ends of all links.
    moving : ndarray of int64
        Places of those that move. The links that they are at first count as taken.
    random : numpy.random.Generator
    """
    taken = np.sort(base.pair_keys(agents, a, b))
    for _ in range(_TRIES):
        if not moving.size:
            break
        end = random.integers(agents, size=moving.size)
        start = a[moving]
        keys = base.pair_keys(agents, start, end)
        free = taken[np.minimum(np.searchsorted(taken, keys), taken.size - 1)] != keys
        fits = free & base.is_first(keys) & (start != end)
        b[moving[fits]] = end[fits]
        taken = np.sort(np.concatenate([taken, keys[fits]]))
        moving = moving[~fits]


#: Rounds of repair before a pairing is given up; small graphs can get stuck, large ones take two or three.
_ROUNDS = 100

#: Rounds of mixing, and the most links in all of them.
_MIXING, _MOST_MIXED = 100, 1_000_000


class RandomRegular(base.RedrawnTopology):
    """Every agent has the same number of neighbours, who are random; drawn again until connected.

    A pairing of n·degree half-links (Bollobás 1980); its loops and repeated links, about degree²/4 whatever n,
    are undone by switching ends with other links, chosen uniformly. That alone would favour some graphs where n
    is small, so that ends are then switched at random for up to 100 rounds, fewer in large graphs (none above a
    million links, where repair touches a vanishing part): a chain whose stationary distribution is uniform.
    """

    kind: Literal["random-regular"] = "random-regular"
    degree: Count = Field(description="number of neighbours of every agent")
    agents: base.Agents = None
    seed: base.Seed = None
    allow_disconnected: base.AllowDisconnected = False
    weights: base.Weights = None
    normalise: base.Normalise = None

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return float(agents) * self.degree

    def advice(self, agents: int) -> str:
        """What would help."""
        return "a degree of 3 or more would help; for degree 2 take a ring"

    def build(self, agents: int, random: np.random.Generator, given: TopologyInputs) -> Graph:
        """Links of one draw."""
        degree = self.degree
        if degree >= agents:
            raise MeaningError(
                "network.topology.degree", f"must be less than the number of agents, {agents}; got {degree}"
            )
        if agents * degree % 2:
            raise MeaningError(
                "network.topology.degree",
                f"{agents} agents of degree {degree} have an odd number of half-links; change one of them",
            )
        return super().build(agents, random, given)

    def draw(self, agents: int, random: np.random.Generator) -> base.EdgeEnds:
        """Draw one graph."""
        return regular_pairs(agents, self.degree, random)


def regular_pairs(agents: int, degree: int, random: np.random.Generator) -> base.EdgeEnds:
    """Ends of the links of a random simple graph in which all have the same degree.

    Parameters
    ----------
    agents : int
    degree : int
        Less than `agents`; the product of both is even.
    random : numpy.random.Generator
    """
    if 2 * degree > agents - 1:  # dense: leave out the links of a sparse one
        a, b = np.triu_indices(agents, 1)
        out = regular_pairs(agents, agents - 1 - degree, random)
        keep = ~np.isin(a * agents + b, base.pair_keys(agents, *out), assume_unique=True)
        return a[keep], b[keep]
    while True:
        # Numbers of half as many bytes take less time to shuffle, in the same order.
        halves = random.permutation(np.repeat(np.arange(agents, dtype=np.int32), degree))
        a, b = halves[::2].astype(np.int64), halves[1::2].astype(np.int64)
        if _repair(agents, a, b, random):
            for _ in range(min(_MIXING, _MOST_MIXED // max(a.size, 1))):
                a, b = _mix(agents, a, b, random)
            return a, b


def _repair(agents: int, a: np.ndarray, b: np.ndarray, random: np.random.Generator) -> bool:
    """Switch ends, in place, until no link is a loop or repeated; whether that came about.

    The link (a, b) and a random other one, (c, d), become (a, d) and (c, b), if both of these are new.
    """
    for _ in range(_ROUNDS):
        keys = base.pair_keys(agents, a, b)
        ranked = np.sort(keys)
        bad = a == b
        # Of links that stand several times, the first may stay. There are few of them, and to sort places takes longer.
        several = np.flatnonzero(np.isin(keys, ranked[1:][ranked[1:] == ranked[:-1]]))
        bad[several[~base.is_first(keys[several])]] = True
        faulty = np.flatnonzero(bad)
        if not faulty.size:
            return True
        other = random.integers(a.size, size=faulty.size)
        new = np.stack(
            [base.pair_keys(agents, a[faulty], b[other]), base.pair_keys(agents, a[other], b[faulty])]
        )
        found = ranked[np.minimum(np.searchsorted(ranked, new), ranked.size - 1)] == new
        sound = ~bad[other] & (a[faulty] != b[other]) & (a[other] != b[faulty]) & ~found.any(axis=0)
        sound &= base.is_first(other)  # switches of one round must not touch each other
        sound &= _once(new.reshape(-1)).reshape(new.shape).all(axis=0)
        faulty, other = faulty[sound], other[sound]
        b[faulty], b[other] = b[other], b[faulty]
    return False


def _mix(agents: int, a: np.ndarray, b: np.ndarray, random: np.random.Generator) -> base.EdgeEnds:
    """Take links two by two at random; of those that may, about half switch ends.

    Two links may, if their old and new versions are four different ones and none of them is that of other links.
    That can be said equally of the graph before and after, so that going back is as likely as going there.
    """
    order = random.permutation(a.size)
    turned = random.random(a.size) < 0.5
    a, b = np.where(turned, b, a)[order], np.where(turned, a, b)[order]
    half = a.size // 2
    one, two = slice(0, half), slice(half, 2 * half)
    old = base.pair_keys(agents, a, b)
    new = np.concatenate([base.pair_keys(agents, a[one], b[two]), base.pair_keys(agents, a[two], b[one])])
    once = _once(np.concatenate([old, new]))
    alone = np.concatenate([once[: 2 * half], once[old.size :]]).reshape(4, half)
    switch = alone.all(axis=0) & (a[one] != b[two]) & (a[two] != b[one]) & (random.random(half) < 0.5)
    b[one], b[two] = np.where(switch, b[two], b[one]), np.where(switch, b[one], b[two])
    return a, b


def _once(values: np.ndarray) -> np.ndarray:
    """Whether each value occurs once, shape (n,)."""
    order = np.argsort(values)
    ranked = values[order]
    same = ranked[1:] == ranked[:-1]
    single = np.ones(values.size, bool)
    single[1:] &= ~same
    single[:-1] &= ~same
    once = np.empty_like(single)
    once[order] = single
    return once
