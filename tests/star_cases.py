"""Small stars for tests: problems from plain arrays, events, and replays from them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from own_losses import Huber

from p2psim.core.events import SEND
from p2psim.core.randomness import Streams
from p2psim.learning.losses import Hinge, Logistic, Loss, Squared
from p2psim.learning.star.algorithms import StarMethod
from p2psim.learning.star.problem import Recorded, StarProblem, gradient_rule, star_problem
from p2psim.learning.star.replay import LearnerReplay, StarReplay
from p2psim.network.channels.channel import Channel
from p2psim.network.exchanges import Exchange, Request
from p2psim.network.graph import TopologyInputs
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events
from p2psim.network.topologies import Star, draw_links
from p2psim.scenario.model import Scenario
from p2psim.scenario.record import EveryTime
from p2psim.simulation.recorder import Recorder

LOSSES: dict[str, type[Loss]] = {
    "squared": Squared,
    "hinge": Hinge,
    "logistic": Logistic,
    "huber": Huber,
}


def random_problem(
    loss: Loss, sizes: list[int], features: int, seed: int, l2: float = 0.1, theta_max: float = 2.0
) -> StarProblem:
    """Normal features; labels ±1 for losses of classes, a noisy linear function otherwise."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((sum(sizes), features))
    y = X @ random.standard_normal(features) + random.standard_normal(len(X))
    if loss.needs_classes:
        y = np.where(y >= 0, 1.0, -1.0)
    return star_problem(X, y, np.concatenate([[0], np.cumsum(sizes)]), loss, l2, theta_max)


def star_events(
    owners: int,
    commits: int,
    seed: int = 0,
    exchange: Exchange | None = None,
    channel: Channel | None = None,
    limits: np.ndarray | None = None,
    engine: str = "auto",
    chunk: int = 1 << 15,
) -> np.ndarray:
    """Events of one run of a star whose owners have rate one."""
    network = Network(
        draw_links(Star(), TopologyInputs(owners), learner=True), exchange or Request(), channel or Channel()
    )
    return simulate_events(
        network, Streams(seed), commits=commits, limits=limits, engine=engine, chunk=chunk
    ).read()


def releases_of(events: np.ndarray, owners: int) -> np.ndarray:
    """Releases of each owner: its sends that carry one."""
    sent = events[(events["kind"] == SEND) & (events["release"] >= 0)]
    return np.bincount(sent["agent"], minlength=owners)


def noise_of(events: np.ndarray, noise: np.ndarray, owners: int) -> np.ndarray:
    """Noise ordered by (owner, release), brought into the order of the events."""
    made = releases_of(events, owners)
    first = np.cumsum(made) - made
    sent = events[(events["kind"] == SEND) & (events["release"] >= 0)]
    return noise[first[sent["agent"]] + sent["release"]]


def piece_rows(events: np.ndarray, piece: slice) -> slice:
    """Which of the run's releases a piece of its events makes."""
    made = (events["kind"] == SEND) & (events["release"] >= 0)
    before = int(np.count_nonzero(made[: piece.start]))
    return slice(before, before + int(np.count_nonzero(made[piece])))


@dataclass(frozen=True)
class Replayed:
    """What the compiled kernel made of a run."""

    recorded: Recorded
    violations: np.ndarray
    violation_steps: np.ndarray
    violation_sizes: np.ndarray


def replay_compiled(
    problem: StarProblem,
    method: StarMethod,
    events: np.ndarray,
    noise: np.ndarray,
    clip: float = np.inf,
    bound: float = np.inf,
    chunk: int | None = None,
    order: int = 1,
    grid: float | None = None,
    every: int | EveryTime = 10**9,
    **more: Any,
) -> Replayed:
    """Feed the kernel with chunks of the given size; noise is ordered by (owner, release)."""
    replay = StarReplay(problem, method, gradient_rule(problem, clip, bound, order, grid), **more)
    recorded = record(replay, events, noise, problem.owners, every, chunk)
    return Replayed(recorded, *replay.violations)


def record(
    replay: LearnerReplay,
    events: np.ndarray,
    noise: np.ndarray,
    owners: int,
    every: int | EveryTime = 1,
    chunk: int | None = None,
) -> Recorded:
    """Models of a replay that is fed with chunks; noise is ordered by (owner, release)."""
    recorder, found = Recorder(every), []
    for start in range(0, events.size, chunk or events.size):
        piece = slice(start, start + (chunk or events.size))
        marks, drawn = (
            recorder.read(events[piece]),
            noise_of(events, noise, owners)[piece_rows(events, piece)],
        )
        found.append((marks.steps, marks.times, replay.feed(events[piece], drawn, marks.places)))
    last = recorder.finish()
    found.append((last.steps, last.times, np.repeat(replay.model[None], last.steps.size, axis=0)))
    return Recorded(*(np.concatenate(column) for column in zip(*found, strict=True)))


def small_tree() -> dict:
    """A scenario of three unlike owners with generated data, quick to simulate, as a tree to change."""
    return {
        "name": "small",
        "seed": 11,
        "network": {"topology": {"kind": "star", "agents": 3}, "exchange": {"kind": "request"}},
        "data": {"source": {"kind": "linear-regression", "dimension": 3, "points": {0: 40, 1: 60, 2: 100}}},
        "learning": {
            "algorithm": {"kind": "async-star", "horizon": 60, "rho": {"h": 0.5}, "theta_max": 3.0},
            "loss": {"kind": "squared"},
            "regularizer": {"l2": 1e-4},
        },
        "privacy": {
            "mechanism": "laplace",
            "epsilon": 500.0,
            "sensitivity": {"kind": "clip", "bound": 1.0},
            "allocation": "horizon",
        },
        "record": {"metrics": ["relative_fitness"], "every": 7, "events": True, "models": True},
    }


def scenario(changes: dict | None = None, tree: dict | None = None) -> Scenario:
    """The small scenario with some dotted keys set; a value of None removes a key."""
    tree = tree if tree is not None else small_tree()
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
