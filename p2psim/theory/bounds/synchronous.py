"""Bounds of W Algorithms 1 and 2, the synchronous rounds: W Theorems 2 and 3.

W is Wu, Farokhi, Smith, Kaafar, "The Value of Collaboration in Convex Machine Learning with Differential Privacy".

Algorithm 1 (`descent_bound` and what follows it) makes θ ← θ − ρ_k·(∇f(θ) + noise). f is L-strongly convex and its
gradient λ-Lipschitz, over all models: there is no box. a_k = E f(θ[k]) − f(θ*).

Algorithm 2 (`averaging_bound` and what follows it) makes projected subgradient steps c₁/√k and keeps a running average
(Shamir and Zhang, "Stochastic gradient descent for non-smooth optimization", 2013). f is convex, not more, and
gradients are bounded on the box. With e = 1/√T the average is θ̄ = Σ_t w_t·θ[t] over t = 1 … K, K = T corrected and
T − 1 as printed, where w_K = (e + 1)/(K + e) and w_t/w_{t+1} = t/(t + e): weights that never fall.

Proof of the bound. With r_t = ‖θ[t] − θ*‖ and G² ≥ E‖∇f + noise‖², a step s_t gives 2·s_t·a_t ≤ E r_t² − E r_{t+1}² +
s_t²·G² (the projection moves nothing away from θ*). Multiplied by w_t/(2s_t), which never falls either, and added up,

    E f(θ̄) − f* ≤ Σ w_t·a_t ≤ D²·w_K/(2s_K) + (G²/2)·Σ w_t·s_t,    D ≥ r_t.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from p2psim.theory.star import Form

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
        D: no model comes further from θ*; `p2psim.theory.bounds.shape.box_diameter` will do.
    gradient : float
        G_f, bound on ‖∇f‖ on the box, such as 2·l2·θ_max·√p + Ξ.
    moment : float
        v, from `p2psim.theory.bounds.shape.noise_moment`: G² = G_f² + v, since noise has mean 0 given the model.
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

    Corrected: G² = G_f² + v. Printed (11) has only what noise gives, so that it is (c₂Ξ/n)·√Σ1/ε²: false for large ε,
    since it is 0 at ε = ∞, where the model has still only T − 1 rounds to find θ*. W says of c₂ only that it is large
    enough and may depend on T; here it is that of this proof without G_f and p, and the claim is false whatever it is.

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
        v, from `p2psim.theory.bounds.shape.noise_moment` (corrected).
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
    """What W (9) promises of min_k E f(θ[k]) − f*, for ρ_k = ρ/(T²k) and large T: 8Ξ²ρ/(L·n²)·Σ1/ε², of any start.

    There is no such bound, whatever its constant: these steps add up to at most ρ·(1 + ln T)/T², so the model stays
    where it starts as T grows, and all of a_1 … a_T tend to a_1, while (9) is as small as n or ε makes it. With λ/2 and
    p put right it would be 4λpΞ²ρ/(L·n²)·Σ1/ε², and as false. Use `descent_bound`.
    """
    return 8 * sensitivity**2 * rho / (strong_convexity * records**2) * inverse_squares


def distance_bound(gap: float, strong_convexity: float, form: Form = "corrected") -> float:
    """Bound on ‖θ − θ*‖² from f(θ) − f*: 2/L times it, as f lies above (L/2)·‖θ − θ*‖² from its minimum.

    Printed, in W (10) and (12): 4/L times the right-hand sides of (9) and (11), which is true and twice as large.

    Parameters
    ----------
    gap : float
        f(θ) − f*, or a bound on it.
    strong_convexity : float
        L.
    form : {"printed", "corrected"}
    """
    return (4 if form == "printed" else 2) * gap / strong_convexity


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
