"""Small graphs of agents for tests: problems from plain arrays, events, replays from them, and a scenario."""

from typing import Any

import networkx as nx
import numpy as np
from hypothesis import strategies as st
from own_losses import Huber

from p2psim.core.events import COMMIT
from p2psim.core.randomness import Streams
from p2psim.learning.batches import Sampling
from p2psim.learning.graph.problem import GraphProblem, GraphRule, GraphTask, confidences
from p2psim.learning.graph.replay import GraphReplay
from p2psim.learning.losses import Logistic, Loss, Squared
from p2psim.network.channels.channel import Channel
from p2psim.network.exchanges import Broadcast
from p2psim.network.exchanges.protocol import Exchange
from p2psim.network.graph import Graph, links
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events
from p2psim.scenario.model import Scenario

LOSSES: dict[str, type[Loss]] = {"squared": Squared, "logistic": Logistic, "huber": Huber}

#: ∂ℓ/∂z of each, by its formula.
SLOPES: dict[str, Any] = {
    "squared": lambda z, y: 2 * (z - y),
    "logistic": lambda z, y: -y / (1 + np.exp(y * z)),
    "huber": lambda z, y: 2 * np.clip(z - y, -1, 1),
}


def weighted(graph: "nx.Graph[int]", seed: int = 0) -> Graph:
    """Links of a graph with weights between .1 and 2."""
    random = np.random.default_rng(seed)
    for a, b in graph.edges:
        graph.edges[a, b]["weight"] = float(random.uniform(0.1, 2.0))
    return links(graph)


def random_links(agents: int, seed: int, extra: int = 0) -> Graph:
    """A random tree with some links more, weighted: connected."""
    random = np.random.default_rng(seed)
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(agents))
    graph.add_edges_from((i, int(random.integers(i))) for i in range(1, agents))
    for a, b in random.integers(agents, size=(extra, 2)):
        if a != b:
            graph.add_edge(int(a), int(b))
    return weighted(graph, seed)


