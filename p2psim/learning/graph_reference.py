"""Coordinate descent and model propagation in plain NumPy: to be read beside the paper, and to test against."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from p2psim.learning.batch_reference import drawn
from p2psim.learning.batches import Sampling
from p2psim.learning.graph_problem import GraphProblem
from p2psim.learning.graph_replay import GraphRule
from p2psim.network.events import COMMIT, DELIVER, JOIN, SEND


def mean_gradient(
    problem: GraphProblem, i: int, theta: np.ndarray, rule: GraphRule, release: int, sampling: Sampling | None
) -> np.ndarray:
    """Mean of the gradients of an agent's records, each clipped, or its estimate from a release's batch: shape (p,).

    Of a batch the sum is divided by a public number, not by how many were drawn.
    """
    n = int(problem.records[i])
    places = range(n) if sampling is None else drawn(sampling, i, release, n)
    divisor = max(n, 1) if sampling is None else sampling.divisors[i]
    rows = problem.offsets[i] + np.array(places, np.int64)
    X, y = problem.X[rows], problem.y[rows]
    gradients = problem.loss.slopes(X @ theta, y)[:, None] * X
    norms = np.linalg.norm(gradients, ord=rule.order, axis=1)
    clipped = gradients * np.minimum(1.0, rule.clip / np.maximum(norms, 1e-300))[:, None]
    return np.asarray(clipped.sum(axis=0) / divisor)


def on_grid(values: np.ndarray, grid: float | None) -> np.ndarray:
    """Nearest multiples of the grid's step, halves upwards; the values themselves where there is no grid."""
    return values if grid is None else grid * np.floor(values / grid + 0.5)


def replay_plainly(
    problem: GraphProblem,
    rule: GraphRule,
    start: np.ndarray,
    events: Iterable[np.void],
    noise: np.ndarray,
    anchor: np.ndarray | None = None,
    sampling: Sampling | None = None,
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
    sampling : Sampling, optional
        How the records of each release are drawn; all take part when left out.

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
        elif event["kind"] == JOIN and version >= 0:
            theta[i] = theta[peer] if peer >= 0 else start[i]
        elif event["kind"] == COMMIT:
            near = problem.indices[problem.indptr[i] : problem.indptr[i + 1]]
            W = problem.weights[problem.indptr[i] : problem.indptr[i + 1]]
            mix = sum(w * received[i, int(j)][1] for w, j in zip(W, near, strict=True)) / W.sum()
            mu_c = problem.mu * problem.confidence[i]
            a = 1 / (1 + mu_c * problem.smoothness[i])
            release = int(event["release"])
            if release >= 0:
                g = mean_gradient(problem, i, theta[i], rule, release, sampling)
                g = on_grid(g + noise[first[i] + release], rule.grid) + 2 * problem.ridge[i] * theta[i]
                theta[i] = (1 - a) * theta[i] + a * (mix - mu_c * g)
                anchors[i] = theta[i]
            elif rule.anchored:
                theta[i] = (mix + mu_c * anchors[i]) / (1 + mu_c)
            else:
                theta[i] = (1 - a) * theta[i] + a * mix
            yield theta.copy()
