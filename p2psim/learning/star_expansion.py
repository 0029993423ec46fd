"""Owners' mean gradients, clipped as they are, and their Jacobians at a model: where a linear model starts from.

Every gradient is s(θᵀx)·x, so clipping it to a norm c clips the slope s to c/‖x‖: a record that is clipped has a
constant gradient, and adds nothing to the Jacobian.
"""

from __future__ import annotations

import numpy as np

from p2psim.learning.losses import Squared
from p2psim.learning.star_problem import StarProblem

#: Steps of the search for a balance; damped Newton steps take few.
_MOST = 200


def expansion(
    problem: StarProblem, theta: np.ndarray, clip: float, order: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Mean gradient of each owner's records at θ, shape (N, p), and its Jacobian, shape (N, p, p).

    Parameters
    ----------
    problem : StarProblem
        Of a smooth loss.
    theta : ndarray, shape (p,)
    clip : float
        Norm to which each record's gradient is clipped; infinite for none.
    order : int
        Of that norm.
    """
    gradients = np.empty((problem.owners, problem.dimension))
    jacobians = np.empty((problem.owners, problem.dimension, problem.dimension))
    for i in range(problem.owners):
        rows = slice(int(problem.offsets[i]), int(problem.offsets[i + 1]))
        X, y = problem.X[rows], problem.y[rows]
        slopes = problem.loss.slopes(X @ theta, y)
        steep = np.abs(slopes)
        curves = np.full(len(y), 2.0) if isinstance(problem.loss, Squared) else steep * (1 - steep)
        norms = problem.norms(order)[rows]
        clipped = steep * norms > clip
        slopes = np.where(clipped, np.sign(slopes) * clip / np.where(clipped, norms, 1.0), slopes)
        gradients[i] = slopes @ X / len(y)
        jacobians[i] = (X * np.where(clipped, 0.0, curves)[:, None]).T @ X / len(y)
    return gradients, jacobians


def balance(problem: StarProblem, clip: float, order: int = 1) -> np.ndarray:
    """The model at which ∇g and the owners' clipped gradients add up to zero, shape (p,); θ* where none is clipped.

    Found by damped Newton steps on a convex problem; θ* where they do not arrive, as where the box acts.

    Parameters
    ----------
    problem, clip, order
        As in `expansion`.
    """
    theta = np.array(problem.optimum)
    if np.isinf(clip) or problem.box_is_active:
        return theta

    def rest(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradients, jacobians = expansion(problem, at, clip, order)
        slope = 2 * problem.l2 * at + problem.shares @ gradients
        return slope, 2 * problem.l2 * np.eye(at.size) + np.tensordot(problem.shares, jacobians, 1)

    slope, curvature = rest(theta)
    first = float(np.linalg.norm(slope))
    for _ in range(_MOST):
        size = float(np.linalg.norm(slope))
        if size <= 1e-12 + 1e-9 * first:
            return theta
        step, length = np.linalg.solve(curvature, slope), 1.0
        while length > 1e-6:
            trial = theta - length * step
            new_slope, new_curvature = rest(trial)
            if float(np.linalg.norm(new_slope)) < (1 - 0.1 * length) * size:
                break
            length /= 2
        else:
            break
        theta, slope, curvature = trial, new_slope, new_curvature
    return np.array(problem.optimum)
