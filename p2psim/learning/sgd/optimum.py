"""The minimum of f, for models of which it is known that a stationary point is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from p2psim.core.errors import SimulationError

if TYPE_CHECKING:
    from p2psim.learning.sgd.problem import SharedProblem

#: Largest norm of ∇f at what is taken for the minimum, relative to that at the start plus one.
TOLERANCE = 1e-8


def minimiser(problem: SharedProblem) -> np.ndarray:
    """A θ with ∇f(θ) = 0 to within `TOLERANCE`, shape (p,), of a smooth convex f.

    By BFGS with limited memory (Liu and Nocedal 1989), then by Newton steps with conjugate gradients.

    Raises
    ------
    SimulationError
        If it is not found.
    """
    from scipy.optimize import minimize

    theta = np.zeros(problem.dimension)
    slope = problem.slope(theta)
    unit = 1 + float(np.linalg.norm(slope))
    for method, options in (
        ("L-BFGS-B", {"maxiter": 20_000, "maxfun": 40_000, "ftol": 0.0, "gtol": 1e-10, "maxcor": 50}),
        ("Newton-CG", {"maxiter": 200, "xtol": 1e-14}),
    ):
        theta = minimize(problem.value, theta, jac=problem.slope, method=method, options=options).x
        if np.linalg.norm(problem.slope(theta)) <= TOLERANCE * unit:
            return np.asarray(theta)
    found = float(np.linalg.norm(problem.slope(theta)))
    raise SimulationError(
        f"the minimum of the objective was not found: its slope there is {found:.2g}; objective_gap needs it, "
        "objective does not (a larger learning.regularizer.l2 makes it easier)"
    )
