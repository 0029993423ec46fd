"""How far each agent's model is from its optimum at the end: the covariance of coordinate descent, walking forwards."""

from __future__ import annotations

import numpy as np

from p2psim.theory.forecast.descent import LinearDescent
from p2psim.theory.forecast.descent_path import coefficients, terms


def distances(model: LinearDescent, variances: np.ndarray, exact: bool = False) -> np.ndarray:
    """E‖Θ_i − Θ*_i‖² after T wakes, shape (n,).

    The second moment after T wakes is Σ_k P^k·N_{T−k} over the noise N_t that the wake t adds and, as the last, the
    start: block diagonal but for the start. With the powers of P in Chebyshev polynomials (see `descent_path`) all
    terms of one degree are added up first, and Clenshaw's rule needs one step a degree.

    Parameters
    ----------
    model : LinearDescent
    variances : ndarray, shape (T, n)
        Variance of a coordinate of the noise of a release, if the wake t is agent i's.
    exact : bool
        Step by step.
    """
    T, p = len(variances), model.start.shape[1]
    added = variances * model.chance * model.noise_step**2
    z = model.start.ravel()
    first = np.outer(z, z) + np.kron(model.start_covariance, np.eye(p))
    degree = terms(T)
    if not exact and model.spread_is_tame and 2 * degree < T:
        square = _clenshaw(model, added, first, degree)
    else:
        square = first
        for one in added:
            square = model.primal(square)
            square[np.diag_indices(model.size)] += np.repeat(one, p)
    mean = model.start
    for _ in range(T):
        mean = model.mean(mean)
    d = model.offset
    return np.asarray(model.traces(square) + (2 * mean * d + d**2).sum(axis=1))


def _clenshaw(model: LinearDescent, added: np.ndarray, first: np.ndarray, degree: int) -> np.ndarray:
    T, p = len(added), model.start.shape[1]
    # Noise of wake t is carried on T − 1 − t times; the start T times.
    noise, start, row = np.zeros((degree + 1, model.agents)), np.zeros(degree + 1), 0
    for block in coefficients(T, degree):
        inside = min(len(block), T - row)
        noise += block[:inside].T @ added[::-1][row : row + inside]
        row += len(block)
        start = block[-1]
    after = following = np.zeros_like(first)
    for j in range(degree, 0, -1):
        now = 4 * model.primal(following) - 2 * following - after if j < degree else np.zeros_like(first)
        now += start[j] * first
        now[np.diag_indices(model.size)] += np.repeat(noise[j], p)
        after, following = following, now
    made = 2 * model.primal(following) - following - after + start[0] * first
    made[np.diag_indices(model.size)] += np.repeat(noise[0], p)
    return np.asarray(made)
