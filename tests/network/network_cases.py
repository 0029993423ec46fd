"""Small networks and runs that the tests of the network share."""

from typing import Any, Literal

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from p2psim.core.events import BUSY, COMMIT, DELIVER, DROP, EVENT, LEARNER, QUEUED, SEND, WAKE
from p2psim.core.randomness import Streams
from p2psim.network.availability import Always, AnyAvailability
from p2psim.network.channels.channel import Channel
from p2psim.network.exchanges import Broadcast, Gossip, Poll, Request, Round, Synchronous
from p2psim.network.exchanges.protocol import Exchange
from p2psim.network.graph import Graph, TopologyInputs
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events
from p2psim.network.topologies import Complete, Ring, Star, draw_links

__all__ = [
    "BUSY", "COMMIT", "DELIVER", "DROP", "LEARNER", "QUEUED", "SEND", "WAKE",
    "Broadcast", "Channel", "Gossip", "Graph", "Network", "Poll", "Request", "Round", "Synchronous",
    "complete", "connected_graphs", "glue", "is_edge", "of_kind", "play", "ring", "star",
]  # fmt: skip


def star(owners: int) -> Graph:
    return draw_links(Star(), TopologyInputs(owners), learner=True)


def ring(agents: int) -> Graph:
    return draw_links(Ring(), TopologyInputs(agents))


def complete(agents: int) -> Graph:
    return draw_links(Complete(), TopologyInputs(agents))


def play(
    where: Graph,
    exchange: Exchange,
    channel: Channel | None = None,
    rates: np.ndarray | None = None,
    seed: int = 0,
    goes_on: bool = False,
    updates: Literal["wake", "hear"] = "wake",
    availability: AnyAvailability | None = None,
    **how: Any,
) -> tuple[np.ndarray, str]:
    """All events of one run, and how it ended."""
    network = Network(
        where,
        exchange,
        channel or Channel(),
        availability or Always(),
        rates=rates,
        goes_on=goes_on,
        updates=updates,
    )
    stream = simulate_events(network, Streams(seed), **how)
    return stream.read(), stream.ended


def is_edge(exchange: Exchange) -> bool:
    """Whether links wake."""
    return isinstance(exchange, Gossip) and exchange.mode == "edge"


def glue(*parts: np.ndarray) -> np.ndarray:
    """Pieces of a stream as one, padding and all."""
    return np.frombuffer(b"".join(part.tobytes() for part in parts), EVENT).copy()


def of_kind(events: np.ndarray, kind: int) -> np.ndarray:
    return events[events["kind"] == kind]


@st.composite
def connected_graphs(draw: st.DrawFn, most: int = 30) -> "nx.Graph[int]":
    """A random tree (every agent hangs on an earlier one), and some links more."""
    agents = draw(st.integers(2, most))
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(agents))
    for agent in range(1, agents):
        graph.add_edge(agent, draw(st.integers(0, agent - 1)))
    pair = st.tuples(st.integers(0, agents - 1), st.integers(0, agents - 1)).filter(
        lambda ends: ends[0] != ends[1]
    )
    graph.add_edges_from(draw(st.lists(pair, max_size=2 * agents)))
    return graph
