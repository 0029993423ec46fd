"""The same number of neighbours for everyone, otherwise at random."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.errors import MeaningError
from p2psim.core.options import Count
from p2psim.network.graph import Graph, TopologyInputs
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
    settle,
)

#: Rounds of repair before a pairing is given up; small graphs can get stuck, large ones take two or three.
_ROUNDS = 100

#: Rounds of mixing, and the most links in all of them.
_MIXING, _MOST_MIXED = 100, 1_000_000


class RandomRegular(Topology):
    """Every agent has the same number of neighbours, who are random; drawn again until connected.

    A pairing of n·degree half-links (Bollobás 1980); its loops and repeated links, about degree²/4 whatever n,
    are undone by switching ends with other links, chosen uniformly. That alone would favour some graphs where n
    is small, so that ends are then switched at random for up to 100 rounds, fewer in large graphs (none above a
    million links, where repair touches a vanishing part): a chain whose stationary law is uniform.
    """

    kind: Literal["random-regular"] = "random-regular"
    degree: Count = Field(description="number of neighbours of every agent")
    agents: Agents = None
    seed: Seed = None
    allow_disconnected: AllowDisconnected = False

    is_random: ClassVar[bool] = True

    def link_ends(self, agents: int) -> float:
        """Ends of links, about; see :class:`p2psim.network.topologies.base.Topology`."""
        return float(agents) * self.degree

    def links(
        self, agents: int | None, random: np.random.Generator, given: TopologyInputs, learner: bool = False
    ) -> Graph:
        """Links of one draw; see :func:`p2psim.network.topologies.draw_links`."""
        no_learner(self.kind, learner)
        number, degree = settle(self.agents, agents, given), self.degree
        if degree >= number:
            raise MeaningError(
                "network.topology.degree", f"must be less than the number of agents, {number}; got {degree}"
            )
        if number * degree % 2:
            raise MeaningError(
                "network.topology.degree",
                f"{number} agents of degree {degree} have an odd number of half-links; change one of them",
            )
        return draw_until_joined(
            number,
            lambda: regular_pairs(number, degree, random),
            self.allow_disconnected,
            "a degree of 3 or more would help; for degree 2 take a ring",
        )


def regular_pairs(agents: int, degree: int, random: np.random.Generator) -> EdgeEnds:
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
        keep = ~np.isin(a * agents + b, pair_keys(agents, *out), assume_unique=True)
        return a[keep], b[keep]
    while True:
        halves = random.permutation(np.repeat(np.arange(agents, dtype=np.int64), degree))
        a, b = halves[::2].copy(), halves[1::2].copy()
        if _repair(agents, a, b, random):
            for _ in range(min(_MIXING, _MOST_MIXED // max(a.size, 1))):
                a, b = _mix(agents, a, b, random)
            return a, b


def _repair(agents: int, a: np.ndarray, b: np.ndarray, random: np.random.Generator) -> bool:
    """Switch ends, in place, until no link is a loop or repeated; whether that came about.

    The link (a, b) and a random other one, (c, d), become (a, d) and (c, b), if both of these are new.
    """
    for _ in range(_ROUNDS):
        keys = pair_keys(agents, a, b)
        order = np.argsort(keys, kind="stable")
        ranked = keys[order]
        bad = a == b
        bad[order[1:][ranked[1:] == ranked[:-1]]] = True
        faulty = np.flatnonzero(bad)
        if not faulty.size:
            return True
        other = random.integers(a.size, size=faulty.size)
        new = np.stack([pair_keys(agents, a[faulty], b[other]), pair_keys(agents, a[other], b[faulty])])
        found = ranked[np.minimum(np.searchsorted(ranked, new), ranked.size - 1)] == new
        sound = ~bad[other] & (a[faulty] != b[other]) & (a[other] != b[faulty]) & ~found.any(axis=0)
        sound &= is_first(other)  # switches of one round must not touch each other
        for row in new:
            sound &= _alone(row, new)
        sound &= new[0] != new[1]
        faulty, other = faulty[sound], other[sound]
        b[faulty], b[other] = b[other], b[faulty]
    return False


def _mix(agents: int, a: np.ndarray, b: np.ndarray, random: np.random.Generator) -> EdgeEnds:
    """Take links two by two at random; of those that may, about half switch ends.

    Two links may, if their old and new versions are four different ones and none of them is that of other links.
    That can be said equally of the graph before and after, so that going back is as likely as going there.
    """
    order = random.permutation(a.size)
    turned = random.random(a.size) < 0.5
    a, b = np.where(turned, b, a)[order], np.where(turned, a, b)[order]
    half = a.size // 2
    one, two = slice(0, half), slice(half, 2 * half)
    old = pair_keys(agents, a, b)
    new = np.concatenate([pair_keys(agents, a[one], b[two]), pair_keys(agents, a[two], b[one])])
    alone = _alone(np.concatenate([old[: 2 * half], new]), np.concatenate([old, new])).reshape(4, half)
    switch = alone.all(axis=0) & (a[one] != b[two]) & (a[two] != b[one]) & (random.random(half) < 0.5)
    b[one], b[two] = np.where(switch, b[two], b[one]), np.where(switch, b[one], b[two])
    return a, b


def _alone(row: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Whether each value of a row occurs once."""
    values, counts = np.unique(among, return_counts=True)
    once: np.ndarray = counts[np.searchsorted(values, row)] == 1
    return once
