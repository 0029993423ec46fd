"""Training on graphs whose links come and go: the mixing weights are those of the moment."""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from training_cases import agree, play, problem, task

import p2psim
from p2psim.core.errors import InputError
from p2psim.core.events import COMMIT
from p2psim.learning.sgd.algorithms import DecentralisedSgd, GossipLearning
from p2psim.runs.verification import verify_result

ORDERS = ("gossip-then-gradient", "gradient-then-gossip", "together")
LATE = p2psim.Channel(latency={"uniform": (0.0, 0.8)}, loss=0.1)
GRAPHS = {
    "one-peer": p2psim.OnePeerExponential(agents=8, interval=0.5),
    "matching": p2psim.RandomMatching(agents=8, interval=0.7, seed=3),
    "rewired": p2psim.Rewired(of={"kind": "ring", "agents": 8}, share=0.3, interval=0.4, seed=3),
    "waypoint": p2psim.RandomWaypoint(agents=8, radius=0.4, speed=(0.1, 0.3), interval=0.3, seed=3),
}
EXCHANGES = {
    "rounds": p2psim.Synchronous(interval=0.5),
    "rounds with a deadline": p2psim.Synchronous(interval=0.5, deadline=0.6),
    "broadcast": p2psim.Broadcast(),
    "pairs": p2psim.Gossip(mode="push-pull"),
    "push": p2psim.Gossip(mode="push"),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("graph", GRAPHS)
def test_planner_and_executor_do_what_the_reference_says(graph, exchange, order):
    algorithm = DecentralisedSgd(step=0.2, order=order, momentum=0.3, commits=1)
    of = task(problem("squared", agents=8), None, private=True, clip=0.5)
    how = {"channel": LATE, "commits": 80, "pieces": 7, "engine": "simpy"}
    agree(play(algorithm, EXCHANGES[exchange], GRAPHS[graph], of, **how))


@pytest.mark.parametrize("graph", GRAPHS)
def test_gossip_learning_walks_over_links_that_are_there(graph):
    of = task(problem("squared", agents=8))
    agree(
        play(
            GossipLearning(step=0.2, commits=1),
            EXCHANGES["push"],
            GRAPHS[graph],
            of,
            commits=80,
            engine="simpy",
        )
    )


@pytest.mark.parametrize("order", ORDERS)
def test_rounds_of_one_peer_are_those_of_its_matrices(order):
    """Rounds at 1, 2, … and links that change with them: X ← W_k X and a step, with numbers from a few plain lines."""
    of = task(problem("squared", agents=8, l2=0.0))
    graph = p2psim.OnePeerExponential(agents=8, interval=1.0)
    algorithm = DecentralisedSgd(step=0.1, order=order, commits=1)
    played = play(
        algorithm, p2psim.Synchronous(interval=1.0), graph, of, commits=56, pieces=8, engine="simpy"
    )
    X, y, offsets = of.problem.X, of.problem.y, of.problem.offsets
    records = [(X[a:b], y[a:b]) for a, b in itertools.pairwise(offsets)]

    def slopes(models):
        return np.array(
            [2 * x.T @ (x @ model - z) / len(z) for (x, z), model in zip(records, models, strict=True)]
        )

    models = np.repeat(of.start[None], 8, axis=0)
    for number in range(1, 8):
        partner = np.arange(8) ^ (1 << number % 3)
        mixed = (models + models[partner]) / 2
        if order == "gossip-then-gradient":
            models = mixed - 0.1 * slopes(mixed)
        elif order == "together":
            models = mixed - 0.1 * slopes(models)
        else:
            half = models - 0.1 * slopes(models)
            models = (half + half[partner]) / 2
        np.testing.assert_allclose(played.models[number], models, rtol=1e-11, atol=1e-13)


def test_pairs_meet_over_links_that_are_there():
    of = task(problem("squared", agents=8))
    played = play(
        DecentralisedSgd(step=0.1, commits=1),
        EXCHANGES["pairs"],
        GRAPHS["one-peer"],
        of,
        commits=60,
        engine="simpy",
    )
    near = p2psim.ActiveLinks(played.network.links)
    commits = played.events[played.events["kind"] == COMMIT]
    for event in commits:
        assert near.advance(float(event["time"])).linked(int(event["agent"]), int(event["peer"]))


TREE: dict[str, Any] = {
    "name": "changing",
    "seed": 3,
    "network": {
        "topology": {"kind": "random-matching", "agents": 6, "interval": 1.0},
        "exchange": "synchronous",
    },
    "data": {"source": {"kind": "linear-regression", "dimension": 3, "points": 20}},
    "learning": {
        "algorithm": {"kind": "decentralised-sgd", "step": 0.05, "time": 20.0},
        "loss": "squared",
        "regularizer": {"l2": 0.1},
    },
    "privacy": {"mechanism": "none"},
    "record": {
        "metrics": ["objective_gap", "consensus_distance", "mean_objective"],
        "every": 6,
        "events": True,
        "models": True,
    },
}


@pytest.mark.parametrize(
    ("topology", "exchange"),
    [
        ("random-matching", "synchronous"),
        ("one-peer-exponential", "broadcast"),
        ("changing-file", "synchronous"),
        ("changing-file", {"kind": "gossip", "mode": "push-pull"}),
    ],
)
def test_studies_are_verified(topology, exchange, tmp_path):
    kept = {"kind": topology, "interval": 1.0, "agents": 8 if topology == "one-peer-exponential" else 6}
    if topology == "changing-file":
        links = pd.DataFrame({"source": [0, 1, 2, 3, 4, 0], "target": [1, 2, 3, 4, 5, 3]})
        links.assign(begin=[0, 0, 1.5, 0, 2, 4], end=[9, 3, 7, 99, 99, 99]).to_csv(
            tmp_path / "links.csv", index=False
        )
        kept = {"kind": topology, "path": str(tmp_path / "links.csv"), "nodes": "numbers"}
    tree = TREE | {"network": {"topology": kept, "exchange": exchange, "engine": "simpy"}}
    result = p2psim.run(p2psim.Scenario.from_dict(tree), tmp_path / "run", progress=False, check_events=True)
    assert [one.verdict for one in verify_result(result)] == ["right"]


def test_what_is_of_a_graph_that_stays_is_refused():
    algorithm = TREE["learning"]["algorithm"] | {"mixing": "degree"}
    with pytest.raises(InputError, match="no weight for their own models"):
        p2psim.Scenario.from_dict(TREE | {"learning": TREE["learning"] | {"algorithm": algorithm}})
    with pytest.raises(InputError, match="lambda2 is of a graph that stays"):
        p2psim.Scenario.from_dict(TREE | {"record": {"metrics": ["lambda2"]}})
