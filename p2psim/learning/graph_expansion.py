"""Agents' mean gradients on a graph, clipped as they are, and their Jacobians: where a linear model starts from.

Every gradient is s(θᵀx)·x, so clipping it to a norm c clips the slope s to c/‖x‖: a record that is clipped has a
constant gradient, and adds nothing to the Jacobian.
"""

from __future__ import annotations

import numpy as np

from p2psim.learning.graph_problem import GraphProblem
from p2psim.learning.losses import Squared

#: Steps of the search for a balance; damped Newton steps take few.
_MOST = 100


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
    n, p = theta.shape
    slopes = problem.loss.slopes(problem.scores(theta), problem.y)
    steep = np.abs(slopes)
    curves = np.full(len(slopes), 2.0) if isinstance(problem.loss, Squared) else steep * (1 - steep)
    norms = problem.norms(order)
    clipped = steep * norms > clip
    slopes[clipped] = np.sign(slopes[clipped]) * clip / norms[clipped]
    curves[clipped] = 0.0
    gradients = 2 * problem.ridge[:, None] * theta
    jacobians = 2 * problem.ridge[:, None, None] * np.eye(p)
    for i in range(n):
        rows = slice(int(problem.offsets[i]), int(problem.offsets[i + 1]))
        X, m = problem.X[rows], max(len(problem.y[rows]), 1)
        gradients[i] += slopes[rows] @ X / m
        jacobians[i] += (X * curves[rows, None]).T @ X / m
    return gradients, jacobians


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
    theta, (n, p) = optimum.copy(), optimum.shape
    ties = np.zeros((n, p, n, p))
    links = np.repeat(np.arange(n), np.diff(problem.indptr)), problem.indices
    for a in range(p):
        ties[np.arange(n), a, np.arange(n), a] = problem.degrees
        ties[links[0], a, links[1], a] = -problem.weights

    def rest(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradients, jacobians = graph_expansion(problem, at, clip, order)
        slope = (
            problem.degrees[:, None] * (at - problem.neighbour_means(at)) + problem.pull[:, None] * gradients
        )
        return slope, problem.pull[:, None, None] * jacobians

    slope, own = rest(theta)
    first = float(np.linalg.norm(slope))
    for _ in range(_MOST):
        size = float(np.linalg.norm(slope))
        if size <= 1e-12 + 1e-9 * first:
            return theta
        curvature = ties.copy()
        curvature[np.arange(n), :, np.arange(n), :] += own
        step = np.linalg.solve(curvature.reshape(n * p, n * p), slope.ravel()).reshape(n, p)
        length = 1.0
        while length > 1e-6:
            trial = theta - length * step
            new_slope, new_own = rest(trial)
            if float(np.linalg.norm(new_slope)) < (1 - 0.1 * length) * size:
                break
            length /= 2
        else:
            break
        theta, slope, own = trial, new_slope, new_own
    return optimum
