"""W Algorithms 1 and 2 in plain NumPy: few lines, to be read beside the paper, and to test the kernel against."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from p2psim.learning.batches import Sampling
from p2psim.learning.releases_reference import first_rows, mean_gradient, on_grid
from p2psim.learning.star_problem import StarProblem
from p2psim.learning.synchronous import RoundMethod
from p2psim.network.events import COMMIT, DELIVER, LEARNER, SEND


def replay_rounds_plainly(
    problem: StarProblem,
    method: RoundMethod,
    events: Iterable[np.void],
    noise: np.ndarray,
    clip: float = np.inf,
    sampling: Sampling | None = None,
    order: int = 1,
    grid: float | None = None,
) -> np.ndarray:
    """The learner's model after every round: the iterate, or the average where the method has one.

    Parameters
    ----------
    problem : StarProblem
    method : RoundMethod
    events : iterable of EVENT records
    noise : ndarray, shape (releases, p)
        Ordered by (agent, release).
    clip, sampling, order, grid
        As in `p2psim.learning.star_reference.replay_plainly`.

    Returns
    -------
    ndarray, shape (rounds + 1, p)
        The first row is the start, zero.
    """
    events = list(events)
    N, p = problem.owners, problem.dimension
    first = first_rows(events, SEND, N)

    theta, average = [np.zeros(p)], [np.zeros(p)]
    sent: dict[int, tuple[int, np.ndarray]] = {}
    answers: dict[int, np.ndarray] = {}
    used = np.zeros(N, np.int64)
    for event in events:
        kind, agent, k = event["kind"], int(event["agent"]), len(theta) - 1
        if kind == SEND and agent != LEARNER:
            version, release = int(event["version"]), int(event["release"])
            Q = mean_gradient(problem, agent, theta[version], clip, release, sampling, order)
            Q = on_grid(method.weighting.at_owner[agent] * Q + noise[first[agent] + release], grid)
            sent[int(event["seq"])] = version, Q
        elif kind == DELIVER and agent == LEARNER:
            version, Q = sent.pop(int(event["cause"]))
            if version == k:
                answers[int(event["peer"])] = Q
        elif kind == COMMIT:
            gradient, answered = np.zeros(p), 0.0
            for owner, Q in sorted(answers.items()):
                weight = method.weighting.at_learner[owner]
                if method.weighting.estimated:
                    weight *= (k + 1) / (used[owner] + 1)
                gradient = gradient + weight * problem.shares[owner] * Q
                answered += problem.shares[owner]
                used[owner] += 1
            if method.by_answered and answers:
                gradient = gradient / answered
            answers.clear()
            moved = theta[k] - method.steps[k] * (2 * problem.l2 * theta[k] + gradient)
            theta.append(np.clip(moved, -problem.theta_max, problem.theta_max) if method.projects else moved)
            one = theta[k + 1] if method.newest else theta[k]
            average.append(method.keep[k] * average[k] + method.take[k] * one)
    return np.array(average if method.averages else theta)
