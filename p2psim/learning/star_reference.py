"""F Algorithm 1 in plain NumPy: few lines, to be read beside the paper, and to test the compiled kernel against."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from p2psim.learning.async_star import StarMethod
from p2psim.learning.batches import Sampling
from p2psim.learning.releases_reference import first_rows, mean_gradient, on_grid
from p2psim.learning.star_problem import StarProblem
from p2psim.learning.weighting import Weighting
from p2psim.network.events import COMMIT, DELIVER, DROP, JOIN, LEARNER, NEIGHBOURS, SEND


def replay_plainly(
    problem: StarProblem,
    method: StarMethod,
    events: Iterable[np.void],
    noise: np.ndarray,
    clip: float = np.inf,
    sampling: Sampling | None = None,
    order: int = 1,
    grid: float | None = None,
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
        Norm to which each record's gradient is clipped.
    sampling : Sampling, optional
        How the records of each release are drawn; all take part when left out.
    order : int
        Order of that norm, 1 or 2.
    grid : float, optional
        What noisy gradients are rounded to multiples of, halves upwards.

    Returns
    -------
    ndarray, shape (commits + 1, p)
        The first row is the start, zero.
    """
    events = list(events)
    N, p = problem.owners, problem.dimension
    first = first_rows(events, SEND, N)

    theta_L, theta, asked, newest = np.zeros(p), np.zeros((N, p)), np.zeros((N, p)), np.zeros(N)
    queries: dict[int, np.ndarray] = {}
    answers: dict[int, tuple[np.ndarray, np.ndarray, int]] = {}
    arrived = (np.zeros(p), np.zeros(p), 0)
    weighting, counts = method.weighting or Weighting.equal(N), np.zeros(N, np.int64)
    models = [theta_L]
    for event in events:
        seq, kind, agent, peer, cause = (
            int(event[name]) for name in ("seq", "kind", "agent", "peer", "cause")
        )
        if kind == SEND and agent == LEARNER:
            assert peer == NEIGHBOURS or peer >= 0
            queries[seq] = (theta_L + theta) / 2
        elif kind == SEND:
            release = int(event["release"])
            Q = mean_gradient(problem, agent, asked[agent], clip, release, sampling, order)
            Q = on_grid(weighting.at_owner[agent] * Q + noise[first[agent] + release], grid)
            answers[seq] = Q, asked[agent].copy(), int(event["version"])
        elif kind == DELIVER and agent == LEARNER:
            arrived = answers.pop(cause)
        elif kind == DELIVER and event["version"] >= newest[agent]:
            asked[agent], newest[agent] = queries[cause][agent], event["version"]
        elif kind == DROP and agent == LEARNER:
            del answers[cause]
        elif kind == COMMIT:
            Q, queried, version = arrived
            Q = weighting.of_answer(peer, int(counts.sum()) - version, counts) * Q
            counts[peer] += 1
            at = queried if method.overwrite else (theta_L + theta[peer]) / 2
            dg = 2 * problem.l2 * at
            step, box = method.step, problem.theta_max
            theta[peer] = np.clip(at - N * step * (dg / (2 * N) + problem.shares[peer] * Q), -box, box)
            theta_L = np.clip(at - method.learner_weight * step * dg, -box, box)
            models.append(theta_L)
        elif kind == JOIN and agent != LEARNER and event["version"] >= 0:
            theta[agent] = theta_L if peer == LEARNER else 0.0
    return np.array(models)
