"""Agents of a graph that come and go: the compiled replay against the plain one, and Q_L against its definition."""

from typing import Any

import numpy as np
import pytest
from gossip_cases import problem_on, weighted

from p2psim.core.distributions import Distribution
from p2psim.core.events import COMMIT, JOIN
from p2psim.core.randomness import Streams
from p2psim.learning.graph.problem import GraphRule, GraphTask
from p2psim.learning.graph.replay import GraphReplay
from p2psim.learning.losses import Logistic, Squared
from p2psim.learning.reference import reference_replay
from p2psim.network.availability import Renewal
from p2psim.network.channels.channel import Channel
from p2psim.network.exchanges import Broadcast
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events


@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=lambda loss: loss.kind)
@pytest.mark.parametrize("rejoin", ["stale", "reset", "fetch"])
@pytest.mark.parametrize("held", ["lost", "held"])
def test_compiled_equals_plain_and_objective_is_kept(loss: Any, rejoin: Any, held: Any) -> None:
    links = weighted(7, 3)
    problem = problem_on(links, loss, 3, 5)
    network = Network(
        links,
        Broadcast(),
        Channel(latency=Distribution(exponential=0.5)),
        Renewal(up=2, down=2, rejoin=rejoin, messages=held),
    )
    events = simulate_events(network, Streams(3), time=40.0).read()
    assert np.count_nonzero(events["kind"] == JOIN) > 20
    releases = int((events["release"][events["kind"] == COMMIT] >= 0).sum())
    random = np.random.default_rng(0)
    by_agent, start = 0.1 * random.standard_normal((releases, 3)), random.standard_normal((7, 3))
    commits = events[(events["kind"] == COMMIT)]
    order = np.lexsort((commits["release"], commits["agent"]))
    in_order = np.empty_like(by_agent)
    in_order[order] = by_agent
    plain = list(reference_replay(GraphTask(problem, GraphRule(), start), events, by_agent))[-1]
    for chunk in (1, 11, events.size):
        replay, row = GraphReplay(GraphTask(problem, GraphRule(), start)), 0
        for at in range(0, events.size, chunk):
            piece = events[at : at + chunk]
            made = int(np.count_nonzero(piece["kind"] == COMMIT))
            replay.feed(piece, in_order[row : row + made])
            row += made
        assert replay.theta == pytest.approx(plain, rel=1e-12, abs=1e-12)
        assert replay.objective == pytest.approx(problem.objective(replay.theta), rel=1e-10)


def test_a_reset_agent_has_its_first_model_and_a_fetched_one_is_a_neighbours() -> None:
    links = weighted(5, 1)
    problem = problem_on(links, Squared(), 2, 2)
    start = np.arange(10.0).reshape(5, 2)
    for rejoin in ("reset", "fetch"):
        network = Network(links, Broadcast(), availability=Renewal(up=3, down=3, rejoin=rejoin))
        events = simulate_events(network, Streams(1), time=20.0).read()
        replay = GraphReplay(GraphTask(problem, GraphRule(), start), track=False)
        for i, event in enumerate(events):
            before = replay.theta.copy()
            replay.feed(events[i : i + 1], np.zeros((1, 2)))
            if event["kind"] == JOIN and event["version"] >= 0:
                expected = start[event["agent"]] if event["peer"] < 0 else before[event["peer"]]
                assert replay.theta[event["agent"]].tolist() == expected.tolist()
