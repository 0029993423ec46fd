"""Small problems, networks and replays of algorithms that train one model."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import p2psim
from p2psim.core.events import COMMIT, SEND
from p2psim.core.randomness import Streams
from p2psim.learning.batches import sampling
from p2psim.learning.losses import Logistic, Squared
from p2psim.learning.models import MLP, Linear, Softmax
from p2psim.learning.sgd.execute import PlainExecutor
from p2psim.learning.sgd.problem import SharedProblem, TrainingTask
from p2psim.learning.sgd.replay import ModelsReplay
from p2psim.network.simulation import simulate_events
from p2psim.simulation.algorithms.training import receivers_of

MODELS = {
    "squared": (Linear().with_loss(Squared()), 0),
    "logistic": (Linear().with_loss(Logistic()), 2),
    "softmax": (Softmax(), 3),
    "mlp": (MLP(layers=[4], activation="tanh"), 3),
}


def problem(model: str = "logistic", agents: int = 6, l2: float = 0.01, weights=None, equal=False, seed=0):
    """Records of a few agents, drawn at random."""
    random = np.random.default_rng(seed)
    records = np.full(agents, 6) if equal else random.integers(3, 9, agents)
    offsets = np.concatenate([[0], np.cumsum(records)])
    X = random.normal(size=(offsets[-1], 4))
    made, classes = MODELS[model]
    y = random.integers(0, classes, len(X)).astype(float) if classes > 2 else random.normal(size=len(X))
    y = np.sign(y) if classes == 2 else y
    weights = np.ones(agents) if weights is None else weights
    if isinstance(weights, str):
        weights = records.astype(float)
    nothing = np.zeros(agents + 1, np.int64)
    return SharedProblem(made, X, y, offsets, X[:0], y[:0], nothing, classes, l2, weights / weights.sum())


def task(of: SharedProblem, batch=None, private=False, clip=np.inf, start=None, seed=0):
    """What a replay needs; the start is random."""
    random = np.random.default_rng(seed + 1)
    drawn = None if batch is None else sampling(batch, of.records, Streams(seed, 0).key("batches"))
    start = random.normal(size=of.dimension) * 0.1 if start is None else start
    return TrainingTask(of, clip, 2, None, private, drawn, start)


@dataclass
class Played:
    """A run: its events, the models after every commit, and those of the reference."""

    events: np.ndarray
    models: np.ndarray
    reference: np.ndarray
    replay: ModelsReplay
    task: TrainingTask
    network: Any


def play(
    algorithm, exchange, topology, of: TrainingTask, *, commits=60, channel=None, availability=None, limits=None,
    goes_on=False, plain=False, seed=3, pieces=1, compute=None, engine="auto",
) -> Played:  # fmt: skip
    """Make events, replay them commit by commit or in larger pieces, and by the reference."""
    network = p2psim.Network.of_graph(topology, exchange, channel, availability, compute=compute)
    updates = "wake" if exchange.needs_learner else algorithm.updates_under(exchange)
    network = replace(
        network, updates=updates, goes_on=goes_on, answerer_releases=algorithm.answerer_releases
    )
    events = simulate_events(network, seed=seed, commits=commits, limits=limits, engine=engine).read()
    makes = (events["release"] >= 0) & np.isin(events["kind"], (SEND, COMMIT)) & (events["agent"] >= 0)
    # A release counts where it first appears.
    first: dict[tuple[int, int], int] = {}
    for place in np.flatnonzero(makes).tolist():
        first.setdefault((int(events["agent"][place]), int(events["release"][place])), place)
    queries = algorithm.queries
    noise = {
        key: np.random.default_rng([7, *key]).normal(size=(queries, of.start.size)) * 0.01 for key in first
    }
    empty = np.empty((0, of.start.size))
    in_order = sorted(first.items(), key=lambda item: item[1])

    def rows(start, stop):
        chosen = [noise[key] for key, place in in_order if start <= place < stop]
        return np.concatenate([empty, *chosen]) if of.private else empty

    replay = algorithm.replay(of, network.links, exchange, receivers_of(network))
    if plain:
        replay._executor = PlainExecutor(of, len(replay._executor.pool))
    ends = np.flatnonzero(events["kind"] == COMMIT) + 1
    models, start = [replay.theta.copy()], 0
    for stop in ends[pieces - 1 :: pieces].tolist():
        replay.feed(events[start:stop], rows(start, stop))
        models.append(replay.theta.copy())
        start = stop
    by_agent = np.concatenate([empty, *(noise[key] for key in sorted(first))]) if of.private else empty
    reference = np.array(list(algorithm.reference(of, network.links, exchange, events, by_agent)))
    return Played(events, np.array(models), reference[::pieces], replay, of, network)


def agree(played: Played, tolerance: float = 1e-12) -> None:
    """The replay is what the reference says."""
    scale = np.abs(played.reference).max()
    assert played.models.shape == played.reference.shape
    assert np.abs(played.models - played.reference).max() <= tolerance * scale
