"""F Algorithm 1 in plain NumPy: few lines, to be read beside the paper, and to test the compiled kernel against."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from p2psim.learning.async_star import StarMethod
from p2psim.learning.star_problem import StarProblem
from p2psim.network.events import COMMIT, DELIVER, DROP, LEARNER, NEIGHBOURS, SEND


def mean_gradient(problem: StarProblem, owner: int, theta: np.ndarray, clip: float) -> np.ndarray:
    """Mean of the gradients of an owner's records, each clipped to an L1 norm: shape (p,)."""
    rows = slice(problem.offsets[owner], problem.offsets[owner + 1])
    X, y = problem.X[rows], problem.y[rows]
    gradients = problem.loss.slopes(X @ theta, y)[:, None] * X
    norms = np.abs(gradients).sum(axis=1)
    return np.asarray((gradients * np.minimum(1.0, clip / np.maximum(norms, 1e-300))[:, None]).mean(axis=0))


def replay_plainly(
    problem: StarProblem,
    method: StarMethod,
    events: Iterable[np.void],
    noise: np.ndarray,
    clip: float = np.inf,
) -> np.ndarray:
    """The learner's model after every commit.

    Parameters
    ----------
    problem : StarProblem
    method : StarMethod
    events : iterable of EVENT records
    noise : ndarray, shape (releases, p)
        Ordered by (agent, release).
    clip : float
        L1 norm to which each record's gradient is clipped.

    Returns
    -------
    ndarray, shape (commits + 1, p)
        The first row is the start, zero.
    """
    events = list(events)
    N, p = problem.owners, problem.dimension
    made = np.zeros(N + 1, np.int64)
    for event in events:
        if event["kind"] == SEND and event["release"] >= 0:
            made[event["agent"] + 1] += 1
    first = np.cumsum(made)

    theta_L, theta, asked, newest = np.zeros(p), np.zeros((N, p)), np.zeros((N, p)), np.zeros(N)
    queries: dict[int, np.ndarray] = {}
    answers: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    arrived = (np.zeros(p), np.zeros(p))
    models = [theta_L]
    for event in events:
        seq, kind, agent, peer, cause = (
            int(event[name]) for name in ("seq", "kind", "agent", "peer", "cause")
        )
        if kind == SEND and agent == LEARNER:
            assert peer == NEIGHBOURS or peer >= 0
            queries[seq] = (theta_L + theta) / 2
        elif kind == SEND:
            w = noise[first[agent] + event["release"]]
            answers[seq] = mean_gradient(problem, agent, asked[agent], clip) + w, asked[agent].copy()
        elif kind == DELIVER and agent == LEARNER:
            arrived = answers.pop(cause)
        elif kind == DELIVER and event["version"] >= newest[agent]:
            asked[agent], newest[agent] = queries[cause][agent], event["version"]
        elif kind == DROP and agent == LEARNER:
            del answers[cause]
        elif kind == COMMIT:
            Q, queried = arrived
            at = queried if method.overwrite else (theta_L + theta[peer]) / 2
            dg = 2 * problem.l2 * at
            step, box = method.step, problem.theta_max
            theta[peer] = np.clip(at - N * step * (dg / (2 * N) + problem.shares[peer] * Q), -box, box)
            theta_L = np.clip(at - method.learner_weight * step * dg, -box, box)
            models.append(theta_L)
    return np.array(models)
