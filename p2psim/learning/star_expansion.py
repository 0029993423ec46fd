"""Owners' mean gradients and their Jacobians at a model of a star: where a linear model starts from."""

from __future__ import annotations

import numpy as np

from p2psim.learning.expansion import clipped_slopes, damped_newton, mean_gradients, mean_jacobians
from p2psim.learning.star_problem import StarProblem


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
    # Owner by owner: in the last digit a product depends on the rows beside it, and an owner's not on other owners.
    scores = np.concatenate([X @ theta for X in np.split(problem.X, problem.offsets[1:-1])])
    slopes, seconds = clipped_slopes(problem, scores, clip, order)
    return mean_gradients(problem, slopes), mean_jacobians(problem, seconds)


def balance(problem: StarProblem, clip: float, order: int = 1) -> np.ndarray:
    """The model at which ∇g and the owners' clipped gradients add up to zero, shape (p,); θ* where none is clipped.

    Found by damped Newton steps on a convex problem; θ* where they do not arrive, as where the box acts.

    Parameters
    ----------
    problem, clip, order
        As in `expansion`.
    """
    optimum = np.array(problem.optimum)
    if np.isinf(clip) or problem.box_is_active:
        return optimum

    def expand(at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradients, jacobians = expansion(problem, at, clip, order)
        slope = 2 * problem.l2 * at + problem.shares @ gradients
        return slope, 2 * problem.l2 * np.eye(at.size) + np.tensordot(problem.shares, jacobians, 1)

    found = damped_newton(expand, lambda slope, curvature: np.linalg.solve(curvature, slope), optimum)
    return optimum if found is None else found
