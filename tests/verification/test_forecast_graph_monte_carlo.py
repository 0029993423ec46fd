"""Forecasts on graphs against 1,000 replicas of the production replays, in which agents and budgets differ."""

import networkx as nx
import numpy as np
import pytest
from graph_cases import graph_events, paths, problem_of, released, weighted

from p2psim.core.events import COMMIT
from p2psim.core.randomness import Streams
from p2psim.learning.graph.averaging import AveragingReplay
from p2psim.learning.graph.optimum import graph_expansion, minimise_together
from p2psim.learning.graph.problem import GraphRule
from p2psim.learning.losses import Squared
from p2psim.network.channels.channel import Channel
from p2psim.network.exchanges import Gossip
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events
from p2psim.network.spectrum import weight_matrix
from p2psim.theory.forecasts.descent import linear_descent
from p2psim.theory.forecasts.descent_path import path
from p2psim.theory.forecasts.gossip import averaging, averaging_path, partner_chances
from p2psim.theory.forecasts.split import accumulate

pytestmark = pytest.mark.verification

REPLICAS = 1000

GRAPHS = {"ring": nx.cycle_graph(6), "complete": nx.complete_graph(5), "star": nx.star_graph(4)}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("private", [True, False])
def test_descent_is_forecast_at_every_commit(graph, private):
    """|z| < 4 at each of 40 commits, records and budgets of agents differ: odds of a false alarm 3e-3 a case.

    Fixed seeds. Without noise only the order of the agents is random.
    """
    where, commits = weighted(GRAPHS[graph], 3), 40
    random = np.random.default_rng(1)
    sizes = random.integers(5, 40, where.agents)
    problem = problem_of(Squared(), where, list(sizes), 2, 0.6, seed=4)
    scales = 2 / (sizes * random.uniform(0.02, 0.2, where.agents)) * private
    optimum = minimise_together(problem)
    start = optimum + random.normal(size=optimum.shape)
    lowest, gaps = problem.objective(optimum), []
    for replica in range(REPLICAS):
        events = graph_events(where, commits, replica, engine="array")
        made = released(events)
        by_agent = np.sort(made["agent"])
        noise = random.laplace(size=(made.size, 2)) * scales[by_agent, None]
        models = paths(problem, GraphRule(), start, events, noise)
        gaps.append([problem.objective(theta) - lowest for theta in models])
    mean, error = np.mean(gaps, axis=0), np.std(gaps, axis=0, ddof=1) / np.sqrt(REPLICAS)
    _, curvature = graph_expansion(problem, optimum)
    model = linear_descent(weight_matrix(where), problem.pull, problem.alpha, curvature, start, optimum)
    found = path(model, commits)
    variances = np.broadcast_to(2 * scales**2, (commits, where.agents))
    expected = found.expected + accumulate(found.gain, variances).sum(axis=1)
    assert mean[0] == pytest.approx(expected[0])
    z = (mean[1:] - expected[1:]) / error[1:]
    assert np.abs(z).max() < 4
    # With power: what noise adds, or what order does, is many standard errors.
    without = found.expected if private else found.mean_gap
    assert ((expected - without)[5:] > 6 * error[5:]).any()


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize(
    ("mode", "partner", "loss"),
    [
        ("push", "uniform", 0.0),
        ("pull", "weight", 0.3),
        ("push-pull", "uniform", 0.3),
        ("push-pull", "weight", 0.0),
    ],
)
def test_averaging_is_forecast_at_every_commit(graph, mode, partner, loss):
    """|z| < 4 of spread and drift at each of 25 commits: odds of a false alarm 3e-3 a case; fixed seeds."""
    where, commits = weighted(GRAPHS[graph], 5), 25
    n = where.agents
    start = np.random.default_rng(2).normal(size=(n, 3)) + 1
    network = Network(
        where, Gossip(mode=mode, partner=partner), Channel(loss=loss), goes_on=True, updates="hear"
    )
    spreads, drifts = np.empty((2, REPLICAS, commits + 1))
    for replica in range(REPLICAS):
        events = simulate_events(
            network, Streams(replica), commits=commits, limits=np.zeros(n, np.int64)
        ).read()
        replay, first = AveragingReplay(start), 0
        for k, stop in enumerate([0, *(np.flatnonzero(events["kind"] == COMMIT) + 1)]):
            replay.feed(events[first:stop])
            first = stop
            centre = replay.theta.mean(axis=0)
            spreads[replica, k] = ((replay.theta - centre) ** 2).sum()
            drifts[replica, k] = ((centre - start.mean(axis=0)) ** 2).sum()
    chances = partner_chances(weight_matrix(where), np.full(n, 1 / n), partner == "weight")
    found = averaging_path(averaging(mode, chances, loss), start, commits)
    for values, expected in ((spreads, found.spread), (drifts, found.drift)):
        error = values.std(axis=0, ddof=1) / np.sqrt(REPLICAS)
        away = values.mean(axis=0) - expected
        assert (np.abs(away) <= 4 * error + 1e-12).all()
