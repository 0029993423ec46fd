"""Formulas of the theory that only tests use, as references that share no code with what they check."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from p2psim.learning.star.algorithms import learner_weight
from p2psim.theory.bounds.shape import box_diameter
from p2psim.theory.forecasts.linear_star import LinearStar
from p2psim.theory.forecasts.star_path import Dual
from p2psim.theory.noise_floor import noise_floor
from p2psim.theory.star import Form

Float = NDArray[np.float64]

#: Exponent of C in the best allocation under a limit on Σ ε, and on Σ ε².
THIRD, QUARTER = 1 / 3, 1 / 4


def regularizer_weight(owners: int, form: Form) -> float:
    """The weight with which g enters what a form minimises as the step vanishes.

    The owner's step adds 1/2 to the learner's c_L: 1 when corrected, 3/2 − 1/N as printed.
    """
    return 0.5 + learner_weight(owners, form)


def stationary_mean(
    gram: np.ndarray,
    moment: np.ndarray,
    records: np.ndarray,
    l2: float,
    step: float,
    frequencies: np.ndarray,
    reweights: np.ndarray,
) -> np.ndarray:
    """Stationary mean of θ_L at a finite step α, exact, shape (p,).

    With K_i = l2·I + 2N(n_i/n)r_i·A_i and k_i = 2N(n_i/n)r_i·b_i an answer makes θ_i ← θ̄ − α(K_iθ̄ − k_i) and
    θ_L ← (1 − α·l2)θ̄, θ̄ = (θ_L + θ_i)/2. The mean of θ̄ when owner i answers is therefore

        θ̄_i = (I + αK_i)⁻¹(m_L + αk_i),    m_L = (1 − α·l2) Σ_i γ_i·θ̄_i,

    p linear equations for m_L. It differs from `weighted_optimum` by the order of α.

    Parameters
    ----------
    gram, moment, records, l2
        As in `weighted_optimum`.
    step : float
        α = ρ/(T²σ), of the corrected form.
    frequencies, reweights : ndarray, shape (N,)
        γ_i, adding up to one, and r_i.
    """
    N, p = moment.shape
    factors = 2 * N * (records / records.sum()) * reweights
    system, right = np.eye(p), np.zeros(p)
    for i in range(N):
        inverse = np.linalg.inv(np.eye(p) + step * (l2 * np.eye(p) + factors[i] * gram[i]))
        share = (1 - step * l2) * frequencies[i]
        system -= share * inverse
        right += share * step * factors[i] * inverse @ moment[i]
    return np.linalg.solve(system, right)


def covariances(star: LinearStar, variances: np.ndarray) -> np.ndarray:
    """Covariance of θ_L after k = 0 … T answers, shape (T + 1, p, p).

    It walks forwards, with the noise. With S = E zzᵀ by blocks, Z_i = (S_LL + S_Li + S_iL + S_ii)/4 and
    m̄_i = (m_L + m_i)/2, an answer of owner i makes, in expectation, S_LL into
    a²Z_i + a(m̄_i·e_Lᵀ + e_L·m̄_iᵀ) + e_L·e_Lᵀ, and likewise for the other blocks.

    Parameters
    ----------
    star : LinearStar
        Of one mode: modes that do not mix still vary together, since they share the order of the answers.
    variances : ndarray, shape (T, N)
        Variance of a coordinate of the noise of an answer, if the k-th answer is owner i's.

    Raises
    ------
    ValueError
        If there is more than one mode.
    """
    if len(star.start) > 1:
        raise ValueError("covariances between modes are wanted too: make the star with together=True")
    m, _, q = star.own_shift.shape
    N, a, e_L = len(star.classes), star.decay, star.learner_shift
    own, e = star.own[:, star.classes], star.own_shift[:, star.classes]
    gamma = star.chance[star.classes]
    g1, g2 = gamma[:, None], gamma[:, None, None]
    learner, owner = star.start, np.repeat(star.start[:, None], N, axis=1)
    both = np.einsum("mq,mr->mqr", learner, learner)
    cross = np.tile(both, (1, 1, N))
    square = np.tile(both, (1, N, N))
    diagonal, eye = np.arange(N), np.eye(q)
    pulls = np.ascontiguousarray(g2 * own / 2)
    stays = (0.5 - gamma)[:, None, None] * eye
    found = [both - both]

    def outer(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return x[..., :, None] * y[..., None, :]

    for variance in variances:
        rows = square.reshape(m, N, q, N * q)
        mine = np.swapaxes(cross.reshape(m, q, N, q), 1, 2)  # S_Li
        alone = square.reshape(m, N, q, N, q)[:, diagonal, :, diagonal].swapaxes(0, 1)  # S_ii
        Z = (both[:, None] + mine + np.swapaxes(mine, -1, -2) + alone) / 4
        middle = (learner[:, None] + owner) / 2
        moved = (own @ middle[..., None])[..., 0]
        MZ = own @ Z
        noise = (variance * star.noise_steps**2)[:, None, None] * eye
        new_alone = MZ @ np.swapaxes(own, -1, -2) + outer(moved, e) + outer(e, moved) + outer(e, e) + noise
        new_mine = (
            a * np.swapaxes(MZ, -1, -2)
            + a * outer(middle, e)
            + outer(np.broadcast_to(e_L[:, None], e.shape), moved + e)
        )
        # When another owner answers, z_L comes from it and z_i stays.
        others = a * cross / 2 + a * np.einsum("l,mlqr->mqr", gamma, rows) / 2
        others += e_L[..., None] * owner.reshape(m, 1, N * q)
        without = np.swapaxes(others.reshape(m, q, N, q), 1, 2) - g2 * (
            a * (mine + alone) / 2 + outer(np.broadcast_to(e_L[:, None], e.shape), owner)
        )
        half = pulls @ (cross[:, None] + rows) + stays @ rows
        half += (g1 * e)[..., None] * owner.reshape(m, 1, 1, N * q)
        half = half.reshape(m, N * q, N * q)
        square = half + np.swapaxes(half, 1, 2)
        square.reshape(m, N, q, N, q)[:, diagonal, :, diagonal] = (
            g2 * new_alone + (1 - g2) * alone
        ).swapaxes(0, 1)
        shifted = outer(middle, np.broadcast_to(e_L[:, None], e.shape))
        new_both = a**2 * Z + a * (shifted + np.swapaxes(shifted, -1, -2)) + outer(e_L, e_L)[:, None]
        both = np.einsum("i,miqr->mqr", gamma, new_both)
        cross = np.swapaxes(g2 * new_mine + without, 1, 2).reshape(m, q, N * q)
        learner = a * np.einsum("i,miq->mq", gamma, middle) + e_L
        owner = g1 * (moved + e) + (1 - g1) * owner
        found.append(both - outer(learner, learner))
    return np.array(found)[:, 0]


def noise_moments(degrees: ArrayLike, confidence: ArrayLike, mu: float, scales: ArrayLike) -> Float:
    """Σ_i (μ·D_ii·c_i·s_i(t))² at each step, for `utility_bound`.

    Parameters
    ----------
    degrees, confidence : array_like, shape (n,)
        D_ii and c_i.
    mu : float
        μ.
    scales : array_like, shape (T, n)
        s_i(t), the Laplace scale of agent i if it wakes at step t.

    Returns
    -------
    ndarray, shape (T,)
    """
    weight = mu * np.asarray(degrees, dtype=float) * np.asarray(confidence, dtype=float)
    moments: Float = ((weight * np.asarray(scales, dtype=float)) ** 2).sum(axis=-1)
    return moments


def step_shares(rate: float, steps: int, form: Form = "corrected", exponent: float = THIRD) -> Float:
    """Shares of a budget at steps 0 … T − 1 (B, Proposition 2), shape (T,), of sum 1.

    Corrected: ∝ C^{(T−1−t)e}, which makes `allocation_objective` least among all of the same Σ ε for e = 1/3, and of
    the same Σ ε² for e = 1/4. Printed: ∝ C^{te}, which does not.

    Parameters
    ----------
    rate : float
        C.
    steps : int
        T.
    form : {"printed", "corrected"}
    exponent : float
        e.
    """
    t = np.arange(steps)
    weights = np.power(rate, exponent * (t if form == "printed" else steps - 1 - t))
    shares: Float = weights / weights.sum()
    return shares


def allocation_objective(rate: float, epsilons: ArrayLike) -> float:
    """Σ_t C^{T−1−t}/ε(t)²: the noise that is left after T steps, apart from constants.

    Parameters
    ----------
    rate : float
        C.
    epsilons : array_like, shape (T,)
        ε(t) > 0.
    """
    epsilon = np.asarray(epsilons, dtype=float)
    return float(np.sum(rate ** np.arange(epsilon.size)[::-1] / epsilon**2))


def expected_steps(releases: ArrayLike, agents: int) -> Float:
    """Expected number of steps until an agent's k-th wake, itself included, of n agents with equal clocks: k·n."""
    steps: Float = np.asarray(releases, dtype=float) * agents
    return steps


