"""Output and objective perturbation: a minimiser that is released once (Chaudhuri, Monteleoni, Sarwate 2011).

Both are ε-DP for J(θ) = (1/n) Σ ℓ(θᵀx, y) + (Λ/2)‖θ‖² under replace-one, if ℓ is convex and differentiable with
|∂ℓ/∂z| ≤ 1, and ‖x‖₂ ≤ 1 with the intercept counted. Their noise b has the density ∝ exp(−β‖b‖₂): its direction is
uniform, its norm Gamma(p, 1/β).

**Output**: argmin J + b with β = nΛε/2, since replacing a record moves the minimiser by at most 2/(nΛ) (their
Algorithm 1 and Theorem 6). A release is dominated by Laplace noise of the loss ε in one dimension.

Proof. Turn the axes so that the minimiser moves by d along the first one, and condition on r, the norm of the other
coordinates of b, whose law does not depend on the data. The first then has a density f ∝ exp(−β√(z² + r²)), whose
logarithm has slopes within ±β. Let F be its distribution function and I(u) = f(F⁻¹(u)). I is 0 at both ends and its
slopes are within ±β, so I(u) ≤ β·min(u, 1 − u), which is the I of Laplace noise. The distance from one level u to
another is ∫ du/I(u), at least that of Laplace noise; so a move by d changes levels by no more, and no test gains more.

**Objective**: argmin J(θ) + bᵀθ/n + (Δ/2)‖θ‖². If ℓ is also twice differentiable with 0 ≤ ∂²ℓ/∂z² ≤ c, and models are
linear, β = ε′/2 and Δ = 0 with ε′ = ε − ln(1 + 2c/(nΛ) + c²/(nΛ)²); if that is not positive, Δ = c/(n(e^{ε/4} − 1)) − Λ
and ε′ = ε/2 (their Algorithm 2 and Theorem 9). Of a release no more is known than that it is ε-DP.
"""

import numpy as np

from p2psim.core.philox import unit_gaussian, unit_uniform

#: What ‖∇J‖₂ may be at a minimiser that output perturbation takes for exact; its noise covers the difference.
INEXACT = 1e-8


def radial_noise(key: np.ndarray, agents: np.ndarray, dimension: int) -> np.ndarray:
    """Noise of density ∝ exp(−‖b‖₂) for each agent, shape (agents, dimension).

    Parameters
    ----------
    key : ndarray of uint64, shape (2,)
        Of a random stream that nothing else draws from.
    agents : ndarray of int
    dimension : int
        p.
    """
    direction, levels = np.empty((2, agents.size, dimension))
    unit_gaussian(key, agents, np.zeros(agents.size, np.int64), direction)
    unit_uniform(key, agents, np.ones(agents.size, np.int64), levels)
    # A sum of p exponentials is Gamma(p, 1).
    norms = -np.log1p(-levels).sum(axis=1)
    return direction * (norms / np.sqrt((direction**2).sum(axis=1)))[:, None]


def output_rate(records: np.ndarray, strong: np.ndarray, epsilon: float) -> np.ndarray:
    """β of output perturbation, shape (n,).

    A minimiser at which ‖∇J‖₂ ≤ `INEXACT` is at most that over Λ away from the exact one, on both data sets.

    Parameters
    ----------
    records, strong : ndarray, shape (n,)
        n and Λ of each agent, both positive.
    epsilon : float
    """
    return np.asarray(records * strong * epsilon / (2.0 * (1.0 + records * INEXACT)))


def objective_noise(
    records: np.ndarray, strong: np.ndarray, curvature: float, epsilon: float
) -> tuple[np.ndarray, np.ndarray]:
    """β and Δ of objective perturbation, shape (n,) each.

    Parameters
    ----------
    records, strong : ndarray, shape (n,)
        n and Λ of each agent, both positive.
    curvature : float
        c.
    epsilon : float
    """
    left = epsilon - 2.0 * np.log1p(curvature / (records * strong))  # the logarithm is of (1 + c/(nΛ))²
    enough = left > 0
    fall = np.exp(-epsilon / 4)
    extra = curvature * fall / (records * -np.expm1(-epsilon / 4)) - strong
    return np.where(enough, left, epsilon / 2) / 2, np.where(enough, 0.0, extra)
