"""Second moment of the noise that answers bring into a step, of which all bounds are made."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

Form = Literal["printed", "corrected"]


def inverse_square_sum(epsilon: ArrayLike) -> float:
    """Σ1/ε_i² over the owners (what the papers call "the sum of the privacy budgets squared")."""
    return float(np.sum(1 / np.asarray(epsilon, dtype=float) ** 2))


def noise_moment(
    sensitivity: float,
    horizon: int,
    records: float,
    epsilon: ArrayLike,
    dimension: int,
    form: Form = "corrected",
) -> float:
    """E‖Σ_l (n_l/n)·w_l‖² where all owners answer: v = 8pΞ²T²/n²·Σ1/ε_l².

    w_l has p independent coordinates, Laplace of scale 2ΞT/(n_l·ε_l) and so of variance 8Ξ²T²/(n_l·ε_l)². F and W print
    E‖w‖² without p: false for every p > 1.

    Parameters
    ----------
    sensitivity : float
        Ξ ≥ 0, bound on the L1 norm of a record's gradient.
    horizon : int
        T, answers over which an owner spends its budget.
    records : float
        n > 0, of all owners together.
    epsilon : array_like, shape (N,)
        ε_l > 0; ∞ is no noise.
    dimension : int
        p.
    form : {"printed", "corrected"}
    """
    p = 1 if form == "printed" else dimension
    return 8 * p * (sensitivity * horizon / records) ** 2 * inverse_square_sum(epsilon)


def box_diameter(theta_max: float, dimension: int) -> float:
    """2·θ_max·√p: no two models of the box {‖θ‖_∞ ≤ θ_max} are further apart."""
    return 2 * theta_max * float(np.sqrt(dimension))


def box_gradient(sensitivity: float, l2: float, theta_max: float, dimension: int) -> float:
    """2·l2·θ_max·√p + Ξ, which ‖∇f‖₂ does not exceed on the box: an L2 norm is at most the L1 norm that Ξ bounds."""
    return l2 * box_diameter(theta_max, dimension) + sensitivity
