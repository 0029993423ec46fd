"""Coordinate descent over networks that delay, lose and drop out still ends at the exact minimiser of Q_L.

Each update is a contraction towards the minimiser in a weighted maximum norm; by asynchronous contraction (Bertsekas,
Tsitsiklis 1989, section 6.2) any delays and losses are allowed as long as every agent goes on waking and hears newer
models in the end. Agents by day must have messages held: neighbours whose days do not meet would never hear each other.
Nothing is random but the network, so the only tolerance is that of the number of updates.
"""

from typing import Any

import numpy as np
import pytest

from p2psim.core.distributions import Distribution
from p2psim.core.events import COMMIT
from p2psim.core.randomness import Streams
from p2psim.learning.graph.optimum import minimise_together
from p2psim.learning.graph.problem import GraphProblem, GraphRule, GraphTask, confidences
from p2psim.learning.graph.replay import GraphReplay
from p2psim.learning.losses import Logistic, Squared
from p2psim.network.availability import AllOf, Always, Bernoulli, Diurnal, Outage, Renewal
from p2psim.network.availability.renewal import LognormalSpans
from p2psim.network.channels.channel import Channel
from p2psim.network.exchanges import Broadcast
from p2psim.network.graph import Graph, TopologyInputs
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events
from p2psim.network.topologies import Ring, SmallWorld, draw_links

pytestmark = pytest.mark.verification

AGENTS, P = 12, 3
SLOW = Distribution(uniform=(1.0, 10.0))
NETWORKS: dict[str, tuple[Channel, Any]] = {
    "half of messages lost": (Channel(loss=0.5), Always()),
    "delays of 1 to 10 periods": (Channel(latency=SLOW), Always()),
    "both, and 90 % on line": (
        Channel(loss=0.5, latency=SLOW),
        Renewal(up=9.0, down=1.0, up_law=LognormalSpans(), down_law=LognormalSpans()),
    ),
    "mostly away": (Channel(loss=0.2), AllOf(parts=(Renewal(up=2.0, down=4.0), Bernoulli(drop=0.3)))),
    "by day, messages held": (
        Channel(latency=0.5),
        Diurnal(period=8.0, participation=0.4, messages="held"),
    ),
    "by region, messages held": (Channel(), Outage(up=5.0, down=5.0, regions=3, messages="held")),
    "collisions": (Channel(airtime=0.02, collision="aloha", shared=True, half_duplex=True), Always()),
}


def problem(links: Graph, loss: Squared | Logistic) -> GraphProblem:
    random = np.random.default_rng(3)
    sizes = random.integers(2, 9, AGENTS)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X = random.uniform(-1, 1, (offsets[-1], P))
    y = X @ random.standard_normal(P) + 0.3 * random.standard_normal(len(X))
    y = np.where(y > 0, 1.0, -1.0) if loss.needs_classes else y
    smoothness = loss.curvature * (X**2).sum(axis=1).max() + 2.0 / sizes
    none = np.zeros(AGENTS + 1, np.int64)
    return GraphProblem(
        loss, 1.0, X, y, offsets, 1.0 / sizes, confidences(sizes), smoothness, links.indptr, links.indices,
        links.weights, np.empty((0, P)), np.empty(0), none,
    )  # fmt: skip


@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=lambda loss: loss.kind)
@pytest.mark.parametrize("graph", ["ring", "small-world"])
@pytest.mark.parametrize("kind", NETWORKS)
def test_it_ends_at_the_exact_minimiser(kind: str, graph: str, loss: Squared | Logistic) -> None:
    shape = Ring() if graph == "ring" else SmallWorld(neighbours=4, rewire=0.3)
    links = draw_links(shape, TopologyInputs(AGENTS))
    channel, availability = NETWORKS[kind]
    one = problem(links, loss)
    least = one.objective(minimise_together(one))
    replay = GraphReplay(GraphTask(one, GraphRule(), np.ones((AGENTS, P))))
    start = replay.objective - least
    network = Network(links, Broadcast(), channel, availability)
    for events in simulate_events(network, Streams(1), time=4000.0):
        replay.feed(events, np.zeros((int(np.count_nonzero(events["kind"] == COMMIT)), P)))
    assert one.objective(replay.theta) - least <= 1e-9 * start
