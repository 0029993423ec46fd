"""Coordinate descent and model propagation in plain NumPy: to be read beside the paper, and to test against."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from p2psim.learning.batches import Sampling
from p2psim.learning.graph_problem import GraphProblem
from p2psim.learning.graph_replay import GraphRule
from p2psim.learning.releases_reference import first_rows, mean_gradient, on_grid
from p2psim.network.events import COMMIT, DELIVER, JOIN, SEND


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
    first = first_rows(events, COMMIT, problem.agents)
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
                g = mean_gradient(problem, i, theta[i], rule.clip, release, sampling, rule.order)
                g = on_grid(g + noise[first[i] + release], rule.grid) + 2 * problem.ridge[i] * theta[i]
                theta[i] = (1 - a) * theta[i] + a * (mix - mu_c * g)
                anchors[i] = theta[i]
            elif rule.anchored:
                theta[i] = (mix + mu_c * anchors[i]) / (1 + mu_c)
            else:
                theta[i] = (1 - a) * theta[i] + a * mix
            yield theta.copy()
