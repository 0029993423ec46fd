"""Bounds of F Algorithm 1, the asynchronous star, in its corrected form: F Theorem 2 and its large-T forms (10), (11).

F is Farokhi, Wu, Smith, Kaafar, "The Cost of Privacy in Asynchronous Differentially-Private Machine Learning". Losses
are convex with gradients bounded by Ξ on the box; g = l2·‖θ‖², σ = 2·l2; owners answer equally often; α = ρ/(T²σ).

With R_k = E Σ ‖θ_j − θ*‖² over the learner and the N owners, and d_i = ‖θ_i − θ_L‖, one answer gives

    R_{k+1} ≤ R_k − (1/2N)Σ d_i² − 2α·(1/N)Σ E[∇F_i(θ̄_i)ᵀ(θ̄_i − θ*)] + α²B,    F_i = g + N(n_i/n)·ℓ̄_i,

since averaging two models loses d_i²/2 and the box moves nothing away from θ*. Convexity, σ of g at θ̄_i, and
F_i(θ̄_i) ≥ F_i(θ_L) − G_i·d_i/2 turn this into

    2α·a_k ≤ (1 − ασ/(2N))·R_k − R_{k+1} + α²·C,    C = B + (1/N)Σ G_i²/(2 − ασ),    a_k = E f(θ_L,k) − f*.

What F prints is (c₁/n)·√Σ1/ε² + (c₂/n²)·Σ1/ε² for large T, whatever the start. It is false for fixed ρ: (1 − ασ/(2N))^T
is about exp(−ρ/(2NT)), which tends to 1, so the start is never forgotten (the model moves by order Nρ/(Tσ) in all). The
proof's constants (`printed_square_distance`) omit p, and in (8) and (10) of F c₁ and c₂ stand in each other's place.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from p2psim.core.printing import exact
from p2psim.theory.bounds.shape import ShapeBound, box_diameter
from p2psim.theory.star import Form, base_step


@dataclass(frozen=True)
class AsynchronousBounds:
    """Bounds on the distance and on the fitness.

    Attributes
    ----------
    owners : int
        N.
    sigma : float
        σ.
    step : float
        α, with α·σ < 2.
    distance : float
        R_0.
    drive, noise : float
        Parts of C: of gradients, and of noise.
    """

    owners: int
    sigma: float
    step: float
    distance: float
    drive: float
    noise: float

    def mean_gap(self, answers: int) -> float:
        """Bound on the mean of a_0 … a_{K−1}, and so on E f of the mean of these θ_L: R_0/(2αK) + α·C/2."""
        return self.distance / (2 * self.step * answers) + self.step * (self.drive + self.noise) / 2

    def square_distance(self, answers: int) -> float:
        """Bound on R_K, q^K·R_0 + (1 − q^K)·2NαC/σ with q = 1 − ασ/(2N); at least E‖θ_L,K − θ*‖²."""
        kept = float(np.exp(answers * np.log1p(-self.step * self.sigma / (2 * self.owners))))
        floor = 2 * self.owners * self.step * (self.drive + self.noise) / self.sigma
        return kept * self.distance + (1 - kept) * floor

    def last_gap(self, answers: int, lipschitz: float, edge: float = 0.0) -> float:
        """Bound on a_K: edge·√R + (λ/2)·R, R from `square_distance`.

        Parameters
        ----------
        answers : int
            K.
        lipschitz : float
            λ, of ∇f.
        edge : float
            ‖∇f(θ*)‖: 0 where θ* is not on the edge of the box.
        """
        R = self.square_distance(answers)
        return edge * float(np.sqrt(R)) + lipschitz / 2 * R


def asynchronous_bounds(
    records: ArrayLike,
    scales: ArrayLike,
    sensitivity: float,
    l2: float,
    theta_max: float,
    dimension: int,
    rho: float,
    horizon: int,
    start_distance: float,
) -> AsynchronousBounds:
    """Constants of a star whose owners and learner start at one model.

    Parameters
    ----------
    records : array_like, shape (N,)
        n_i.
    scales : array_like, shape (N,)
        b_i, Laplace scale of a coordinate of owner i's answers; 2ΞT/(n_i·ε_i) where T answers share ε_i.
    sensitivity : float
        Ξ, which bounds the norm of a record's gradient on the box.
    l2, theta_max : float
        Of g and of the box.
    dimension : int
        p.
    rho, horizon
        As in `p2psim.theory.star.base_step`.
    start_distance : float
        ‖θ_0 − θ*‖.

    Raises
    ------
    ValueError
        If ασ is not below 2, or an input is not positive.
    """
    n, b = np.asarray(records, dtype=float), np.asarray(scales, dtype=float)
    N, alpha, sigma = len(n), base_step(rho, horizon, l2), 2 * l2
    if not alpha * sigma < 2:
        raise ValueError(f"the step times the convexity of g must be below 2, got {exact(alpha * sigma)}")
    weights = N * n / n.sum()
    of_g = l2 * box_diameter(theta_max, dimension)  # ‖∇g‖ on the box
    moved = (of_g / 2 + weights * sensitivity) ** 2 + (of_g / 2) ** 2
    apart = (of_g + weights * sensitivity) ** 2 / (2 - alpha * sigma)
    drive, noise = float(np.mean(moved + apart)), float(np.mean(weights**2 * 2 * dimension * b**2))
    return AsynchronousBounds(N, sigma, alpha, (N + 1) * start_distance**2, drive, noise)


def large_horizon_shape(
    owners: int,
    sensitivity: float,
    l2: float,
    dimension: int,
    rho: float,
    lipschitz: float,
    edge: float = 0.0,
    form: Form = "corrected",
) -> ShapeBound:
    """Constants of F (11) for the noise that is left once the start is forgotten, where T answers share each ε_i.

    Corrected: R of noise is at most 16N²pρΞ²/(σ²n²)·Σ1/ε², so c₁ = ‖∇f(θ*)‖·4N·√(pρ)·Ξ/σ and c₂ = 8λN²pρΞ²/σ². To be
    forgotten, the start asks for ρ well above 2NT; what gradients and the start add, `AsynchronousBounds.last_gap` has.

    Printed: the same without p, as E‖w‖² is printed. What F itself prints is `printed_square_distance`.

    Parameters
    ----------
    owners : int
        N.
    sensitivity, l2, dimension, rho
        As in `asynchronous_bounds`.
    lipschitz, edge
        As in `AsynchronousBounds.last_gap`.
    form : {"printed", "corrected"}
    """
    p = 1 if form == "printed" else dimension
    spread = 4 * owners * float(np.sqrt(p * rho)) * sensitivity / (2 * l2)
    return ShapeBound(edge * spread, lipschitz / 2 * spread**2)


def printed_square_distance(
    records: float,
    budgets: ArrayLike,
    sensitivity: float,
    regulariser: float,
    l2: float,
    rho: float,
    horizon: int,
    form: Form = "corrected",
) -> float:
    """What F Theorem 2 promises of E‖θ_L,T − θ*‖²: c₁αS + c₂α√S with the constants of its proof.

    α = ρ/T², S = 1 + N·Σ(1 + ν_i/C)², C = Ξ_g + Ξ, ν_i = 2√2·Ξ·T/(n·ε_i), c₁ = N·C²/σ² and
    c₂ = 2N²·C²·√(N + 1)/(σ²·(1 − √λ)). It is false for fixed ρ, whatever λ is: as T grows it tends to
    8N²ρΞ²/(σ²n²)·Σ1/ε², while the model stays where it starts.

    Parameters
    ----------
    records : float
        n, of all owners.
    budgets : array_like, shape (N,)
        ε_i.
    sensitivity, regulariser : float
        Ξ and Ξ_g, bounds on the L1 norms of a record's gradient and of ∇g on the box.
    l2, rho, horizon
        As in `asynchronous_bounds`.
    form : {"printed", "corrected"}
        Of λ only. Printed: ‖W_k − 11ᵀW_k/(N + 1)‖², which is 1 for N ≥ 2, so that the bound is infinite. Corrected:
        ‖E[WᵀW] − 11ᵀ/(N + 1)‖ = 1 − 1/(2N), and 0 for one owner.
    """
    epsilon = np.asarray(budgets, dtype=float)
    N, C, sigma, alpha = epsilon.size, regulariser + sensitivity, 2 * l2, rho / float(horizon) ** 2
    mixing = 0.0 if N == 1 else 1.0 if form == "printed" else 1 - 1 / (2 * N)
    S = 1 + N * float(np.square(1 + 2 * np.sqrt(2) * sensitivity * horizon / (records * epsilon * C)).sum())
    apart = np.inf if mixing == 1 else 2 * N**2 * float(np.sqrt(N + 1)) / (1 - float(np.sqrt(mixing)))
    return C**2 / sigma**2 * alpha * (N * S + apart * float(np.sqrt(S)))
