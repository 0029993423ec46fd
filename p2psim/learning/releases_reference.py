"""What agents release, in plain NumPy: what the plain replays of all algorithms have in common."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from p2psim.learning.batch_reference import drawn
from p2psim.learning.batches import Sampling
from p2psim.learning.graph_problem import GraphProblem
from p2psim.learning.star_problem import StarProblem


def mean_gradient(
    problem: StarProblem | GraphProblem,
    agent: int,
    theta: np.ndarray,
    clip: float,
    release: int,
    sampling: Sampling | None,
    order: int = 1,
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
    norms = np.linalg.norm(gradients, ord=order, axis=1)
    clipped = gradients * np.minimum(1.0, clip / np.maximum(norms, 1e-300))[:, None]
    return np.asarray(clipped.sum(axis=0) / divisor)


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
    made = np.zeros(agents + 1, np.int64)
    for event in events:
        if event["kind"] == kind and event["release"] >= 0:
            made[event["agent"] + 1] += 1
    return np.cumsum(made)
