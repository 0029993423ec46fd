"""Exact minimisers over the box Θ = {‖θ‖_∞ ≤ theta_max}.

All minimise f(θ) = l2·‖θ‖² + (1/n) Σ ℓ(θᵀx, y) with a unique minimiser: l2 > 0, or what `check_unique` asks for. A
loss brings one of them, or its own; `minimise` checks what it finds.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from p2psim.core.errors import MeaningError, SimulationError

#: Accuracy that minimisers reach: of the gradient's free part (squared, logistic), of the duality gap beside f (hinge).
TOLERANCE = 1e-10

#: Or of the KKT residual, relative to the terms that are summed there: rounding leaves no less.
ROUNDING = 2.0**-45

#: Newton's step is damped where less than this of it can be taken; by how much, in turn.
SHORT, DAMPINGS = 1e-3, (0.0, 1e-6, 1e-4, 1e-2, 1.0)

#: Records so near to the margin, and coordinates so near to a side relative to it, are taken for being there: one pair
#: after the other, until f is minimised.
NEAR = ((1e-7, 1e-7), (1e-7, 1e-9), (1e-5, 1e-5))

#: What f may lie above its minimum, relative to it.
EXCESS = 1e-10


def minimise(loss: Any, X: np.ndarray, y: np.ndarray, l2: float, theta_max: float) -> np.ndarray:
    """Minimise the fitness of a loss over the box by the loss's own minimiser, and check what it finds.

    Parameters
    ----------
    loss, X, y, l2, theta_max
        See `Loss.minimise`.

    Returns
    -------
    ndarray, shape (p,)

    Raises
    ------
    SimulationError
        If what is found is not the minimiser.
    """
    theta = np.asarray(loss.minimise(X, y, l2, theta_max), dtype=np.float64)
    check_minimiser(loss, theta, X, y, l2, theta_max)
    return theta


def check_minimiser(
    loss: Any, theta: np.ndarray, X: np.ndarray, y: np.ndarray, l2: float, theta_max: float
) -> None:
    """Check that a model minimises the fitness of a loss over the box.

    Of a smooth loss the KKT residual θ − P(θ − ∇f(θ)), P the projection on the box, must be within `TOLERANCE` or
    rounding, or f within `EXCESS` of its minimum, by a bound that follows from the gradient. At kinks a slope proves
    nothing; then no step against the gradient may lower f.

    Parameters
    ----------
    theta : ndarray, shape (p,)
    loss, X, y, l2, theta_max
        See `Loss.minimise`.

    Raises
    ------
    SimulationError
        If it does not.
    """
    if theta.shape != X.shape[1:] or not (np.abs(theta) <= theta_max).all():
        raise SimulationError(f"the minimiser of the {loss.kind} loss gives no model in Θ: {theta}")
    slopes = loss.slopes(X @ theta, y)
    gradient = X.T @ slopes / len(y) + 2 * l2 * theta

    fitness = partial(_fitness, loss, X, y, l2)
    value = fitness(theta)
    if np.isfinite(loss.curvature):
        residual = float(np.abs(theta - np.clip(theta - gradient, -theta_max, theta_max)).max())
        largest = max(float(X.max()), -float(X.min()))
        terms = largest * (np.abs(slopes).mean() + loss.curvature * largest * np.abs(theta).sum())
        accurate = residual <= max(TOLERANCE, ROUNDING * terms)
        if not (accurate or excess(theta, gradient, l2, theta_max) <= EXCESS * value):
            raise SimulationError(
                f"the minimiser of the {loss.kind} loss is not optimal: its KKT residual is {residual:.1e}"
            )
        return
    lower = min(fitness(np.clip(theta - 4.0**-k * gradient, -theta_max, theta_max)) for k in range(20))
    if not lower >= value - 10 * TOLERANCE * value:
        raise SimulationError(
            f"the minimiser of the {loss.kind} loss is not optimal: {value:.12g} there, {lower:.12g} near it"
        )


def check_unique(hessian: np.ndarray, l2: float, whose: str) -> None:
    """Raise unless curvature says that f has one minimiser: where l2 = 0, that of the mean loss must be positive.

    Parameters
    ----------
    hessian : ndarray, shape (p, p)
        Of the mean loss at a minimiser, or any matrix with its null space, such as XᵀX/n of the squared loss.
    l2 : float
    whose : str
        Whose records they are, in words.

    Raises
    ------
    MeaningError
        With the rank of the records.
    """
    p = len(hessian)
    if l2 == 0 and (rank := np.linalg.matrix_rank(hessian, hermitian=True)) < p:
        message = f"must be positive: {whose} have rank {rank} in {p} coordinates, so that the minimum is not unique"
        raise MeaningError("learning.regularizer.l2", f"{message}; got 0")


def excess(theta: np.ndarray, gradient: np.ndarray, l2: float, theta_max: float) -> float:
    """Bound on f(θ) − min f over the box, from ∇f(θ): f lies above ∇f(θ)ᵀd + l2·‖d‖² at each step d from there."""
    there = theta - gradient / (2 * l2) if l2 else np.where(gradient > 0, -np.inf, np.inf)
    step = np.clip(there, -theta_max, theta_max) - theta
    return float(-(gradient @ step + l2 * step @ step))


def minimise_squared(gram: np.ndarray, moment: np.ndarray, l2: float, theta_max: float) -> np.ndarray:
    """Minimise l2·‖θ‖² + θᵀGθ − 2cᵀθ over the box.

    Parameters
    ----------
    gram : ndarray, shape (p, p)
        G = XᵀX/n.
    moment : ndarray, shape (p,)
        c = Xᵀy/n.
    l2 : float
        Positive, or 0 where G has full rank.
    theta_max : float

    Returns
    -------
    ndarray, shape (p,)

    Raises
    ------
    SimulationError
        If the box is active and the free part of the gradient does not fall below `TOLERANCE`.
    """
    from scipy.linalg import cho_factor, cho_solve

    hessian = gram + l2 * np.eye(moment.size)
    theta = cho_solve(cho_factor(hessian), moment)
    if np.abs(theta).max() <= theta_max:
        return np.asarray(theta)
    return _projected_newton(
        np.clip(theta, -theta_max, theta_max),
        theta_max,
        lambda t: float(t @ hessian @ t - 2 * moment @ t),
        lambda t: (2 * (hessian @ t - moment), 2 * hessian),
        lambda: 2 * hessian,
    )


def minimise_smooth(
    loss: Any, X: np.ndarray, y: np.ndarray, l2: float, theta_max: float, shift: np.ndarray | float = 0.0
) -> np.ndarray:
    """Minimise the fitness of a loss of bounded curvature over the box.

    Parameters
    ----------
    loss, X, y, l2, theta_max
        See `Loss.minimise`.
    shift : ndarray, shape (n,), optional
        What is added to the records' scores.

    Returns
    -------
    ndarray, shape (p,)

    Raises
    ------
    SimulationError
        If the free part of the gradient does not fall below `TOLERANCE`, or the curvature is infinite.
    """
    if not np.isfinite(loss.curvature):
        raise SimulationError(f"the {loss.kind} loss has a kink, and must define its own method minimise")
    n, p = X.shape

    def derivatives(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scores = X @ theta + shift
        hessian = (X * loss.second_slopes(scores, y)[:, None]).T @ X / n + 2 * l2 * np.eye(p)
        return X.T @ loss.slopes(scores, y) / n + 2 * l2 * theta, hessian

    def bound() -> np.ndarray:
        return np.asarray(loss.curvature * (X.T @ X) / n + 2 * l2 * np.eye(p))

    def fitness(theta: np.ndarray) -> float:
        return float(loss.values(X @ theta + shift, y).mean() + l2 * theta @ theta)

    return _projected_newton(np.zeros(p), theta_max, fitness, derivatives, bound)


def _fitness(loss: Any, X: np.ndarray, y: np.ndarray, l2: float, theta: np.ndarray) -> float:
    """Mean loss of records, and ridge penalty, of a model."""
    return float(loss.values(X @ theta, y).mean() + l2 * theta @ theta)


def _projected_newton(
    theta: np.ndarray,
    theta_max: float,
    fitness: Callable[[np.ndarray], float],
    derivatives: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    bound: Callable[[], np.ndarray],
) -> np.ndarray:
    """Minimise a smooth, strongly convex function over the box by projected Newton steps.

    Bertsekas, "Projected Newton methods for optimization problems with simple constraints" (1982): coordinates that
    are at, or nearly at, a side that the gradient pushes them against move along the gradient, the others by Newton.
    Where second derivatives jump, a Hessian may say nothing of the function a step away. Where its step must be made
    very short, more and more of ``bound``, which no Hessian exceeds, is added to it (Levenberg).
    """
    value = fitness(theta)
    for _ in range(500):
        gradient, hessian = derivatives(theta)
        residual = np.abs(theta - np.clip(theta - gradient, -theta_max, theta_max)).max()
        if residual <= TOLERANCE:
            return theta
        near = min(1e-3 * theta_max, residual)
        held = ((theta >= theta_max - near) & (gradient < 0)) | ((theta <= near - theta_max) & (gradient > 0))
        free = ~held
        tried = []
        for damping in DAMPINGS:
            matrix = hessian + damping * bound() if damping else hessian
            step = gradient / np.diag(matrix)
            if free.any():
                step[free] = np.linalg.solve(matrix[np.ix_(free, free)], gradient[free])
            length = 1.0
            while True:
                candidate = np.clip(theta - length * step, -theta_max, theta_max)
                new = fitness(candidate)
                # Near the minimum the decrease drowns in rounding; a full step is right there.
                if new <= value + 1e-14 * abs(value) or length < 1e-10:
                    break
                length /= 2
            tried.append((new, candidate))
            if length >= SHORT:
                break
        value, theta = min(tried, key=lambda one: one[0])
    raise SimulationError("the fitness was not minimised to 1e-10 in 500 projected Newton steps")


def minimise_hinge(X: np.ndarray, y: np.ndarray, l2: float, theta_max: float) -> np.ndarray:
    """Minimise the hinge fitness over the box as a quadratic program, by an interior point method.

    Parameters and result as in `minimise_smooth`; the labels are ±1.

    Raises
    ------
    SimulationError
        If the duality gap is not small beside the fitness, even after the model was moved to the kinks and sides
        next to it.
    """
    import clarabel
    import scipy.sparse as sp

    n, p = X.shape
    # Variables (θ, s): l2·‖θ‖² + mean(s) with s ≥ 0, s ≥ 1 − y·Xθ, and the box, as A(θ, s) + slack = b.
    P = sp.block_diag([2 * l2 * sp.eye(p), sp.csc_matrix((n, n))], format="csc")
    q = np.concatenate([np.zeros(p), np.full(n, 1 / n)])
    eye_n, eye_p = sp.eye(n, format="csc"), sp.eye(p, format="csc")
    A = sp.bmat(
        [
            [sp.csc_matrix(-y[:, None] * X), -eye_n],
            [None, -eye_n],
            [eye_p, sp.csc_matrix((p, n))],
            [-eye_p, None],
        ],
        format="csc",
    )
    b = np.concatenate([-np.ones(n), np.zeros(n), np.full(2 * p, theta_max)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = TOLERANCE / 10
    settings.tol_feas = TOLERANCE / 10
    # Where the data can be told apart f is small, and its gap is to be small beside it: costs are scaled then.
    found: list[np.ndarray] = []
    scale, lower = 1.0, -np.inf
    for power in (1.0, 0.5, 0.0):
        cones = [clarabel.NonnegativeConeT(b.size)]
        solution = clarabel.DefaultSolver(scale * P, scale * q, A, b, cones, settings).solve()
        lower = max(lower, _hinge_bound(X, y, np.array(solution.z[:n]) / scale, l2, theta_max))
        theta = np.clip(np.array(solution.x[:p]), -theta_max, theta_max)
        value = _hinge_fitness(X, y, theta, l2)
        if value - lower <= 10 * TOLERANCE * value:
            return theta
        found.append(theta)
        scale = value**-power
    for near in NEAR:
        for start in found:
            theta, weights = _active_hinge(X * y[:, None], start, near, l2, theta_max)
            lower = max(lower, _hinge_bound(X, y, weights, l2, theta_max))
            value = _hinge_fitness(X, y, theta, l2)
            if value - lower <= 10 * TOLERANCE * value:
                return theta
    raise SimulationError(
        f"the hinge fitness was not minimised to 1e-9 of it: a gap of {value - lower:.1e} is left"
    )


def _hinge_fitness(X: np.ndarray, y: np.ndarray, theta: np.ndarray, l2: float) -> float:
    """Mean hinge loss, and ridge penalty, of a model."""
    return float(np.maximum(0.0, 1.0 - y * (X @ theta)).mean() + l2 * theta @ theta)


def _hinge_bound(X: np.ndarray, y: np.ndarray, weights: np.ndarray, l2: float, theta_max: float) -> float:
    """Lower bound on the hinge fitness over the box: its Lagrangian dual at any weights, brought into [0, 1/n].

    max(0, m) ≥ nw·m for each w in [0, 1/n], so that f(θ) ≥ Σw + l2·‖θ‖² − θᵀXᵀ(wy), whose minimum is known. This
    bound holds whatever the solver did.
    """
    weights = np.clip(weights, 0.0, 1.0 / len(y))
    pull = X.T @ (weights * y)
    lowest = np.clip(pull / (2 * l2), -theta_max, theta_max)
    return float(weights.sum() + l2 * lowest @ lowest - pull @ lowest)


def _active_hinge(
    Z: np.ndarray, theta: np.ndarray, near: tuple[float, float], l2: float, theta_max: float
) -> tuple[np.ndarray, np.ndarray]:
    """Model and weights that satisfy the conditions of optimality, if what is near a kink or a side is on it.

    A small f may consist of what solvers leave there: a record's loss of 1e-16 counts beside an f of 1e-8.

    Parameters
    ----------
    Z : ndarray, shape (n, p)
        Records, each times its label.
    theta : ndarray, shape (p,)
        Near the minimiser.
    near : tuple of two floats
        A pair of `NEAR`.
    l2, theta_max
        See `Loss.minimise`.

    Returns
    -------
    theta : ndarray, shape (p,)
    weights : ndarray, shape (n,)
        For `_hinge_bound`.
    """
    free = np.abs(theta) < theta_max * (1 - near[1])
    theta = np.where(free, theta, np.copysign(theta_max, theta))
    margins = 1.0 - Z @ theta
    on = np.abs(margins) <= near[0]
    weights = np.where(margins > near[0], 1 / len(Z), 0.0)
    # θ = (Σ over records above the margin + Σ over those on it) of weight times record / (2·l2), where it is free.
    theta[free] = Z[:, free].T @ weights / (2 * l2)
    for _ in range(2):
        short = 1 + 4 * np.finfo(float).eps - Z[on] @ theta
        theta[free] += np.linalg.lstsq(Z[np.ix_(on, free)], short)[0]
    rest = 2 * l2 * theta[free] - Z[:, free].T @ weights
    weights[on] = np.linalg.lstsq(Z[np.ix_(on, free)].T, rest)[0]
    return np.clip(theta, -theta_max, theta_max), weights
