"""Bounds of W Algorithm 1, θ ← θ − ρ_k·(∇f(θ) + noise): W Theorem 2.

W is Wu, Farokhi, Smith, Kaafar, "The Value of Collaboration in Convex Machine Learning with Differential Privacy". f is
L-strongly convex and its gradient λ-Lipschitz, over all models: there is no box. a_k = E f(θ[k]) − f(θ*).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from p2psim.theory.bounds.noise import Form

Float = NDArray[np.float64]


def curvature_range(hessian: ArrayLike) -> tuple[float, float]:
    """L and λ of f(θ*) + (θ − θ*)ᵀH(θ − θ*): twice the least and the largest eigenvalue of H, shape (p, p)."""
    values = np.linalg.eigvalsh(np.asarray(hessian, dtype=float))
    return 2 * float(values[0]), 2 * float(values[-1])


def _check(strong_convexity: float, lipschitz: float) -> None:
    if not 0 < strong_convexity <= lipschitz:
        raise ValueError(f"needs 0 < L ≤ λ, got {strong_convexity} and {lipschitz}")


def descent_bound(
    gap: float,
    strong_convexity: float,
    lipschitz: float,
    steps: ArrayLike,
    moment: float,
    dimension: int,
    form: Form = "corrected",
) -> Float:
    """Bound on a_1 … a_T by the recursion behind W (9).

    Corrected, for any ρ_k ≤ 1/λ: a_{k+1} ≤ (1 − L·ρ_k)·a_k + (λ/2)·ρ_k²·v. It follows from the descent lemma
    f(θ − ρ_k·d) ≤ f(θ) − ρ_k·∇fᵀd + (λ/2)·ρ_k²·‖d‖² with d = ∇f + noise and from ‖∇f‖² ≥ 2L·(f − f*).

    Printed: the same without λ/2 and without p in v, so a_{k+1} ≤ (1 − L·ρ_k)·a_k + ρ_k²·v/p. False where λp > 2: one
    round from θ* with H a multiple of the identity gives exactly the corrected bound, λp/2 times the printed one.

    Parameters
    ----------
    gap : float
        a_1 ≥ 0.
    strong_convexity, lipschitz : float
        L and λ, from `curvature_range` for squared loss.
    steps : array_like, shape (T − 1,)
        ρ_k in (0, 1/λ].
    moment : float
        v, from `p2psim.theory.bounds.noise.noise_moment` (corrected).
    dimension : int
        p.
    form : {"printed", "corrected"}

    Returns
    -------
    ndarray, shape (T,)

    Raises
    ------
    ValueError
        If not 0 < L ≤ λ, or a step is not in (0, 1/λ].
    """
    _check(strong_convexity, lipschitz)
    rho = np.asarray(steps, dtype=float)
    if not ((rho > 0) & (rho * lipschitz <= 1 + 1e-12)).all():
        raise ValueError(f"steps must be above 0 and at most 1/λ = {1 / lipschitz:g}, got {rho}")
    fed = moment / dimension if form == "printed" else lipschitz / 2 * moment
    bound = np.empty(len(rho) + 1)
    bound[0] = gap
    for k, step in enumerate(rho):
        bound[k + 1] = (1 - strong_convexity * step) * bound[k] + fed * step**2
    return bound


def printed_descent_limit(
    sensitivity: float, rho: float, strong_convexity: float, records: float, inverse_squares: float
) -> float:
    """What W (9) promises of ρ_k = ρ/(T²k) for large T: 8Ξ²ρ/(L·n²)·Σ1/ε², of any start.

    The constant is the one that the printed descent inequality gives, ρ_1·v/(p·L); the printed page was not at hand, so
    that it may differ from (9) by a factor that does not depend on data. Whatever it is, there is no such bound: these
    steps add up to at most ρ·(1 + ln T)/T², so the model stays where it starts as T grows, and a_T tends to a_1, while
    (9) is as small as n or ε makes it. With λ/2 and p put right it would be 4λpΞ²ρ/(L·n²)·Σ1/ε², and as false. Use
    `descent_bound`.
    """
    return 8 * sensitivity**2 * rho / (strong_convexity * records**2) * inverse_squares


def decreasing_steps(strong_convexity: float, lipschitz: float, horizon: int) -> Float:
    """ρ_k = 2/(L·(k + 2λ/L)), k = 1 … T − 1: never above 1/λ, and such that the bound falls as 1/k.

    Raises
    ------
    ValueError
        If not 0 < L ≤ λ.
    """
    _check(strong_convexity, lipschitz)
    k = np.arange(1, horizon, dtype=float)
    steps: Float = 2 / (strong_convexity * k + 2 * lipschitz)
    return steps


def decreasing_descent_bound(
    gap: float, strong_convexity: float, lipschitz: float, horizon: int, moment: float
) -> float:
    """Corrected W (9) in closed form: a_T ≤ max{2λv/L², (2λ/L + 1)·a_1}/(2λ/L + T) for `decreasing_steps`.

    By induction on `descent_bound` (as in Bottou, Curtis, Nocedal 2018, Theorem 4.7). v grows as T², so that the noise
    part is O(λpΞ²T·Σ1/ε²/(L²n²)) and T has an optimum, `best_horizon`.

    Parameters
    ----------
    gap, strong_convexity, lipschitz, moment
        As in `descent_bound`.
    horizon : int
        T.

    Raises
    ------
    ValueError
        If not 0 < L ≤ λ.
    """
    _check(strong_convexity, lipschitz)
    ratio = 2 * lipschitz / strong_convexity
    return max(2 * lipschitz * moment / strong_convexity**2, (ratio + 1) * gap) / (ratio + horizon)


def best_horizon(gap: float, strong_convexity: float, lipschitz: float, moment_of_one: float) -> float:
    """T at which `decreasing_descent_bound` is least, v being `moment_of_one`·T²: where its two parts are equal.

    Parameters
    ----------
    gap, strong_convexity, lipschitz
        As in `descent_bound`.
    moment_of_one : float
        v for T = 1; where it is 0 the optimum is ∞.

    Raises
    ------
    ValueError
        If not 0 < L ≤ λ.
    """
    _check(strong_convexity, lipschitz)
    if moment_of_one == 0:
        return float("inf")
    ratio = 2 * lipschitz / strong_convexity
    return float(np.sqrt((ratio + 1) * gap * strong_convexity**2 / (2 * lipschitz * moment_of_one)))
