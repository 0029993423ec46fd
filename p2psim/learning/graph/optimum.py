"""Exact minimisers on a graph: of Q_L, of each agent's own loss, of model propagation, and of the baselines.

`graph_expansion` gives agents' mean gradients and their Jacobians at their models, which linear models start from, and
`graph_balance` the models at which clipped gradients balance.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from typing import Concatenate, ParamSpec

import numpy as np

from p2psim.core.errors import SimulationError
from p2psim.learning.graph.problem import GraphProblem
from p2psim.learning.optimum import DAMPINGS, SHORT, minimise, minimise_smooth
from p2psim.learning.star.expansion import clipped_slopes, damped_newton, mean_gradients, mean_jacobians

#: Largest component of the gradient, relative to the larger of its two sides (neighbours, own losses), at which a
#: minimiser is accepted.
TOLERANCE = 1e-10

#: Or relative to the largest term that is summed there: rounding leaves no less. It matters where μ is very large, so
#: that each agent's own losses alone add up to nearly nothing.
ROUNDING = 2.0**-45

_Rest = ParamSpec("_Rest")

#: Problems whose models are kept. Cells of one replica follow each other.
_KEPT = 16


def once_a_problem(
    function: Callable[Concatenate[GraphProblem, _Rest], np.ndarray],
) -> Callable[Concatenate[GraphProblem, _Rest], np.ndarray]:
    """Decorator: keep the models that a function of a problem, and of things that can be hashed, gives.

    Problems are told apart by their contents. The models cannot be written to.
    """
    kept: OrderedDict[object, np.ndarray] = OrderedDict()

    @wraps(function)
    def shared(problem: GraphProblem, /, *rest: _Rest.args, **named: _Rest.kwargs) -> np.ndarray:
        key = problem.digest, rest, tuple(sorted(named.items()))
        if key not in kept:
            kept[key] = function(problem, *rest, **named)
            kept[key].flags.writeable = False
        kept.move_to_end(key)
        while len(kept) > _KEPT:
            kept.popitem(last=False)
        return kept[key]

    return shared


@once_a_problem
def minimise_together(problem: GraphProblem) -> np.ndarray:
    """Θ*, the minimiser of Q_L, shape (n, p); see `newton`."""
    return newton(problem, np.zeros((problem.agents, problem.dimension)))


def minimum(problem: GraphProblem) -> float:
    """Q_L*."""
    return problem.objective(minimise_together(problem))


def newton(problem: GraphProblem, start: np.ndarray) -> np.ndarray:
    """Minimise Q_L by Newton's method with conjugate gradients inside.

    The Hessian is the graph's Laplacian in each coordinate plus one p × p block an agent; its block diagonal
    preconditions. For the squared loss one Newton step is the solution.

    Where μ is small, what all agents of a part of the graph have in common hangs on their own losses alone, and these
    drown in the rounding of the neighbours' side. So each step ends with a shift of each part as a whole, which the
    neighbours' side does not feel, and the parts' sums of gradients must vanish too.

    A step is damped as in :mod:`p2psim.learning.optimum` where less than `SHORT` of it can be taken.

    Parameters
    ----------
    problem : GraphProblem
        With a smooth loss and λ_i > 0, or enough records, for a unique minimiser.
    start : ndarray, shape (n, p)

    Returns
    -------
    ndarray, shape (n, p)

    Raises
    ------
    SimulationError
        If the gradient does not become small enough, or μD_ii·c_i has hardly any digits.
    """
    if problem.pull.min() * ROUNDING**2 < np.finfo(float).tiny:
        raise SimulationError(
            f"the agents' own losses are too small to be distinguished from 0; mu is {problem.mu:g}"
        )
    theta = start
    value = problem.objective(theta)
    for _ in range(100):
        pulls, terms = _pulls(problem, theta)
        gradient, accepted = _gradient(problem, theta, pulls, terms)
        if np.abs(gradient).max() <= accepted and _balanced(problem, pulls, terms):
            return theta
        tried = []
        for damping in DAMPINGS:
            blocks = _blocks(problem, theta, damping)
            step = _solve(problem, blocks, gradient)
            step += _shift(problem, blocks, pulls - np.einsum("npq,nq->np", blocks, step))
            length = 1.0
            while True:
                new = theta - length * step
                new_value = problem.objective(new)
                # Near the minimum the decrease drowns in rounding; a full step is right there.
                if new_value <= value + 1e-13 * abs(value) or length < 1e-6:
                    break
                length /= 2
            tried.append((new_value, new))
            if length >= SHORT:
                break
        value, theta = min(tried, key=lambda one: one[0])
    raise SimulationError(f"Q_L was not minimised to 1e-10 in 100 Newton steps; mu is {problem.mu:g}")


def _pulls(problem: GraphProblem, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradients of μD_ii·c_i·L_i, shape (n, p), and the largest term that is summed in each, shape (n,)."""
    slopes = problem.loss.slopes(problem.scores(theta), problem.y)[:, None] * problem.X
    fit = np.zeros_like(theta)
    held = problem.records > 0
    fit[held] = np.add.reduceat(slopes, problem.offsets[:-1][held], axis=0) / problem.records[held][:, None]
    shrink = 2 * problem.ridge[:, None] * theta
    terms = problem.pull * np.maximum(np.abs(fit).max(axis=1), np.abs(shrink).max(axis=1))
    fit += shrink
    fit *= problem.pull[:, None]
    return fit, terms


