"""Bounds on the convergence of personalised models on a graph, and on what noise adds: B Proposition 1 and Theorem 2.

B is Bellet, Guerraoui, Taziki, Tommasi, "Personalized and Private Peer-to-Peer Machine Learning" (AISTATS 2018). A step
wakes one of n agents, uniformly; it minimises a bound of Q_L in its own block, with block Lipschitz constant
L_i = D_ii(1 + μ·c_i·L_i^loc), and Q_L is σ-strongly convex. Noise η_i(t) of scale s_i(t) enters as μ·c_i(∇L_i + η).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from p2psim.theory.star import Form

Float = NDArray[np.float64]


def contraction_rate(strong_convexity: float, lipschitz: ArrayLike, agents: int | None = None) -> float:
    """C = 1 − σ/(n·L_max), by which a step contracts Q_L − Q_L* on average (B, Proposition 1).

    Parameters
    ----------
    strong_convexity : float
        σ > 0, such as μ·min_i D_ii·c_i·σ_i^loc.
    lipschitz : array_like, shape (n,)
        L_i of each agent; or some of them, their largest among them, and the number of agents.
    agents : int, optional
        n.

    Raises
    ------
    ValueError
        If σ is not positive, or larger than L_max, which no such constants can be.
    """
    L = np.asarray(lipschitz, dtype=float)
    if not 0 < strong_convexity <= L.max():
        raise ValueError(f"needs 0 < σ ≤ L_max, got {strong_convexity} and {L.max()}")
    return float(1 - strong_convexity / ((L.size if agents is None else agents) * L.max()))


def convergence_bound(gap: float, rate: float, steps: ArrayLike) -> Float:
    """C^T·(Q(0) − Q*), at least E[Q(T) − Q*] without noise or delay (B, Proposition 1), for each number of steps T."""
    return np.asarray(gap * rate ** np.asarray(steps, dtype=float))


def utility_bound(
    gap: float,
    rate: float,
    lipschitz: ArrayLike,
    moments: ArrayLike,
    dimension: int,
    form: Form = "corrected",
) -> float:
    """Bound on E[Q(T) − Q*] under Laplace noise (B, Theorem 2).

    Corrected: C^T(Q(0) − Q*) + p/(n·L_min) Σ_t C^{T−1−t} Σ_i (μ·D_ii·c_i·s_i(t))², t = 0 … T − 1.

    The printed form has C^t in place of C^{T−1−t}, which contracts late noise instead of early noise, and no p: E‖η‖²
    is 2p·s², not 2s². It is false: one step from the minimiser, with quadratic L_i, gives exactly the corrected bound,
    p times the printed one; and where scales grow with t it is too small even for p = 1.

    Parameters
    ----------
    gap : float
        Q(0) − Q*.
    rate : float
        C.
    lipschitz : array_like, shape (n,)
        L_i.
    moments : array_like, shape (T,)
        Σ_i (μ·D_ii·c_i·s_i(t))² at each step, s_i(t) the Laplace scale of agent i if it wakes there.
    dimension : int
        p.
    form : {"printed", "corrected"}
    """
    L, noise = np.asarray(lipschitz, dtype=float), np.asarray(moments, dtype=float)
    T = noise.size
    steps = np.arange(T)
    weights = rate ** (steps if form == "printed" else T - 1 - steps)
    factor = 1 if form == "printed" else dimension
    return float(gap * rate**T + factor / (L.size * L.min()) * (weights @ noise))
