"""Agents' mean gradients and their Jacobians at their models on a graph: where a linear model starts from."""

from __future__ import annotations

import numpy as np

from p2psim.learning.expansion import clipped_slopes, damped_newton, mean_gradients, mean_jacobians
from p2psim.learning.graph_problem import GraphProblem


def graph_expansion(
    problem: GraphProblem, theta: np.ndarray, clip: float = np.inf, order: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """∇L_i at each agent's model, regulariser included, shape (n, p), and its Jacobian, shape (n, p, p).

    Parameters
    ----------
    problem : GraphProblem
    theta : ndarray, shape (n, p)
    clip : float
        Norm to which each record's gradient is clipped; infinite for none. The regulariser's is not.
    order : int
        Of that norm, 1 or 2.
    """
    slopes, seconds = clipped_slopes(problem, problem.scores(theta), clip, order)
    gradients = 2 * problem.ridge[:, None] * theta + mean_gradients(problem, slopes)
    shrink = 2 * problem.ridge[:, None, None] * np.eye(problem.dimension)
    return gradients, shrink + mean_jacobians(problem, seconds)


def graph_balance(problem: GraphProblem, optimum: np.ndarray, clip: float, order: int = 1) -> np.ndarray:
    """Models at which no agent's update moves, gradients clipped, shape (n, p); Θ* where none is clipped there.

    Found by damped Newton steps on a convex problem; Θ* where they do not arrive.

    Parameters
    ----------
    problem : GraphProblem
    optimum : ndarray, shape (n, p)
        Θ*.
    clip, order
        As in `graph_expansion`.
    """
    if np.isinf(clip):
        return optimum
    n, p = optimum.shape
    agents = np.arange(n)
    ties = np.zeros((n, p, n, p))
    links = np.repeat(agents, np.diff(problem.indptr)), problem.indices
    for a in range(p):
        ties[agents, a, agents, a] = problem.degrees
        ties[links[0], a, links[1], a] = -problem.weights

    def expand(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradients, jacobians = graph_expansion(problem, at, clip, order)
        slope = (
            problem.degrees[:, None] * (at - problem.neighbour_means(at)) + problem.pull[:, None] * gradients
        )
        return slope, problem.pull[:, None, None] * jacobians

    def solve(slope: np.ndarray, own: np.ndarray) -> np.ndarray:
        curvature = ties.copy()
        curvature[agents, :, agents, :] += own
        return np.linalg.solve(curvature.reshape(n * p, n * p), slope.ravel()).reshape(n, p)

    found = damped_newton(expand, solve, optimum)
    return optimum if found is None else found
