"""Plain NumPy replays of the algorithms on graphs, and the batches and releases that all plain replays have in common.

Coordinate descent, model propagation, gossip ADMM with all its variables, gossip averaging and push-sum are written to
be read beside the papers, and to test the compiled replays against. `reference_gossip` does the same for an algorithm
of your own. Batches come from NumPy's own Philox, against which the compiled draws are tested.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from p2psim.core.events import BEGIN, COMMIT, DELIVER, JOIN, SEND
from p2psim.learning.batches import POISSON, SHUFFLED, GradientRule, Sampling
from p2psim.learning.graph.admm import AdmmRule
from p2psim.learning.graph.problem import GraphProblem, GraphTask
from p2psim.learning.star.problem import StarProblem

#: What an agent sends: its model; in push-sum its sum and weight; in ADMM θ_i, θ_ij and their multipliers λ.
Message = tuple[np.ndarray, ...]


def drawn(sampling: Sampling, agent: int, release: int, records: int) -> list[int]:
    """Places of the records that take part in an agent's numbered release."""
    size = int(sampling.sizes[agent])
    # Batches of an epoch are parts of one shuffle, whose numbers have the address of the epoch.
    batches = records // size if sampling.code == SHUFFLED and size else 1
    counter = np.array([0, release // batches, agent, 0], dtype=np.uint64)
    random = np.random.Generator(np.random.Philox(counter=counter, key=sampling.key)).random
    if sampling.code == POISSON:
        return _poisson(random, records, float(sampling.rates[agent]))
    if sampling.code == SHUFFLED:
        return _shuffled(random, records, size, release % batches)
    return _fixed(random, records, size)


def _poisson(random, records: int, rate: float) -> list[int]:  # type: ignore[no-untyped-def]
    if rate == 1:
        return list(range(records))
    rows: list[int] = []
    at = -1
    while True:
        skipped = math.log(1 - random()) / math.log1p(-rate)
        if at + 1 + skipped >= records:
            return rows
        at += 1 + math.floor(skipped)
        rows.append(at)


def _fixed(random, records: int, size: int) -> list[int]:  # type: ignore[no-untyped-def]
    rows: list[int] = []
    for last in range(records - size, records):
        place = math.floor(random() * (last + 1))
        rows.append(last if place in rows else place)
    return rows


def _shuffled(random, records: int, size: int, batch: int) -> list[int]:  # type: ignore[no-untyped-def]
    order = list(range(records))
    for k in range((batch + 1) * size):
        place = k + math.floor(random() * (records - k))
        order[k], order[place] = order[place], order[k]
    return order[batch * size : (batch + 1) * size]


def mean_gradient(
    problem: StarProblem | GraphProblem,
    agent: int,
    theta: np.ndarray,
    rule: GradientRule,
    release: int,
    sampling: Sampling | None,
) -> np.ndarray:
    """Mean of the gradients of an agent's records, or its estimate from a release's batch: shape (p,).

    Each record's gradient is clipped to a norm of order 1 or 2. Of a batch the sum is divided by a public number, not
    by how many were drawn. Without records it is zero.
    """
    n = int(problem.records[agent])
    places = range(n) if sampling is None else drawn(sampling, agent, release, n)
    divisor = max(n, 1) if sampling is None else sampling.divisors[agent]
    rows = problem.offsets[agent] + np.array(places, np.int64)
    X, y = problem.X[rows], problem.y[rows]
    gradients = problem.loss.slopes(X @ theta, y)[:, None] * X
    norms = np.linalg.norm(gradients, ord=rule.order, axis=1)
    clipped = gradients * np.minimum(1.0, rule.clip / np.maximum(norms, 1e-300))[:, None]
    return np.asarray(clipped.sum(axis=0) / divisor)


def released(task: GraphTask, agent: int, theta: np.ndarray, release: int, noise: np.ndarray) -> np.ndarray:
    """An agent's gradient at a model as its release gives it, with its regulariser's; ``noise`` is the release's."""
    problem, rule = task.problem, task.rule
    mean = mean_gradient(problem, agent, theta, rule, release, task.sampling)
    return on_grid(mean + noise, rule.grid) + 2 * problem.ridge[agent] * theta


def on_grid(values: np.ndarray, grid: float | None) -> np.ndarray:
    """Nearest multiples of the grid's step, halves upwards; the values themselves where there is no grid."""
    return values if grid is None else grid * np.floor(values / grid + 0.5)


def first_rows(events: Iterable[np.void], kind: int, agents: int) -> np.ndarray:
    """Where each agent's releases begin among all of them in the order (agent, release): shape (agents + 1,).

    Parameters
    ----------
    events : iterable of EVENT records
    kind : int
        Kind of the events that make a release.
    agents : int
    """
    counts = np.zeros(agents + 1, np.int64)
    for event in events:
        if event["kind"] == kind and event["release"] >= 0:
            counts[event["agent"] + 1] += 1
    return np.cumsum(counts)


def picked(
    walk: Iterator[np.ndarray] | Iterator[list[np.ndarray]],
    events: Sequence[np.void] | np.ndarray,
    places: Sequence[int] | None,
) -> Iterator[np.ndarray]:
    """Take, of models at the start and after every event, those after so many events each.

    Parameters
    ----------
    walk : iterator
        All models at the start and after every event, an array or a list of one each; they may change later.
    events : sequence of EVENT records
    places : sequence of int or None
        Numbers of events, ascending; None: 0, and that of each commit.

    Yields
    ------
    ndarray, shape (n, p)
    """
    if places is None:
        places = [0, *(number for number, event in enumerate(events, 1) if event["kind"] == COMMIT)]
    left = deque(places)
    for number, models in enumerate(walk):
        while left and left[0] == number:
            left.popleft()
            yield np.array(models)


def reference_replay(
    task: GraphTask, events: Iterable[np.void], noise: np.ndarray, places: Sequence[int] | None = None
) -> Iterator[np.ndarray]:
    """All models at the start and after every commit.

    Parameters
    ----------
    task : GraphTask
    events : iterable of EVENT records
    noise : ndarray, shape (releases, p)
        Ordered by (agent, release).
    places : sequence of int, optional
        Numbers of events, ascending: models after so many each, and not after commits, since some change in between.

    Yields
    ------
    ndarray, shape (n, p)
    """
    events = list(events)
    return picked(_descent(task, events, noise), events, places)


def _descent(task: GraphTask, events: Sequence[np.void], noise: np.ndarray) -> Iterator[np.ndarray]:
    problem, rule = task.problem, task.rule
    theta, anchors = np.array(task.start, dtype=float), task.anchors()
    received = {
        (i, int(j)): (0, theta[j].copy())
        for i in range(problem.agents)
        for j in problem.indices[problem.indptr[i] : problem.indptr[i + 1]]
    }
    sent: dict[int, np.ndarray] = {}
    first = first_rows(events, COMMIT, problem.agents)
    yield theta
    for event in events:
        i, peer, version, cause = (int(event[name]) for name in ("agent", "peer", "version", "cause"))
        if event["kind"] == SEND and version >= 0:
            sent[int(event["seq"])] = theta[i].copy()
        elif event["kind"] == DELIVER and version > received[i, peer][0]:
            received[i, peer] = version, sent[cause]
        elif event["kind"] == JOIN and version >= 0:
            theta[i] = theta[peer] if peer >= 0 else task.start[i]
        elif event["kind"] == COMMIT:
            near = problem.indices[problem.indptr[i] : problem.indptr[i + 1]]
            W = problem.weights[problem.indptr[i] : problem.indptr[i + 1]]
            mix = sum(w * received[i, int(j)][1] for w, j in zip(W, near, strict=True)) / W.sum()
            mu_c = problem.mu * problem.confidence[i]
            a = 1 / (1 + mu_c * problem.smoothness[i])
            release = int(event["release"])
            if release >= 0:
                g = released(task, i, theta[i], release, noise[first[i] + release])
                theta[i] = (1 - a) * theta[i] + a * (mix - mu_c * g)
                anchors[i] = theta[i]
            elif rule.anchored:
                theta[i] = (mix + mu_c * anchors[i]) / (1 + mu_c)
            else:
                theta[i] = (1 - a) * theta[i] + a * mix
        yield theta


def reference_replay_admm(
    task: GraphTask, events: Iterable[np.void], noise: np.ndarray, places: Sequence[int] | None = None
) -> Iterator[np.ndarray]:
    """All own models of a task with an `AdmmRule`; the rest is that of `reference_replay`."""
    events = list(events)
    return picked(_admm(task, events, noise), events, places)


def _admm(task: GraphTask, events: Sequence[np.void], noise: np.ndarray) -> Iterator[np.ndarray]:
    problem, rule = task.problem, task.rule
    assert isinstance(rule, AdmmRule)
    rho = rule.rho
    theta, anchors = np.array(task.start, dtype=float), task.anchors()
    near = [
        problem.indices[problem.indptr[i] : problem.indptr[i + 1]].tolist() for i in range(problem.agents)
    ]
    W = {
        (i, j): float(problem.weights[problem.indptr[i] + k])
        for i in range(problem.agents)
        for k, j in enumerate(near[i])
    }
    # By the end (i, j) of i: secondary variables and multipliers of the own model (0) and of the copy of j's (1).
    z = {(i, j): [theta[i].copy(), theta[j].copy()] for i, j in W}
    multiplier = {end: [np.zeros(problem.dimension), np.zeros(problem.dimension)] for end in W}
    set_by = dict.fromkeys(W, -1)
    first = first_rows(events, SEND, problem.agents)

    def steps(i: int, release: int) -> None:
        """Minimise agent i's part of the augmented Lagrangian, its copies eliminated."""
        stiff, target = 0.0, np.zeros(problem.dimension)
        for j in near[i]:
            w = W[i, j] / 2
            h = w * rho / (w + rho)
            own, copy = (z[i, j][k] - multiplier[i, j][k] / rho for k in (0, 1))
            stiff, target = stiff + rho + h, target + rho * own + h * copy
        pull = problem.mu * problem.degrees[i] * problem.confidence[i]
        if release < 0:
            c = pull if rule.anchored else 0.0
            theta[i] = (target + c * anchors[i]) / (stiff + c)
            return
        for _ in range(rule.inner):
            g = released(task, i, theta[i], release, noise[first[i] + release])
            g = pull * g + stiff * theta[i] - target
            theta[i] = theta[i] - g / (stiff + pull * problem.smoothness[i])
        anchors[i] = theta[i]

    def meet(i: int, j: int, exchange: int, mine: Message, other: Message) -> None:
        """Set the variables of i's end from what both ends sent."""
        if exchange < set_by[i, j]:
            return
        set_by[i, j] = exchange
        for k in (0, 1):  # my model meets the other's copy of it, and my copy the other's model
            (model, lam), (their, their_lam) = (mine[k], mine[2 + k]), (other[1 - k], other[3 - k])
            z[i, j][k] = ((lam + their_lam) / rho + model + their) / 2
            multiplier[i, j][k] = lam + rho * (model - z[i, j][k])

    sent: dict[int, tuple[int, Message, Message | None]] = {}  # exchange, message, message that it answers
    heard: dict[int, tuple[int, Message, Message | None]] = {}
    yield theta
    for event in events:
        i, j, seq, cause = (int(event[name]) for name in ("agent", "peer", "seq", "cause"))
        if event["kind"] == SEND:
            steps(i, int(event["release"]))
            w = W[i, j] / 2
            copy = (w * theta[i] + rho * z[i, j][1] - multiplier[i, j][1]) / (w + rho)
            message = (theta[i].copy(), copy, *(lam.copy() for lam in multiplier[i, j]))
            exchange, other, _ = heard.get(cause, (seq, None, None))
            sent[seq] = exchange, message, other
            if other is not None:
                meet(i, j, exchange, message, other)
        elif event["kind"] == DELIVER:
            heard[seq] = sent[cause]
        elif event["kind"] == COMMIT:
            exchange, answer, mine = heard[cause]
            assert mine is not None
            meet(i, j, exchange, mine, answer)
        yield theta


def _heard(
    models: np.ndarray,
    events: Iterable[np.void],
    send: Callable[[int], Message],
    hear: Callable[[int, Message, int], np.ndarray],
) -> Iterator[np.ndarray]:
    """All models, first and after every event, of agents that use what they hear.

    Parameters
    ----------
    models : ndarray, shape (n, p)
        The start; agents' new models are written to it.
    events : iterable of EVENT records
    send : callable
        What agent i sends.
    hear : callable
        The new model of agent i from what it hears, in its numbered release or, with -1, in none.
    """
    sent: dict[int, Message] = {}
    heard: dict[int, Message] = {}
    yield models
    for event in events:
        i, seq, cause, release = (int(event[name]) for name in ("agent", "seq", "cause", "release"))
        if event["kind"] == SEND and event["version"] >= 0:
            sent[seq] = send(i)
        elif event["kind"] == DELIVER and cause in sent:
            heard[seq] = sent[cause]
        elif event["kind"] == BEGIN and cause in heard:
            heard[seq] = heard[cause]
        elif event["kind"] == COMMIT:
            models[i] = hear(i, heard[cause], release)
        yield models


def reference_average(
    start: np.ndarray, events: Iterable[np.void], places: Sequence[int] | None = None
) -> Iterator[np.ndarray]:
    """All models of gossip averaging; the start has shape (n, p), and places are those of `reference_replay`."""
    x, events = np.array(start, dtype=float), list(events)
    walk = _heard(x, events, lambda i: (x[i].copy(),), lambda i, heard, _: (x[i] + heard[0]) / 2)
    return picked(walk, events, places)


def reference_push_sum(
    start: np.ndarray, events: Iterable[np.void], places: Sequence[int] | None = None
) -> Iterator[np.ndarray]:
    """All models of push-sum; the start has shape (n, p), and places are those of `reference_replay`."""
    s, w, events = np.array(start, dtype=float), np.ones(len(start)), list(events)

    def send(i: int) -> Message:
        s[i], w[i] = s[i] / 2, w[i] / 2
        return s[i].copy(), w[i].copy()

    def hear(i: int, heard: Message, release: int) -> np.ndarray:
        s[i], w[i] = s[i] + heard[0], w[i] + heard[1]
        return np.asarray(s[i] / w[i])

    return picked(_heard(s.copy(), events, send, hear), events, places)


def reference_gossip(
    algorithm: Any,
    task: GraphTask,
    events: Iterable[np.void],
    noise: np.ndarray,
    places: Sequence[int] | None = None,
) -> Iterator[np.ndarray]:
    """All models of a `GossipAlgorithm`; the other arguments are those of `reference_replay`."""
    events = list(events)
    x = np.array(task.start, dtype=float)
    first = first_rows(events, COMMIT, len(x))

    def hear(i: int, heard: Message, release: int) -> np.ndarray:
        at = np.array(algorithm.mix(x[i].copy(), heard[0].copy()))
        if release < 0:
            return at
        g = released(task, i, at, release, noise[first[i] + release])
        return np.asarray(algorithm.step(at, g, release))

    return picked(_heard(x, events, lambda i: (x[i].copy(),), hear), events, places)
