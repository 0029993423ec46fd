"""Plain replays of the algorithms that train one model: arrays, dictionaries, and one event after the other.

They share nothing with the planners and executors but the plain draws of batches, and are what `verify` compares with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.core.events import BEGIN, COMMIT, DELIVER, LEARNER, SEND, WAKE
from p2psim.learning.reference import drawn, on_grid, picked
from p2psim.learning.sgd.problem import Answer, Heard, Memory

if TYPE_CHECKING:
    from p2psim.learning.sgd.problem import TrainingTask
    from p2psim.network.exchanges import Exchange
    from p2psim.network.graph import Graph

#: Gradient of (agent, query) at a model, as it is released.
Gradient = Callable[[int, int, np.ndarray], np.ndarray]


def gradients_of(task: TrainingTask, events: np.ndarray, noise: np.ndarray, queries: int) -> Gradient:
    """The released gradients: mean over the batch of clipped gradients, noise, and the regulariser's.

    Parameters
    ----------
    task : TrainingTask
    events : ndarray of EVENT
    noise : ndarray, shape (queries of all releases, p)
        Ordered by agent, release and query; empty where nothing is added.
    queries : int
        Gradients in a release.
    """
    problem = task.problem
    released: dict[int, int] = dict.fromkeys(range(problem.agents), 0)
    for event in events[(events["release"] >= 0) & np.isin(events["kind"], (SEND, COMMIT))]:
        if event["agent"] >= 0:
            released[int(event["agent"])] = max(released[int(event["agent"])], int(event["release"]) + 1)
    first = np.cumsum([0, *(releases * queries for releases in released.values())])

    def gradient(agent: int, query: int, theta: np.ndarray) -> np.ndarray:
        held, sampling = int(problem.records[agent]), task.sampling
        places = range(held) if sampling is None else drawn(sampling, agent, query, held)
        divisor = max(held, 1) if sampling is None else sampling.divisors[agent]
        rows = problem.offsets[agent] + np.array(places, np.int64)
        each = problem.model.gradients(theta, problem.X[rows], problem.y[rows])
        norms = np.linalg.norm(each, ord=task.order, axis=1)
        clipped = each * np.minimum(1.0, task.clip / np.maximum(norms, 1e-300))[:, None]
        mean = clipped.sum(axis=0) / divisor
        if task.private:
            mean = mean + noise[first[agent] + query]
        return np.asarray(on_grid(mean, task.grid) + 2 * problem.l2 * theta)

    return gradient


def _of_release(gradient: Gradient, agent: int, first: int) -> Callable[[np.ndarray], np.ndarray]:
    """What gives the gradients of a release, one query after another."""
    queries = count(first)
    return lambda at: gradient(agent, next(queries), at)


def reference_of_learner(
    algorithm: Any, task: TrainingTask, exchange: Exchange, events: np.ndarray, noise: np.ndarray
) -> Iterator[np.ndarray]:
    """The learner's model after every commit, shape (1, p)."""
    steps = [int(k) for k in algorithm.steps_of(task.problem.records)]
    owners = [algorithm.with_steps(k) for k in steps]
    # Where there is noise, all owners take as many steps.
    gradient = gradients_of(task, events, noise, max(steps))
    past = [task.start.copy()]  # the model before every commit
    memories: dict[int, Memory] = defaultdict(dict)
    sent: dict[int, tuple[np.ndarray, int]] = {}
    answers: dict[int, tuple[np.ndarray, int]] = {}

    yield past[-1][None].copy()
    for event in events:
        kind, agent, version = int(event["kind"]), int(event["agent"]), int(event["version"])
        if kind == SEND and agent != LEARNER and event["release"] >= 0:
            ask = _of_release(gradient, agent, int(event["release"]) * steps[agent])
            trained = owners[agent].train(past[version].copy(), ask, version, memories[agent])
            sent[int(event["seq"])] = trained, version
        elif kind == DELIVER and agent == LEARNER and int(event["cause"]) in sent:
            if not exchange.in_rounds:
                answers.clear()
            answer = sent[int(event["cause"])]
            if not exchange.in_rounds or answer[1] == len(past) - 1:
                answers[int(event["peer"])] = answer
        elif kind == COMMIT:
            here, now = past[-1], len(past) - 1
            known = [
                Answer(i, int(task.problem.records[i]), trained, past[version].copy(), version, now - version)
                for i, (trained, version) in sorted(answers.items())
            ]
            past.append(algorithm.use(here.copy(), known, memories[LEARNER]) if known else here)
            answers.clear()
            yield past[-1][None].copy()


def reference_gossip_learning(
    algorithm: Any, task: TrainingTask, events: np.ndarray, noise: np.ndarray
) -> Iterator[np.ndarray]:
    """All models after every commit, shape (n, p)."""
    gradient = gradients_of(task, events, noise, algorithm.queries)
    n = task.problem.agents
    models = [(task.start.copy(), 0)] * n
    before = list(models)
    sent: dict[int, tuple[np.ndarray, int]] = {}
    heard: dict[int, tuple[np.ndarray, int]] = {}

    def update(agent: int, query: int, model: tuple[np.ndarray, int]) -> tuple[np.ndarray, int]:
        x, age = model
        trained = algorithm.train(x, _of_release(gradient, agent, query), age, {})
        return trained, age + algorithm.local_steps

    def merge(one: tuple[np.ndarray, int], other: tuple[np.ndarray, int]) -> tuple[np.ndarray, int]:
        a, b = one[1], other[1]
        share = a / (a + b) if algorithm.merge_weights == "age" and a + b else 0.5
        return share * one[0] + (1 - share) * other[0], max(a, b)

    yield np.array([x for x, _ in models])
    for event in events:
        kind, i, seq, cause = (int(event[name]) for name in ("kind", "agent", "seq", "cause"))
        if kind == SEND and event["version"] >= 0:
            sent[seq] = models[i]
        elif kind == DELIVER and cause in sent:
            heard[seq] = sent[cause]
        elif kind == BEGIN and cause in heard:
            heard[seq] = heard[cause]
        elif kind == COMMIT:
            m, release = heard[cause], int(event["release"])
            first = release * algorithm.queries
            if algorithm.merge == "walk":
                new = m if release < 0 else update(i, first, m)
            elif algorithm.merge == "merge-update" or release < 0:
                new = merge(m, before[i])
                new = new if release < 0 else update(i, first, new)
            else:
                new = merge(update(i, first, m), update(i, first + algorithm.local_steps, before[i]))
            models[i], before[i] = new, m
            yield np.array([x for x, _ in models])