def _gradient(
    problem: GraphProblem, theta: np.ndarray, pulls: np.ndarray, terms: np.ndarray
) -> tuple[np.ndarray, float]:
    """∇Q_L, shape (n, p), and the largest component at which it is taken for zero."""
    smooth = problem.degrees[:, None] * (theta - problem.neighbour_means(theta))
    sides = max(np.abs(problem.degrees[:, None] * theta).max(), np.abs(pulls).max())
    accepted = max(TOLERANCE * sides, ROUNDING * terms.max(), np.finfo(float).tiny)
    return smooth + pulls, float(accepted)


def _balanced(problem: GraphProblem, pulls: np.ndarray, terms: np.ndarray) -> bool:
    """Whether the agents' own gradients cancel in each part of the graph, as they do at the minimum."""
    left = np.abs(_sums(problem, pulls)).max(axis=1)
    sides = _sums(problem, np.abs(pulls)).max(axis=1)
    accepted = np.maximum(TOLERANCE * sides, ROUNDING * _sums(problem, terms))
    return bool((left <= np.maximum(accepted, np.finfo(float).tiny)).all())


def _shift(problem: GraphProblem, blocks: np.ndarray, pulls: np.ndarray) -> np.ndarray:
    """What moves each part of the graph as a whole to where linearised pulls cancel, shape (n, p)."""
    sums, unit = _sums(problem, blocks), np.abs(blocks).max()
    moves = np.linalg.solve(sums / unit, _sums(problem, pulls)[:, :, None] / unit)[:, :, 0]
    return np.asarray(moves[problem.parts])


def _sums(problem: GraphProblem, values: np.ndarray) -> np.ndarray:
    """Sums over the agents of each part of the graph, shape (n, …) to (parts, …)."""
    found = np.zeros((problem.parts.max() + 1, *values.shape[1:]))
    np.add.at(found, problem.parts, values)
    return found


def _blocks(problem: GraphProblem, theta: np.ndarray, damping: float) -> np.ndarray:
    """Hessian of μD_ii·c_i·L_i at each agent's model, and so much of a bound on it, shape (n, p, p)."""
    seconds = problem.loss.second_slopes(problem.scores(theta), problem.y)
    if damping:
        seconds = seconds + damping * problem.loss.curvature
    shrink = 2 * problem.ridge[:, None, None] * np.eye(problem.dimension)
    return (mean_jacobians(problem, seconds) + shrink) * problem.pull[:, None, None]


