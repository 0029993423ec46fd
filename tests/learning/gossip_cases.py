"""Small personalised problems and runs that tests of gossip algorithms share."""

from typing import Literal

import numpy as np

from p2psim.core.distributions import Distribution
from p2psim.core.events import COMMIT, SEND
from p2psim.core.randomness import Streams
from p2psim.learning.graph.problem import GraphProblem, confidences
from p2psim.learning.losses import Logistic, Squared
from p2psim.network.channels.channel import Channel
from p2psim.network.exchanges import Gossip
from p2psim.network.graph import Graph, TopologyInputs, from_edges
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events
from p2psim.network.topologies import RandomRegular, Ring, draw_links
from p2psim.network.verify import verify

CHANNELS = {
    "ideal": Channel(),
    "late": Channel(latency=Distribution(exponential=1.0)),
    "lossy": Channel(latency=Distribution(uniform=(0.0, 2.0)), loss=0.3),
}


def ring(agents: int) -> Graph:
    return draw_links(Ring(), TopologyInputs(agents))


def complete(agents: int) -> Graph:
    a, b = np.triu_indices(agents, 1)
    return from_edges(agents, a, b)


def regular(agents: int, degree: int) -> Graph:
    return draw_links(RandomRegular(degree=degree), TopologyInputs(agents))


def weighted(agents: int, seed: int) -> Graph:
    """Ring with chords, weights between .1 and 10."""
    random = np.random.default_rng(seed)
    pairs = {tuple(sorted((i, (i + 1) % agents))) for i in range(agents)}
    pairs |= {tuple(sorted(random.choice(agents, 2, replace=False).tolist())) for _ in range(agents)}
    a, b = np.array(sorted(pairs)).T
    return from_edges(agents, a, b, 10.0 ** random.uniform(-1, 1, a.size))


def problem_on(
    links: Graph, loss: Squared | Logistic, p: int, seed: int, mu: float = 1.0, most: int = 8
) -> GraphProblem:
    """Agents with 0 to ``most`` records and targets that vary slowly."""
    random = np.random.default_rng(seed)
    n = links.agents
    sizes = random.integers(0, most + 1, n)
    sizes[0] = most
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X = random.uniform(-1, 1, (offsets[-1], p))
    target = random.standard_normal(p) + 0.3 * random.standard_normal((n, p))
    z = np.einsum("rp,rp->r", X, target[np.repeat(np.arange(n), sizes)])
    y = np.where(z > 0, 1.0, -1.0) if loss.needs_classes else z + 0.1 * random.standard_normal(z.size)
    ridge = 1.0 / np.maximum(sizes, 1)
    curvature = 0.25 if loss.needs_classes else 2.0
    smoothness = curvature * (X**2).sum(axis=1).max() + 2 * ridge
    none = np.zeros(n + 1, np.int64)
    return GraphProblem(
        loss, mu, X, y, offsets, ridge, confidences(sizes), smoothness, links.indptr, links.indices,
        links.weights, np.empty((0, p)), np.empty(0), none,
    )  # fmt: skip


def play(
    links: Graph,
    mode: Literal["push", "pull", "push-pull", "edge"],
    *,
    updates: Literal["wake", "hear"] = "hear",
    partner: Literal["uniform", "weight"] = "uniform",
    channel: Channel | None = None,
    limits: np.ndarray | None = None,
    goes_on: bool = False,
    replica: int = 0,
    commits: int | None = None,
    time: float | None = None,
    check: bool = True,
) -> np.ndarray:
    """Events of a run, checked unless there are many runs alike."""
    exchange = Gossip(mode=mode, partner=partner)
    network = Network(links, exchange, channel or Channel(), goes_on=goes_on, updates=updates)
    streams = Streams(7, replica)
    events = simulate_events(network, streams, commits=commits, time=time, limits=limits).read()
    if check:
        verify([events], links, limits, goes_on, by_edge=network.exchange.by_edge)
    return events


def averaging_events(
    links: Graph, mode: Literal["push", "pull", "push-pull"], commits: int, **how: object
) -> np.ndarray:
    """Events of averaging: no agent may make a release, and all go on without."""
    none = np.zeros(links.agents, np.int64)
    return play(links, mode, limits=none, goes_on=True, commits=commits, **how)  # type: ignore[arg-type]


def releases(events: np.ndarray) -> np.ndarray:
    """(agent, release) of each release, in the order of the events: where it first appears."""
    made = events[np.isin(events["kind"], [SEND, COMMIT]) & (events["release"] >= 0)]
    pairs = np.stack([made["agent"], made["release"]], axis=1)
    _, first = np.unique(pairs, axis=0, return_index=True)
    return pairs[np.sort(first)]


def by_agent(pairs: np.ndarray) -> np.ndarray:
    """Order that brings releases from that of the events to (agent, release)."""
    return np.lexsort((pairs[:, 1], pairs[:, 0]))
