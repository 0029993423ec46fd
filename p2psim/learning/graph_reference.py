"""Coordinate descent and model propagation in plain NumPy: to be read beside the paper, and to test against."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from p2psim.learning.graph_problem import GraphProblem
from p2psim.learning.graph_replay import GraphRule
from p2psim.network.events import COMMIT, DELIVER, SEND


def mean_gradient(problem: GraphProblem, i: int, theta: np.ndarray, rule: GraphRule) -> np.ndarray:
    """Mean of the gradients of an agent's records, each clipped: shape (p,)."""
    rows = slice(problem.offsets[i], problem.offsets[i + 1])
    X, y = problem.X[rows], problem.y[rows]
    if not len(y):
        return np.zeros(problem.dimension)
    gradients = problem.loss.slopes(X @ theta, y)[:, None] * X
    norms = np.linalg.norm(gradients, ord=rule.order, axis=1)
    return np.asarray(
        (gradients * np.minimum(1.0, rule.clip / np.maximum(norms, 1e-300))[:, None]).mean(axis=0)
    )


def replay_plainly(
    problem: GraphProblem,
    rule: GraphRule,
    start: np.ndarray,
    events: Iterable[np.void],
    noise: np.ndarray,
    anchor: np.ndarray | None = None,
) -> Iterator[np.ndarray]:
    """All models after every commit.

    Parameters
    ----------
    problem : GraphProblem
    rule : GraphRule
    start : ndarray, shape (n, p)
    events : iterable of EVENT records
    noise : ndarray, shape (releases, p)
        Ordered by (agent, release).
    anchor : ndarray, shape (n, p), optional

    Yields
    ------
    ndarray, shape (n, p)
        The first is the start.
    """
    events = list(events)
    theta = np.array(start, dtype=float)
    anchors = np.array(start if anchor is None else anchor, dtype=float)
    received = {
        (i, int(j)): (0, theta[j].copy())
        for i in range(problem.agents)
        for j in problem.indices[problem.indptr[i] : problem.indptr[i + 1]]
    }
    sent: dict[int, np.ndarray] = {}
    made = np.zeros(problem.agents + 1, np.int64)
    for event in events:
        if event["kind"] == COMMIT and event["release"] >= 0:
            made[event["agent"] + 1] += 1
    first = np.cumsum(made)
    yield theta.copy()
    for event in events:
        i, peer, version, cause = (int(event[name]) for name in ("agent", "peer", "version", "cause"))
        if event["kind"] == SEND and version >= 0:
            sent[int(event["seq"])] = theta[i].copy()
        elif event["kind"] == DELIVER and version > received[i, peer][0]:
            received[i, peer] = version, sent[cause]
        elif event["kind"] == COMMIT:
            near = problem.indices[problem.indptr[i] : problem.indptr[i + 1]]
            W = problem.weights[problem.indptr[i] : problem.indptr[i + 1]]
            mix = sum(w * received[i, int(j)][1] for w, j in zip(W, near, strict=True)) / W.sum()
            mu_c = problem.mu * problem.confidence[i]
            a = 1 / (1 + mu_c * problem.smoothness[i])
            if event["release"] >= 0:
                g = mean_gradient(problem, i, theta[i], rule) + 2 * problem.ridge[i] * theta[i]
                theta[i] = (1 - a) * theta[i] + a * (mix - mu_c * (g + noise[first[i] + event["release"]]))
                anchors[i] = theta[i]
            elif rule.anchored:
                theta[i] = (mix + mu_c * anchors[i]) / (1 + mu_c)
            else:
                theta[i] = (1 - a) * theta[i] + a * mix
            yield theta.copy()
