"""What a topology must do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from p2psim.errors import InputError
from p2psim.network.links import Given, Links
from p2psim.network.topologies.base import Topology

#: Agents that a topology is asked for if it does not say how many there are.
AGENTS = 12


def check_topology(part: Topology) -> Iterator[str]:
    """Yield what is wrong with the graphs that a topology makes."""
    number = part.size_and_names()[0] or AGENTS
    random = np.random.default_rng(0)
    given = Given(number, random.standard_normal((number, 3)), random.standard_normal((number, 3)))
    links = part.links(None, np.random.default_rng(1), given)
    yield from _faults(links, number)
    if not _same(links, part.links(None, np.random.default_rng(1), given)):
        yield "the same generator gives another graph: take random numbers from the argument `random` alone"
    others = [part.links(None, np.random.default_rng(seed), given) for seed in range(2, 8)]
    differs = not all(_same(links, other) for other in others)
    if differs and not part.is_random:
        yield "the graph depends on the generator: set `is_random: ClassVar[bool] = True`"
    if part.is_random and not differs:
        yield "it says that it is random, and seven generators gave one graph"
    try:
        part.links(number + 1, np.random.default_rng(1), given)
    except InputError:
        pass
    else:
        yield "a graph of another size than the data has: call p2psim.network.topologies.parts.settle"


def _faults(links: Links, number: int) -> Iterator[str]:
    if links.agents != number:
        yield f"the graph has {links.agents} agents, and {number} were asked for"
        return
    row = np.repeat(np.arange(number), np.diff(links.indptr))
    pairs = set(zip(row.tolist(), links.indices.tolist(), strict=True))
    if (
        links.indptr[0] != 0
        or links.indptr[-1] != links.indices.size
        or links.weights.size != links.indices.size
    ):
        yield "indptr, indices and weights do not belong together"
        return
    if any(a == b for a, b in pairs):
        yield "an agent is linked with itself"
    if len(pairs) != row.size:
        yield "two agents are linked twice"
    if any((b, a) not in pairs for a, b in pairs):
        yield "a link goes one way only"
    if any(np.any(np.diff(links.of(agent)) <= 0) for agent in range(number)):
        yield "the neighbours of an agent are not in rising order"
    weights = dict(
        zip(zip(row.tolist(), links.indices.tolist(), strict=True), links.weights.tolist(), strict=True)
    )
    if not all(np.isfinite(weight) and weight > 0 for weight in weights.values()):
        yield "a weight is not a positive number"
    if any(weights.get((b, a), weight) != weight for (a, b), weight in weights.items()):
        yield "a link has another weight in the other direction"


def _same(a: Links, b: Links) -> bool:
    return (
        np.array_equal(a.indptr, b.indptr)
        and np.array_equal(a.indices, b.indices)
        and np.array_equal(a.weights, b.weights)
    )