def reference_on_graph(
    algorithm: Any,
    task: TrainingTask,
    links: Graph,
    exchange: Exchange,
    events: np.ndarray,
    noise: np.ndarray,
    places: Sequence[int] | None = None,
) -> Iterator[np.ndarray]:
    """All models at the start and after every commit, shape (n, p); if places are given, after so many events each.

    Between commits models change where work begins, or is sent, before it is committed.
    """
    return picked(_on_graph(algorithm, task, links, exchange, events, noise), events, places)


def _on_graph(
    algorithm: Any,
    task: TrainingTask,
    links: Graph,
    exchange: Exchange,
    events: np.ndarray,
    noise: np.ndarray,
) -> Iterator[list[np.ndarray]]:
    from p2psim.network.changes import ActiveLinks
    from p2psim.network.mixing import mixing_matrix

    gradient = gradients_of(task, events, noise, algorithm.queries)
    n = task.problem.agents
    near = ActiveLinks(links, task.end)
    W = mixing_matrix(near.graph(), algorithm.mixing).toarray()
    models = [task.start.copy() for _ in range(n)]
    memories: list[Memory] = [{} for _ in range(n)]
    woke = [0.0] * n
    sent: dict[int, tuple[np.ndarray, float]] = {}
    heard: dict[int, np.ndarray] = {}  # in pairs, by the event that brought it
    sender: dict[int, int] = {}
    neighbours: list[dict[int, tuple[np.ndarray, float]]] = [{} for _ in range(n)]
    read: dict[int, np.ndarray] = {}
    begun: set[int] = set()
    order, in_pairs = algorithm.order, not exchange.sends_to_all

    def step(i: int, start: np.ndarray, at: np.ndarray, release: int) -> np.ndarray:
        ask = _of_release(gradient, i, release * algorithm.queries)
        trained = algorithm.train(at.copy(), ask, release, memories[i])
        return np.asarray(trained if start is at else start + (trained - at))

    def mix(i: int, own: np.ndarray, cause: int) -> np.ndarray:
        if in_pairs:
            known = [Heard(sender[cause], 0.5, heard[cause].copy())] if cause in heard else []
        else:
            known = [
                Heard(j, float(W[i, j]), model.copy())
                for j, (model, time) in sorted(neighbours[i].items())
                if not exchange.in_rounds or time >= woke[i]
            ]
        return np.asarray(algorithm.mix(own.copy(), known, memories[i]))

    yield models
    for event in events:
        kind, i, seq, cause, release = (
            int(event[name]) for name in ("kind", "agent", "seq", "cause", "release")
        )
        # A round mixes what is sent over the links that are there when it begins, and all wake.
        if near.upcoming <= event["time"] and (kind == WAKE or not exchange.in_rounds):
            W = mixing_matrix(near.advance(float(event["time"])).graph(), algorithm.mixing).toarray()
        if kind == WAKE:
            woke[i] = float(event["time"])
        elif kind == BEGIN:
            begun.add(seq)
            if cause in heard:
                heard[seq], sender[seq] = heard[cause], sender[cause]
            if order == "gossip-then-gradient":
                models[i] = mix(i, models[i], seq)
            read[i] = models[i]
        elif kind == SEND and event["version"] >= 0:
            if release >= 0 and order == "gradient-then-gossip" and exchange.in_rounds:
                models[i] = step(i, models[i], read.pop(i, models[i]), release)
            sent[seq] = models[i], float(event["time"])
        elif kind == DELIVER and cause in sent:
            if in_pairs:
                heard[seq], sender[seq] = sent[cause][0], int(event["peer"])
            elif sent[cause][1] >= neighbours[i].get(int(event["peer"]), (0, -np.inf))[1]:
                neighbours[i][int(event["peer"])] = sent[cause]
        elif kind == COMMIT:
            # Who only averages when it is asked goes on with what it computes.
            own, is_own = models[i], release >= 0 or cause in begun
            at = read.pop(i, None) if is_own else None
            if release < 0:
                is_mixed = order == "gossip-then-gradient" and at is not None
                models[i] = own if is_mixed else mix(i, own, cause)
            elif order == "gradient-then-gossip":
                models[i] = mix(i, step(i, own, own if at is None else at, release), cause)
            elif order == "gossip-then-gradient" and at is not None:
                models[i] = step(i, own, at, release)
            else:
                mixed = mix(i, own, cause)
                where = mixed if order == "gossip-then-gradient" else own if at is None else at
                models[i] = step(i, mixed, where, release)
            if exchange.in_rounds:
                neighbours[i].clear()
        yield models