def problem_of(
    loss: Loss,
    where: Graph,
    sizes: list[int],
    features: int,
    mu: float,
    seed: int = 0,
    tests: int = 0,
) -> GraphProblem:
    """Normal features; labels ±1 for the logistic loss, a noisy linear function of the agent's own otherwise."""
    random = np.random.default_rng(seed)
    records = np.array(sizes)
    truth = random.standard_normal(features) + 0.5 * random.standard_normal((records.size, features))

    def draw(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        X = random.standard_normal((counts.sum(), features))
        y = np.einsum("rp,rp->r", X, np.repeat(truth, counts, axis=0)) + 0.3 * random.standard_normal(len(X))
        y = np.where(y >= 0, 1.0, -1.0) if loss.needs_classes else y
        return np.ascontiguousarray(np.column_stack([X, np.ones(len(X))]) if loss.intercept else X), y

    X, y = draw(records)
    test_X, test_y = draw(np.full(records.size, tests))
    offsets = np.concatenate([[0], np.cumsum(records)]).astype(np.int64)
    ridge = 1.0 / np.maximum(records, 1)
    peaks = np.array([np.linalg.norm(x, 2) ** 2 / max(len(x), 1) for x in np.split(X, offsets[1:-1])])
    return GraphProblem(
        loss=loss, mu=mu, X=X, y=y, offsets=offsets, ridge=ridge, confidence=confidences(records),
        smoothness=loss.curvature * peaks + 2 * ridge,
        indptr=where.indptr, indices=where.indices, weights=where.weights,
        test_X=test_X, test_y=test_y, test_offsets=np.arange(records.size + 1, dtype=np.int64) * tests,
    )  # fmt: skip


def graph_events(
    where: Graph,
    commits: int,
    seed: int = 0,
    exchange: Exchange | None = None,
    channel: Channel | None = None,
    limits: np.ndarray | None = None,
    goes_on: bool = False,
    engine: str = "auto",
) -> np.ndarray:
    """Events of one run of agents of rate one."""
    network = Network(where, exchange or Broadcast(), channel or Channel(), goes_on=goes_on)
    return simulate_events(network, Streams(seed), commits=commits, limits=limits, engine=engine).read()


def commits_of(events: np.ndarray) -> np.ndarray:
    return events[events["kind"] == COMMIT]


def released(events: np.ndarray) -> np.ndarray:
    """Commits that release something."""
    commits = commits_of(events)
    return commits[commits["release"] >= 0]


def in_order_of_events(events: np.ndarray, noise: np.ndarray, agents: int) -> np.ndarray:
    """Noise ordered by (agent, release), brought into the order of the events."""
    made = released(events)
    counts = np.bincount(made["agent"], minlength=agents)
    return noise[(np.cumsum(counts) - counts)[made["agent"]] + made["release"]]


def laplace_noise(events: np.ndarray, dimension: int, scale: float, seed: int = 0) -> np.ndarray:
    """Noise of every release, ordered by (agent, release)."""
    return scale * np.random.default_rng(seed).laplace(size=(released(events).size, dimension))


def replayed(
    problem: GraphProblem,
    rule: GraphRule,
    start: np.ndarray,
    events: np.ndarray,
    noise: np.ndarray,
    chunk: int | None = None,
    anchor: np.ndarray | None = None,
    seen: Any = None,
    sampling: Sampling | None = None,
) -> GraphReplay:
    """Feed the kernel with pieces of the given size; ``seen`` is called after each."""
    replay = GraphReplay(GraphTask(problem, rule, start, anchor, sampling=sampling))
    ordered, row = in_order_of_events(events, noise, problem.agents), 0
    for first in range(0, events.size, chunk or events.size):
        piece = events[first : first + (chunk or events.size)]
        releases = released(piece).size
        replay.feed(piece, ordered[row : row + releases])
        row += releases
        if seen is not None:
            seen(replay, first + piece.size)
    return replay


def paths(
    problem: GraphProblem,
    rule: GraphRule,
    start: np.ndarray,
    events: np.ndarray,
    noise: np.ndarray,
    **more: Any,
) -> np.ndarray:
    """All models after every commit, by the kernel: shape (commits + 1, n, p)."""
    replay = GraphReplay(GraphTask(problem, rule, start, **more))
    models, row, first = [replay.theta.copy()], 0, 0
    ordered = in_order_of_events(events, noise, problem.agents)
    for stop in np.flatnonzero(events["kind"] == COMMIT) + 1:
        releases = released(events[first:stop]).size
        replay.feed(events[first:stop], ordered[row : row + releases])
        row, first = row + releases, stop
        models.append(replay.theta.copy())
    return np.array(models)


record_counts = st.lists(st.sampled_from([1, 2, 3, 7, 8, 9, 31, 40]), min_size=2, max_size=7)


def graph_tree() -> dict[str, Any]:
    """A private scenario of nine agents on a ring, quick to simulate, as a tree to change."""
    return {
        "name": "graph",
        "seed": 11,
        "network": {"topology": {"kind": "ring", "agents": 9}, "exchange": "broadcast"},
        "data": {
            "source": {
                "kind": "linear-classification",
                "dimension": 3,
                "points": {"uniform": [5, 30]},
                "test_points": 10,
            },
            "scale": {"x": {"at": "each-record"}},
            "groups": {"cut": [15], "names": ["small", "large"]},
        },
        "learning": {
            "algorithm": {"kind": "coordinate-descent", "mu": 0.5, "updates_per_agent": 6},
            "loss": "logistic",
            "regularizer": {"l2": "inverse-size"},
        },
        "privacy": {
            "mechanism": "laplace",
            "epsilon": 20.0,
            "sensitivity": "bounds",
            "allocation": {"kind": "cap", "releases": 4},
            "when_spent": "coast",
        },
        "record": {
            "metrics": ["objective", "objective_gap", "test_accuracy", "consensus_distance", "vectors_sent"],
            "every": 7,
            "events": True,
            "models": True,
        },
    }  # fmt: skip


def graph_scenario(changes: dict[str, Any] | None = None, tree: dict[str, Any] | None = None) -> Scenario:
    """The scenario with some dotted keys set; a value of None removes a key."""
    tree = tree if tree is not None else graph_tree()
    for key, value in (changes or {}).items():
        *parents, last = key.split(".")
        node = tree
        for name in parents:
            node = node.setdefault(name, {})
        if value is None:
            node.pop(last, None)
        else:
            node[last] = value
    return Scenario.from_dict(tree)
