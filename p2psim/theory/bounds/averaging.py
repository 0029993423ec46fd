"""Bounds of W Algorithm 2, projected subgradient steps c₁/√k and a running average: W Theorem 3.

W is Wu, Farokhi, Smith, Kaafar, "The Value of Collaboration in Convex Machine Learning with Differential Privacy". f is
convex, not more, and gradients are bounded on the box. With e = 1/√T the average is θ̄ = Σ_t w_t·θ[t] over t = 1 … K,
K = T corrected and T − 1 as printed, where w_K = (e + 1)/(K + e) and w_t/w_{t+1} = t/(t + e): weights that never fall.

Proof of the bound. With r_t = ‖θ[t] − θ*‖ and G² ≥ E‖∇f + noise‖², a step s_t gives 2·s_t·a_t ≤ E r_t² − E r_{t+1}² +
s_t²·G² (the projection moves nothing away from θ*). Multiplied by w_t/(2s_t), which never falls either, and added up,

    E f(θ̄) − f* ≤ Σ w_t·a_t ≤ D²·w_K/(2s_K) + (G²/2)·Σ w_t·s_t,    D ≥ r_t.

The rule of averaging is that of Shamir and Zhang, "Stochastic gradient descent for non-smooth optimization" (2013).
"""

import numpy as np
from numpy.typing import NDArray

from p2psim.theory.bounds.noise import Form

Float = NDArray[np.float64]


def _parts(horizon: int, average: Form) -> tuple[float, float]:
    """w_K·√K and Σ w_t/√t: what multiplies D²/(2c₁) and c₁·G²/2."""
    K = horizon if average == "corrected" else horizon - 1
    if K < 1:
        raise ValueError(f"an average needs a model to average, got a horizon of {horizon}")
    e, t = 1 / np.sqrt(horizon), np.arange(1, K + 1, dtype=float)
    # w_t relative to w_K: the product of s/(s + e) over s = t … K − 1.
    ratios = np.concatenate([np.cumsum(np.log1p(e / t[:-1])[::-1])[::-1], [0.0]])
    weights = (e + 1) / (K + e) * np.exp(-ratios)
    return float(weights[-1] * np.sqrt(K)), float(weights @ (1 / np.sqrt(t)))


def averaging_bound(
    distance: float, gradient: float, moment: float, c1: float, horizon: int, average: Form = "corrected"
) -> float:
    """Bound on E f(θ̄[T]) − f* for steps c₁/√k.

    As T grows it tends to (D²/(2c₁) + c₁·(G_f² + v))/√T.

    Parameters
    ----------
    distance : float
        D: no model comes further from θ*; `p2psim.theory.bounds.noise.box_diameter` will do.
    gradient : float
        G_f, bound on ‖∇f‖ on the box, such as `p2psim.theory.bounds.noise.box_gradient`.
    moment : float
        v, from `p2psim.theory.bounds.noise.noise_moment`: G² = G_f² + v, since noise has mean 0 given the model.
    c1 : float
        c₁ > 0.
    horizon : int
        T.
    average : {"printed", "corrected"}
        Which average W Algorithm 2 keeps.

    Raises
    ------
    ValueError
        If c₁ is not positive, or there is nothing to average.
    """
    if not c1 > 0:
        raise ValueError(f"c1 must be positive, got {c1}")
    far, rough = _parts(horizon, average)
    return distance**2 * far / (2 * c1) + c1 * (gradient**2 + moment) * rough / 2


def best_averaging_bound(
    distance: float,
    gradient: float,
    moment: float,
    horizon: int,
    average: Form = "corrected",
    form: Form = "corrected",
) -> float:
    """`averaging_bound` at the best c₁: D·√(G²·w_K·√K·Σ w_t/√t), about √2·D·G/√T.

    Corrected: G² = G_f² + v. Printed (11) has only what noise gives, so that it is (constant/n)·√Σ1/ε²: false for large
    ε, since it is 0 at ε = ∞, where the model has still only T − 1 rounds to find θ*. The printed constant was not at
    hand; here it is the one of this proof without G_f and p, and the claim is false whatever it is.

    Parameters
    ----------
    distance, gradient, moment, horizon, average
        As in `averaging_bound`; for the printed form give the printed moment.
    form : {"printed", "corrected"}

    Raises
    ------
    ValueError
        If there is nothing to average.
    """
    far, rough = _parts(horizon, average)
    square = moment if form == "printed" else gradient**2 + moment
    return float(distance * np.sqrt(square * far * rough))


def best_c1(
    distance: float, gradient: float, moment: float, horizon: int, average: Form = "corrected"
) -> float:
    """c₁ at which `averaging_bound` is least, D·√(w_K·√K/(G²·Σ w_t/√t)); parameters as there.

    Raises
    ------
    ValueError
        If there is nothing to average, or neither gradient nor noise.
    """
    far, rough = _parts(horizon, average)
    square = gradient**2 + moment
    if not square > 0:
        raise ValueError("without gradient and noise every c1 is as good")
    return float(distance * np.sqrt(far / (square * rough)))
