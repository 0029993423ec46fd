"""Exact minimisers over the box Θ = {‖θ‖_∞ ≤ theta_max}.

All minimise f(θ) = l2·‖θ‖² + (1/n) Σ ℓ(θᵀx, y), with l2 > 0, so that the minimiser is unique.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from p2psim.errors import SimulationError
from p2psim.learning.losses import Hinge, Logistic

#: Accuracy that minimisers reach: of the gradient's free part (squared, logistic), of the duality gap (hinge).
TOLERANCE = 1e-10


def minimise_squared(gram: np.ndarray, moment: np.ndarray, l2: float, theta_max: float) -> np.ndarray:
    """Minimise l2·‖θ‖² + θᵀGθ − 2cᵀθ over the box.

    Parameters
    ----------
    gram : ndarray, shape (p, p)
        G = XᵀX/n.
    moment : ndarray, shape (p,)
        c = Xᵀy/n.
    l2 : float
        Positive.
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
    )


def minimise_logistic(X: np.ndarray, y: np.ndarray, l2: float, theta_max: float) -> np.ndarray:
    """Minimise the logistic fitness over the box.

    Parameters
    ----------
    X : ndarray, shape (n, p)
    y : ndarray, shape (n,)
        ±1.
    l2, theta_max : float
        Positive.

    Returns
    -------
    ndarray, shape (p,)

    Raises
    ------
    SimulationError
        If the free part of the gradient does not fall below `TOLERANCE`.
    """
    n, p = X.shape

    def fitness(theta: np.ndarray) -> float:
        return float(Logistic.values(X @ theta, y).mean() + l2 * theta @ theta)

    def derivatives(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scores = X @ theta
        hessian = (X * Logistic.second_slopes(scores, y)[:, None]).T @ X / n + 2 * l2 * np.eye(p)
        return X.T @ Logistic.slopes(scores, y) / n + 2 * l2 * theta, hessian

    return _projected_newton(np.zeros(p), theta_max, fitness, derivatives)


def _projected_newton(
    theta: np.ndarray,
    theta_max: float,
    fitness: Callable[[np.ndarray], float],
    derivatives: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
) -> np.ndarray:
    """Minimise a smooth, strongly convex function over the box by projected Newton steps.

    Bertsekas, "Projected Newton methods for optimization problems with simple constraints" (1982): coordinates that
    are at, or nearly at, a side that the gradient pushes them against move along the gradient, the others by Newton.
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
        step = gradient / np.diag(hessian)
        if free.any():
            step[free] = np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
        length = 1.0
        while True:
            candidate = np.clip(theta - length * step, -theta_max, theta_max)
            new = fitness(candidate)
            # Near the minimum the decrease drowns in rounding; a full step is right there.
            if new <= value + 1e-14 * abs(value) or length < 1e-10:
                break
            length /= 2
        theta, value = candidate, new
    raise SimulationError("the fitness was not minimised to 1e-10 in 500 projected Newton steps")


def minimise_hinge(X: np.ndarray, y: np.ndarray, l2: float, theta_max: float) -> np.ndarray:
    """Minimise the hinge fitness over the box as a quadratic program, by an interior point method.

    Parameters and result as in `minimise_logistic`.

    Raises
    ------
    SimulationError
        If the duality gap does not fall below `TOLERANCE`.
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
    solution = clarabel.DefaultSolver(P, q, A, b, [clarabel.NonnegativeConeT(b.size)], settings).solve()
    theta = np.clip(np.array(solution.x[:p]), -theta_max, theta_max)
    value = float(Hinge.values(X @ theta, y).mean() + l2 * theta @ theta)
    gap = value - solution.obj_val_dual
    if not gap <= 10 * TOLERANCE * max(1.0, abs(value)):
        raise SimulationError(
            f"the hinge fitness was not minimised to 1e-10: {solution.status}, gap {gap:.1e}"
        )
    return theta