def noise_floor_small_step(dimension: int, step: float, scale: float, owners: int) -> float:
    """p·lr·s²/(2(N+1)), to which `noise_floor` tends as h → 0 (within 25 % only for h(N−1) ≤ .25)."""
    return dimension * step * scale**2 / (2 * (owners + 1))


def noise_floor_small_step_unequal(
    dimension: int, rho: float, l2: float, records: ArrayLike, sensitivity: float, epsilon: ArrayLike
) -> float:
    """2pNρΞ²/((N+1)σn²)·Σ1/ε_i²: different owners, ε_i spread over T answers, small steps.

    It does not depend on T. Parameters are as in `p2psim.theory.star.step_sizes` and `horizon_scales`.
    """
    n, eps = np.broadcast_arrays(np.asarray(records, dtype=float), np.asarray(epsilon, dtype=float))
    N = len(n)
    return float(
        2 * dimension * N * rho * sensitivity**2 / ((N + 1) * 2 * l2 * n.sum() ** 2) * np.sum(1 / eps**2)
    )


def learner_spread(eigenvalues: ArrayLike, step: float, scale: float, owners: int) -> Float:
    """Stationary standard deviation of θ_L along each eigenvector, for equal owners.

    √(2·floor_j/λ_j) with floor_j the j-th term of `noise_floor`: infinite where h_j is unstable or λ_j is 0
    (there noise adds up for ever). The regulariser's decay counts if it is included in the eigenvalues.

    Parameters
    ----------
    eigenvalues, step, scale, owners
        As in `noise_floor`.

    Returns
    -------
    ndarray, shape (p,)
        In units of θ.
    """
    lam = np.atleast_1d(np.asarray(eigenvalues, dtype=float))
    if scale == 0:
        return np.zeros(len(lam))
    spread = [
        np.sqrt(2 * noise_floor([value], step, scale, owners) / value) if value > 0 else np.inf
        for value in lam
    ]
    return np.array(spread)