def _solve(problem: GraphProblem, blocks: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve (Laplacian ⊗ I + blocks) step = right, shape (n, p)."""
    from scipy.sparse.linalg import LinearOperator, cg

    n, p = right.shape
    # Where μ is very large the squares of a residual would overflow.
    unit = float(max(problem.degrees.max(), np.abs(blocks).max()))
    degrees, blocks, right = problem.degrees[:, None] / unit, blocks / unit, right / unit
    inverse = np.linalg.inv(blocks + degrees[:, :, None] * np.eye(p))

    def hessian(flat: np.ndarray) -> np.ndarray:
        v = flat.reshape(n, p)
        product = degrees * (v - problem.neighbour_means(v)) + np.einsum("npq,nq->np", blocks, v)
        return product.ravel()

    def precondition(flat: np.ndarray) -> np.ndarray:
        return np.einsum("npq,nq->np", inverse, flat.reshape(n, p)).ravel()

    size = (n * p, n * p)
    step, failed = cg(
        LinearOperator(size, hessian),
        right.ravel(),
        rtol=1e-12,
        maxiter=20 * n * p,
        M=LinearOperator(size, precondition),
    )
    if failed:
        raise SimulationError(
            f"conjugate gradients did not converge on the Hessian of Q_L; mu is {problem.mu:g}"
        )
    return step.reshape(n, p)


@once_a_problem
def minimise_alone(problem: GraphProblem, reduction: str = "mean") -> np.ndarray:
    """Minimiser of each agent's own loss, shape (n, p).

    Parameters
    ----------
    problem : GraphProblem
    reduction : {"mean", "sum"}
        Whether λ_i‖θ‖² is added to the mean or to the sum of an agent's losses.

    Raises
    ------
    SimulationError
        If an agent's loss is not minimised to 1e-10.
    """
    theta = np.zeros((problem.agents, problem.dimension))
    for i, X, y in _holders(problem):
        l2 = problem.ridge[i] / (len(y) if reduction == "sum" else 1)
        theta[i] = minimise(problem.loss, X, y, l2, np.inf)
    return theta


def minimise_tilted(problem: GraphProblem, ridge: np.ndarray, tilt: np.ndarray) -> np.ndarray:
    """Minimiser of the mean loss of each agent's records, with other ridges and a linear term, shape (n, p).

    λ‖θ‖² + tᵀθ is λ‖θ + t/(2λ)‖² but for a constant, so φ = θ + t/(2λ) is found, at scores that t shifts.

    Parameters
    ----------
    problem : GraphProblem
        With a loss of bounded curvature.
    ridge : ndarray, shape (n,)
        Weights of ‖θ‖².
    tilt : ndarray, shape (n, p)
        Of each agent t, of a further term tᵀθ.
    """
    theta = -tilt / (2 * ridge[:, None])
    for i, X, y in _holders(problem):
        theta[i] += minimise_smooth(problem.loss, X, y, ridge[i], np.inf, X @ theta[i])
    return theta


def _holders(problem: GraphProblem) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Agents that hold records, and these."""
    for i in np.flatnonzero(problem.records).tolist():
        rows = slice(problem.offsets[i], problem.offsets[i + 1])
        yield i, problem.X[rows], problem.y[rows]


def propagate(problem: GraphProblem, alone: np.ndarray) -> np.ndarray:
    """Fixed point of model propagation: (D − W + μDC)Θ = μDC·Θ^loc (B, equation 16), shape (n, p).

    Parameters
    ----------
    problem : GraphProblem
        Its losses do not matter.
    alone : ndarray, shape (n, p)
        Θ^loc, the models that are propagated.
    """
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import splu

    matrix = diags_array(problem.degrees + problem.pull) - problem._matrix
    return splu(matrix.tocsc()).solve(problem.pull[:, None] * alone)


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

    return damped_newton(expand, solve, optimum)


@once_a_problem
def global_model(problem: GraphProblem) -> np.ndarray:
    """Minimiser of the mean loss of all records plus ‖θ‖²/records, for every agent: shape (n, p)."""
    theta = minimise(problem.loss, problem.X, problem.y, 1 / problem.y.size, np.inf)
    return np.tile(theta, (problem.agents, 1))


def from_private_records(
    problem: GraphProblem,
    epsilon: np.ndarray,
    bounds: tuple[float, float],
    random: np.random.Generator,
    alone: bool = False,
) -> np.ndarray:
    """Minimiser of Q_L, or of each agent's own loss, on records that are each ε-DP by themselves, shape (n, p).

    Half of ε goes to x, by Laplace noise of scale 2B/(ε/2) in each coordinate (two records are at most 2B apart in
    L1), half to y: by randomised response where y = ±1, by Laplace noise of scale 2·y_max/(ε/2) otherwise. An
    intercept carries no information and no noise.

    Parameters
    ----------
    problem : GraphProblem
    epsilon : ndarray, shape (n,)
    bounds : tuple of two floats
        Public bounds B on ‖x‖₁, the intercept not counted, and y_max on |y|.
    random : numpy.random.Generator
    alone : bool
    """
    half, (x_l1, y_max) = np.repeat(epsilon, problem.records) / 2, bounds
    features = problem.dimension - problem.loss.intercept
    X = problem.X.copy()
    X[:, :features] += random.laplace(size=(len(X), features)) * (2 * x_l1 / half)[:, None]
    if problem.loss.needs_classes:
        keeps = 1 / (1 + np.exp(-half))
        y = np.where(random.random(problem.y.size) < keeps, problem.y, -problem.y)
    else:
        y = problem.y + random.laplace(size=problem.y.size) * (2 * y_max / half)
    private = replace(problem, X=X, y=y)
    return minimise_alone(private) if alone else minimise_together(private)
