"""Agents' clipped mean gradients and their Jacobians, and the model of a star at which clipped gradients balance.

Linear models start from these. Every gradient is s(θᵀx)·x, so clipping it to a norm c clips the slope s to c/‖x‖: a
record that is clipped has a constant gradient, and adds nothing to the Jacobian.
"""

from collections.abc import Callable, Iterator

import numpy as np

from p2psim.learning.graph.problem import GraphProblem
from p2psim.learning.star.problem import StarProblem

#: The most damped Newton steps; few are taken.
_MOST = 200


def clipped_slopes(
    problem: StarProblem | GraphProblem, scores: np.ndarray, clip: float, order: int
) -> tuple[np.ndarray, np.ndarray]:
    """∂ℓ/∂z of each record, clipped, and ∂²ℓ/∂z², 0 where it is clipped; each of shape (records,).

    Parameters
    ----------
    problem : StarProblem or GraphProblem
        Of a smooth loss.
    scores : ndarray, shape (records,)
        z = θᵀx.
    clip : float
        Norm to which each record's gradient is clipped; infinite for none.
    order : int
        Of that norm, 1 or 2.
    """
    slopes, seconds = problem.loss.slopes(scores, problem.y), problem.loss.second_slopes(scores, problem.y)
    norms = problem.norms(order)
    clipped = np.abs(slopes) * norms > clip
    slopes[clipped] = np.sign(slopes[clipped]) * clip / norms[clipped]
    seconds[clipped] = 0.0
    return slopes, seconds


def mean_gradients(problem: StarProblem | GraphProblem, slopes: np.ndarray) -> np.ndarray:
    """Mean of s·x over each agent's records, shape (N, p); 0 without records."""
    return np.array([slopes[rows] @ problem.X[rows] / count for rows, count in _rows(problem)])


def mean_jacobians(problem: StarProblem | GraphProblem, seconds: np.ndarray) -> np.ndarray:
    """Mean of s'·xxᵀ over each agent's records, shape (N, p, p); 0 without records."""
    X = problem.X
    return np.array([(X[rows] * seconds[rows, None]).T @ X[rows] / count for rows, count in _rows(problem)])


def _rows(problem: StarProblem | GraphProblem) -> Iterator[tuple[slice, int]]:
    for first, last in zip(problem.offsets[:-1].tolist(), problem.offsets[1:].tolist(), strict=True):
        yield slice(first, last), max(last - first, 1)


def damped_newton(
    expand: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    solve: Callable[[np.ndarray, np.ndarray], np.ndarray],
    start: np.ndarray,
) -> np.ndarray:
    """Zero of the gradient of a convex function, of the shape of ``start``; the start where it is not found.

    A step is halved until it makes the gradient smaller by a tenth of its own length (Armijo's rule on the norm).

    Parameters
    ----------
    expand : callable
        The gradient at a model, and what the Hessian is made from there.
    solve : callable
        Newton's step: that Hessian's inverse times the gradient, from these two.
    start : ndarray
    """
    at = start
    gradient, curvature = expand(at)
    first = float(np.linalg.norm(gradient))
    for _ in range(_MOST):
        size = float(np.linalg.norm(gradient))
        if size <= 1e-12 + 1e-9 * first:
            return at
        step, length = solve(gradient, curvature), 1.0
        while length > 1e-6:
            trial = at - length * step
            new_gradient, new_curvature = expand(trial)
            if float(np.linalg.norm(new_gradient)) < (1 - 0.1 * length) * size:
                break
            length /= 2
        else:
            return start
        at, gradient, curvature = trial, new_gradient, new_curvature
    return start


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

    return damped_newton(expand, lambda slope, curvature: np.linalg.solve(curvature, slope), optimum)
