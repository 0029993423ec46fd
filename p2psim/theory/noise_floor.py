"""The stationary effect of privacy noise on the asynchronous star, exact for quadratic losses; and fits of power laws.

Along one eigenvector that all owners' Hessians share, let x be the deviation of θ_L that noise causes and
y_i that of θ_i. When owner i answers, with m = (x + y_i)/2,

    x ← a·m,   y_i ← b_i·m − lr_i·u_i·w_i,   a = 1 − c_L·ρ/T²,   b_i = 1 − ρ/(2T²) − h_i,

where h_i = r_i·lr_i·λ_i and w_i is Laplace noise of scale s_i (variance 2s_i²); r_i is the factor on owner i's
gradient, and u_i the part of it that the learner applies, and so to the noise as well (both 1 without reweighting).
Second moments therefore obey a linear recursion; its fixed point is the noise floor. With c_L = 1/2, ρ/T² neglected,
equal owners and no reweighting it is the closed form of `noise_floor`. Neither projection nor clipping is modelled: a
floor that fills Θ (`box_filling`) is only a sign that ψ saturates, not a forecast of it.

`fit_power_law` finds the slope of a power law by log-log regression, with a confidence interval.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float = NDArray[np.float64]

#: Standard deviation of a uniform distribution over [−1, 1]: noise that wide fills the box.
FILLS = 1 / np.sqrt(3.0)


def horizon_scales(sensitivity: float, horizon: int, records: ArrayLike, epsilon: ArrayLike) -> Float:
    """Laplace scales s_i = 2ΞT/(n_iε_i) that spread each owner's ε_i over T answers.

    Parameters
    ----------
    sensitivity : float
        Ξ, a bound on the L1 norm of one record's gradient.
    horizon : int
        T.
    records, epsilon : array_like, shape (N,)
        n_i (times ``scale_records``, if any) and ε_i; an infinite ε_i gives 0.
    """
    n, eps = np.broadcast_arrays(np.asarray(records, dtype=float), np.asarray(epsilon, dtype=float))
    return np.asarray(2 * sensitivity * horizon / (n * eps))


def noise_floor(eigenvalues: ArrayLike, step: float, scale: float, owners: int) -> float:
    """Limit of E[f(θ_L)] − f* for equal owners with common Hessian eigenvalues, from noise alone.

    Σ_j lr·s²(1 + N·h_j)/(2(N+1) + (2N+1)h_j − N·h_j²) with h_j = lr·λ_j. Exact up to terms of order ρ/T².

    Parameters
    ----------
    eigenvalues : array_like, shape (p,)
        λ_j ≥ 0 of the owners' mean losses.
    step : float
        lr of `p2psim.theory.star.step_sizes`.
    scale : float
        Laplace scale s of a coordinate of an answer.
    owners : int
        N.

    Returns
    -------
    float
        Infinite when some h_j is at or above `p2psim.theory.star.stability_threshold`.
    """
    h = step * np.asarray(eigenvalues, dtype=float)
    below = 2 * (owners + 1) + (2 * owners + 1) * h - owners * h**2
    if np.any(below <= 0):
        return float("inf")
    return float(np.sum(step * scale**2 * (1 + owners * h) / below))


@dataclass(frozen=True)
class Moments:
    """Stationary second moments of the noise, one row an eigenvector; infinite where unstable.

    Attributes
    ----------
    learner : ndarray, shape (p,)
        E[x²].
    owners : ndarray, shape (p, N)
        E[y_i²].
    cross : ndarray, shape (p, N)
        E[x·y_i].
    """

    learner: Float
    owners: Float
    cross: Float


def stationary_moments(
    h: ArrayLike,
    noise_variance: ArrayLike,
    wake_shares: ArrayLike | None = None,
    learner_decay: float = 0.0,
    owner_decay: float = 0.0,
) -> Moments:
    """Solve the stationary second moments for owners that differ, eigenvector by eigenvector.

    Exact when all Hessians share their eigenvectors and owners answer independently of the past, owner i
    with probability γ_i. The moments E[y_i·y_j] follow from the cross moments, which leaves 2N + 1 unknowns.

    Parameters
    ----------
    h : array_like, shape (p, N)
        r_i·lr_i times the eigenvalue of H_i.
    noise_variance : array_like, shape (N,) or (p, N)
        Variance that an answer adds to θ_i along an eigenvector: 2·(lr_i·u_i·s_i)².
    wake_shares : array_like, shape (N,), optional
        γ_i > 0, summing to 1; equal by default.
    learner_decay, owner_decay : float
        c_L·ρ/T² and ρ/(2T²).

    Returns
    -------
    Moments
    """
    steep = np.atleast_2d(np.asarray(h, dtype=float))
    variance = np.broadcast_to(np.asarray(noise_variance, dtype=float), steep.shape)
    N = steep.shape[1]
    gamma = np.full(N, 1 / N) if wake_shares is None else np.asarray(wake_shares, dtype=float)
    scale = variance.max(axis=1, keepdims=True)
    scale[scale == 0] = 1.0
    parts = (1 - owner_decay - steep, variance / scale, gamma)
    learner, owners, cross = _relative(1 - learner_decay, *(part.tobytes() for part in parts))
    return Moments(scale[:, 0] * learner, scale * owners, scale * cross)


@lru_cache(maxsize=16)
def _relative(a: float, decays: bytes, variances: bytes, shares: bytes) -> tuple[Float, Float, Float]:
    """The moments for variances of at most one: the same in all cells of a sweep over budgets."""
    gamma = np.frombuffer(shares)
    rows = (np.frombuffer(each).reshape(-1, gamma.size) for each in (decays, variances))
    solved = [_solved(a, b, variance, gamma) for b, variance in zip(*rows, strict=True)]
    learner, owners, cross = (np.array(part) for part in zip(*solved, strict=True))
    return learner, owners, cross


def _solved(a: float, b: Float, variance: Float, gamma: Float) -> tuple[float, Float, Float]:
    """E x², E y_i² and E x·y_i along one eigenvector; unknowns are (A, B_1..B_N, C_1..C_N), in this order."""
    N = len(b)
    # D_ij = E y_i·y_j = P_ij·C_j + P_ji·C_i off the diagonal.
    weight = gamma * b
    P = weight[:, None] / (2 * (gamma[:, None] + gamma[None, :]) - weight[:, None] - weight[None, :])
    np.fill_diagonal(P, 0.0)
    A, B, C = 0, slice(1, N + 1), slice(N + 1, 2 * N + 1)
    diagonal = np.arange(N)
    system = np.zeros((2 * N + 1, 2 * N + 1))
    # A = a²·Σ γ_i·M_i with M_i = (A + B_i + 2C_i)/4.
    system[A, A], system[A, B], system[A, C] = a**2 / 4, a**2 * gamma / 4, a**2 * gamma / 2
    # B_i = b_i²·M_i + variance_i.
    system[B, A] = b**2 / 4
    system[1 + diagonal, 1 + diagonal] = b**2 / 4
    system[1 + diagonal, N + 1 + diagonal] = b**2 / 2
    # C_i = a·(γ_i·b_i·M_i + Σ_{j≠i} γ_j·(C_i + D_ij)/2).
    system[C, A] = a * weight / 4
    system[N + 1 + diagonal, 1 + diagonal] = a * weight / 4
    system[C, C] = a * gamma[None, :] * P / 2
    system[N + 1 + diagonal, N + 1 + diagonal] += a * (weight / 2 + (1 - gamma) / 2 + P.T @ gamma / 2)
    right = np.concatenate([[0.0], variance, np.zeros(N)])
    try:
        z = np.linalg.solve(np.eye(2 * N + 1) - system, right)
    except np.linalg.LinAlgError:
        z = np.full(2 * N + 1, -1.0)
    # A linear recursion of covariances is stable exactly when its fixed point is a covariance.
    covariance = np.empty((N + 1, N + 1))
    covariance[0, 0], covariance[0, 1:], covariance[1:, 0] = z[A], z[C], z[C]
    covariance[1:, 1:] = P * z[C][None, :] + P.T * z[C][:, None]
    covariance[1 + diagonal, 1 + diagonal] = z[B]
    if np.linalg.eigvalsh(covariance)[0] < -1e-9 * np.abs(covariance).max():
        return float("inf"), np.full(N, np.inf), np.full(N, np.inf)
    return float(z[A]), z[B], z[C]


def noise_floor_unequal(
    eigenvalues: ArrayLike,
    steps: ArrayLike,
    scales: ArrayLike,
    records: ArrayLike,
    l2: float = 0.0,
    wake_shares: ArrayLike | None = None,
    learner_decay: float = 0.0,
    owner_decay: float = 0.0,
    reweights: ArrayLike = 1.0,
    learner_weights: ArrayLike | None = None,
) -> float:
    """Limit of the noise's part of E[f(θ_L)] − f* for owners that differ but share eigenvectors.

    ½·Σ_j (σ + Σ_i (n_i/n)·λ_ij)·E[x_j²]. Different owners also leave a floor of order ρ/(T²σ) without any
    noise, which is not included.

    Parameters
    ----------
    eigenvalues : array_like, shape (N, p)
        λ_ij of each owner's mean loss, in the common basis.
    steps, scales, records : array_like, shape (N,)
        lr_i, Laplace scales s_i and n_i.
    l2 : float
        Weight of the regulariser.
    wake_shares, learner_decay, owner_decay
        As in `stationary_moments`.
    reweights : array_like, shape (N,)
        r_i, on the gradient (F, Remark 4): it multiplies h_i.
    learner_weights : array_like, shape (N,), optional
        u_i; all of r_i when left out. An owner that weighs its answer multiplies its sensitivity: that is in s_i.
    """
    lam = np.asarray(eigenvalues, dtype=float)
    lr, s, n, r = (np.asarray(v, dtype=float) for v in (steps, scales, records, reweights))
    u = r if learner_weights is None else np.asarray(learner_weights, dtype=float)
    h, variance = ((lr * r)[:, None] * lam).T, 2 * (lr * u * s) ** 2
    moments = stationary_moments(h, variance, wake_shares, learner_decay, owner_decay)
    return float(0.5 * np.sum((2 * l2 + n @ lam / n.sum()) * moments.learner))


def box_filling(spread: ArrayLike, theta_max: float, eigenvectors: ArrayLike | None = None) -> float:
    """How far noise fills Θ = {|θ_j| ≤ theta_max}: widest coordinate's standard deviation over theta_max.

    A uniform distribution over the box has `FILLS` = .577; at that or above, projection rules and ψ
    saturates. Far below (under about .2) it hardly ever acts. The deviation is the stationary one, which
    needs a `p2psim.theory.star.contraction` of about 4 to be reached: with less it is an upper estimate.

    Parameters
    ----------
    spread : array_like, shape (p,)
        Standard deviation of θ_L along each eigenvector (`learner_spread`).
    theta_max : float
        Half-width of the box.
    eigenvectors : array_like, shape (p, p), optional
        Eigenvectors as columns; without them the widest eigenvector is taken for a coordinate.
    """
    s = np.asarray(spread, dtype=float)
    if eigenvectors is None or not np.all(np.isfinite(s)):
        return float(s.max() / theta_max)
    return float(np.sqrt(np.max(np.asarray(eigenvectors, dtype=float) ** 2 @ s**2)) / theta_max)


@dataclass(frozen=True)
class PowerLaw:
    """y = factor·x^slope.

    Attributes
    ----------
    slope, factor : float
        Exponent, and the value at x = 1.
    low, high : float
        Confidence interval of the slope; infinite for two points, which leave no residual.
    level : float
        Confidence of the interval.
    """

    slope: float
    factor: float
    low: float
    high: float
    level: float

    def __call__(self, x: ArrayLike) -> NDArray[np.float64]:
        """Value at x > 0."""
        return np.asarray(self.factor * np.asarray(x, dtype=float) ** self.slope)


def fit_power_law(x: ArrayLike, y: ArrayLike, level: float = 0.95) -> PowerLaw:
    """Ordinary least squares of log y on log x, with Student's interval for the slope.

    The interval takes the points as independent, with equal relative errors: it measures how well a power
    law fits the points, not the spread of the replicas behind each.

    Parameters
    ----------
    x, y : array_like, shape (m,)
        Positive and finite; at least two different x.
    level : float
        Confidence in (0, 1).

    Raises
    ------
    ValueError
        If a value is not positive and finite, or fewer than two x differ.
    """
    from scipy import stats

    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if not (np.all(np.isfinite(a) & (a > 0)) and np.all(np.isfinite(b) & (b > 0))):
        raise ValueError(f"a power law needs positive, finite values, got x = {a}, y = {b}")
    if len(np.unique(a)) < 2:
        raise ValueError(f"a slope needs at least two different x, got {a}")
    fit = stats.linregress(np.log(a), np.log(b))
    half = float(stats.t.ppf(0.5 + level / 2, len(a) - 2) * fit.stderr) if len(a) > 2 else float("inf")
    slope = float(fit.slope)
    return PowerLaw(slope, float(np.exp(fit.intercept)), slope - half, slope + half, level)
