"""How far one record can move the minimiser of an agent's own loss: for a start that is released with noise."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike


def minimiser_sensitivity(
    bound: ArrayLike,
    records: ArrayLike,
    ridge: ArrayLike,
    dimension: int,
    norm: Literal["l1", "l2"] = "l1",
    of: Literal["l1", "l2"] = "l1",
) -> np.ndarray:
    """Sensitivity of the minimiser of L_i, for noise on it (output perturbation), under replace-one.

    L_i(θ) = (1/m) Σ ℓ(θ; x, y) + λ‖θ‖² with convex ℓ is σ-strongly convex, σ = 2λ. With ‖∇ℓ‖₁ ≤ G₁ and ‖∇ℓ‖₂ ≤ G₂
    the L1 sensitivity is at most

        (G₁ + √p·G₂) / (m·σ),

    and the L2 sensitivity at most 2G₂/(m·σ).

    Proof. Let a and b minimise L_i on data that differ in one record, d = a − b, and u = ∇L(a) − ∇L(b) with L the
    first one's loss. ∇L(a) = 0, and the other's gradient at b is 0, so u is 1/m times a difference of two records'
    gradients at b: ‖u‖₁ ≤ 2G₁/m and ‖u‖₂ ≤ 2G₂/m. Strong convexity says σ‖d‖₂² ≤ dᵀu, which is
    ‖d − u/(2σ)‖₂ ≤ ‖u‖₂/(2σ). Hence ‖d‖₂ ≤ ‖u‖₂/σ, the 2G₂/(mσ) of Chaudhuri, Monteleoni, Sarwate (2011), and
    ‖d‖₁ ≤ ‖u‖₁/(2σ) + √p·‖u‖₂/(2σ). A common step from ‖d‖₂ alone, √p·2G₂/(mσ), is up to twice as much.

    A bound on one norm gives the other: G₂ ≤ G₁ and G₁ ≤ √p·G₂. Clipping gives neither: it bounds what a step uses, not
    the gradients whose zero the minimiser is. With λ = 1/m the sensitivity does not shrink with m.

    Parameters
    ----------
    bound : float or array_like, shape (n,)
        Largest norm of a record's gradient, anywhere that the minimiser can be for any data; true without clipping,
        as from public bounds on x for hinge and logistic losses.
    records : array_like of int, shape (n,)
        m_i; 0 where there are none, so that nothing can move.
    ridge : array_like, shape (n,)
        λ_i, positive.
    dimension : int
        p, of the minimiser.
    norm : {"l1", "l2"}
        Which norm is bounded.
    of : {"l1", "l2"}
        In which norm the minimiser's move is told: l1 for Laplace noise, l2 for Gaussian.

    Returns
    -------
    ndarray, shape (n,)

    Raises
    ------
    ValueError
        If some λ is not positive: such a minimiser can move without bound.
    """
    G, m, strong = np.asarray(bound, dtype=float), np.asarray(records), 2 * np.asarray(ridge, dtype=float)
    if not (strong > 0).all():
        raise ValueError(f"the ridge must be positive, got {strong.min() / 2}")
    root = np.sqrt(dimension)
    in_l1 = (1 + root) * G if norm == "l1" else 2 * root * G
    both = in_l1 if of == "l1" else 2 * G
    return np.asarray(np.where(m > 0, both / (np.maximum(m, 1) * strong), 0.0))