def largest_curvatures(hessians: ArrayLike) -> Float:
    """λ_max of each Hessian, for Hessians of shape (N, p, p)."""
    return np.linalg.eigvalsh(np.asarray(hessians, dtype=float))[:, -1]


def quadratic_limit(l2: float, gram: ArrayLike, moment: ArrayLike, owners: int, form: Form) -> Float:
    """Where a form tends to for squared loss as the step vanishes, inside the box.

    The minimiser of w·l2·‖θ‖² + θᵀAθ − 2bᵀθ with w from `regularizer_weight`.

    Parameters
    ----------
    l2 : float
        Weight of the regulariser.
    gram : array_like, shape (p, p)
        A = XᵀX/n over all records.
    moment : array_like, shape (p,)
        b = Xᵀy/n over all records.
    owners : int
        N.
    form : {"printed", "corrected"}
        The learner's step.

    Returns
    -------
    ndarray, shape (p,)
    """
    A = np.asarray(gram, dtype=float)
    return np.linalg.solve(
        regularizer_weight(owners, form) * l2 * np.eye(len(A)) + A, np.asarray(moment, dtype=float)
    )


def mixing(owners: int, form: Form = "corrected") -> float:
    """‖E[W] − 11ᵀ/(N + 1)‖₂, W the averaging of the learner with a uniform owner.

    1 − 1/(2N) for N ≥ 2 and 0 for one owner; F's proof has 1, with which nothing contracts.

    Raises
    ------
    ValueError
        If there is no owner.
    """
    if owners < 1:
        raise ValueError(f"a star has at least one owner, got {owners}")
    if form == "printed":
        return 1.0
    return 0.0 if owners == 1 else 1 - 1 / (2 * owners)


def decreasing_steps(strong_convexity: float, lipschitz: float, horizon: int) -> Float:
    """ρ_k = 2/(L·(k + 2λ/L)), k = 1 … T − 1: never above 1/λ, and such that the bound falls as 1/k.

    Raises
    ------
    ValueError
        If not 0 < L ≤ λ.
    """
    if not 0 < strong_convexity <= lipschitz:
        raise ValueError(f"needs 0 < L ≤ λ, got {strong_convexity} and {lipschitz}")
    k = np.arange(1, horizon, dtype=float)
    steps: Float = 2 / (strong_convexity * k + 2 * lipschitz)
    return steps


def box_gradient(sensitivity: float, l2: float, theta_max: float, dimension: int) -> float:
    """2·l2·θ_max·√p + Ξ, which ‖∇f‖₂ does not exceed on the box: an L2 norm is at most the L1 norm that Ξ bounds."""
    return l2 * box_diameter(theta_max, dimension) + sensitivity


def growth(star: LinearStar, most: int = 100_000, tolerance: float = 1e-10) -> float:
    """By how much an answer multiplies second moments in the long run: mean-square stable below 1.

    Largest eigenvalue of the map of Q, by power iteration; that map keeps positive matrices positive, so its largest
    eigenvalue is real and the iteration from H > 0 finds it.

    Parameters
    ----------
    star : LinearStar
    most : int
        Most iterations.
    tolerance : float
        Relative change at which the iteration ends.
    """
    dual = Dual(star)
    before = 0.0
    for _ in range(most):
        size = float(np.einsum("mqq->", dual.both) + np.sum(star.members * dual.traces()))
        for name in ("both", "cross", "own", "others"):
            setattr(dual, name, getattr(dual, name) / size)
        if abs(size - before) <= tolerance * size:
            break
        before = size
        dual.step()
        dual.learner, dual.owner = np.zeros_like(dual.learner), np.zeros_like(dual.owner)
    return size
