"""The ring on which allocations of noise are compared: 5 agents, unit weights, p = 1, L_i = ½(θ − a_i)², m_i = 50."""

import networkx as nx
import numpy as np

from p2psim.core.events import WAKE
from p2psim.core.randomness import Streams
from p2psim.learning.graph.problem import GraphProblem, GraphRule, GraphTask
from p2psim.learning.graph.replay import GraphReplay
from p2psim.learning.losses import Squared
from p2psim.network.exchanges import Broadcast
from p2psim.network.graph import links
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events
from p2psim.privacy.mechanisms import Laplace
from p2psim.privacy.plan import Limit
from p2psim.privacy.planning import plan
from p2psim.privacy.releases import ReleaseCounter
from p2psim.theory.bounds.graph import contraction_rate

AGENTS, RECORDS = 5, 50
CENTRES = np.array([-1.0, 0.5, 2.0, -0.25, 1.0])
RING = links(nx.cycle_graph(AGENTS))


def problem(mu):
    """Squared loss (θx − y)² with x = 1/√2 and y = a/√2 is ½(θ − a)², of curvature 1."""
    return GraphProblem(
        loss=Squared(),
        mu=mu,
        X=np.full((AGENTS * RECORDS, 1), np.sqrt(0.5)),
        y=np.repeat(CENTRES, RECORDS) * np.sqrt(0.5),
        offsets=np.arange(AGENTS + 1) * RECORDS,
        ridge=np.zeros(AGENTS),
        confidence=np.ones(AGENTS),
        smoothness=np.ones(AGENTS),
        indptr=RING.indptr,
        indices=RING.indices,
        weights=RING.weights,
        test_X=np.empty((0, 1)),
        test_y=np.empty(0),
        test_offsets=np.zeros(AGENTS + 1, np.int64),
    )


def hessian(mu):
    """Of Q_L, from its definition: D − W + μ·D."""
    W = np.roll(np.eye(AGENTS), 1, axis=0) + np.roll(np.eye(AGENTS), -1, axis=0)
    return (2 + 2 * mu) * np.eye(AGENTS) - W


def optimum(mu):
    """Θ*, where the gradient (D − W)Θ + μD(Θ − a) is zero, shape (5,)."""
    return np.linalg.solve(hessian(mu), 2 * mu * CENTRES)


def plan_of(allocation, mu, wakes):
    """Budget 1 each, a bound of 1 on gradients."""
    rate = contraction_rate(2 * mu, np.full(AGENTS, 2 * (1 + mu)))
    return plan(
        Laplace(),
        allocation,
        Limit(np.ones(AGENTS)),
        1.0,
        np.full(AGENTS, RECORDS),
        wakes,
        np.full(AGENTS, 1 / AGENTS),
        contraction=rate,
    )


def events_of(plans, wakes, replica):
    """Events of exactly so many wakes, those of agents who are silent by then included."""
    streams = Streams(0, replica)
    # Twice the time that they take on average: fewer wakes have a chance below 1e-20.
    events = simulate_events(
        Network(RING, Broadcast()), streams, time=2.0 * wakes / AGENTS, limits=plans.limits, engine="array"
    ).read()
    at = np.flatnonzero(events["kind"] == WAKE)
    return events[: at[wakes]], streams


def play(allocation, mu, wakes, replica):
    """One run from Θ* + 1 through the package: the last models (5,), events, ε and noise of each release, the plan."""
    plans = plan_of(allocation, mu, wakes)
    events, streams = events_of(plans, wakes, replica)
    releases = ReleaseCounter.empty(AGENTS).read(events)
    totals = plans.totals([releases])
    unit = plans.mechanism.draw(streams.key("noise"), releases.agents, releases.numbers, 1)
    noise = unit * plans.scales(releases, totals)[:, None]
    replay = GraphReplay(GraphTask(problem(mu), GraphRule(), optimum(mu)[:, None] + 1), track=False)
    replay.feed(events, noise)
    return replay.theta[:, 0], events, releases, plans.claimed(releases, totals), unit[:, 0]
