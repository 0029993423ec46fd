"""Hockey-stick curves of normal laws, to relative precision however small they are.

All are written with the Mills ratio R = (1 − Φ)/φ, so that nothing cancels where the curve is far in a tail.
"""

from functools import cache

import numpy as np

#: Below this μ the difference of two Mills ratios is integrated, since it would cancel.
_NARROW = 0.5
#: Nodes of the quadrature, exact to 1e-16 on intervals of that length.
_NODES = 10


@cache
def _legendre() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the quadrature on [−1, 1], which NumPy finds anew in each call."""
    return np.polynomial.legendre.leggauss(_NODES)


def gaussian_delta(mu: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
    """Φ(−a) − e^ε·Φ(−b), a = ε/μ − μ/2, b = a + μ, of N(0, 1) and N(μ, 1) (Balle, Wang 2018, Theorem 8).

    Since e^ε·φ(b) = φ(a), it is φ(a)·(R(a) − R(b)), R the Mills ratio (1 − Φ)/φ; and as R' = xR − 1, for small μ it is
    φ(a)·∫ from a to b of 1 − xR(x).

    Parameters
    ----------
    mu : ndarray
        Not negative; 0 tells nothing.
    epsilon : ndarray
        Not negative; broadcasts.
    """
    from scipy.special import log_ndtr, ndtr

    mu, epsilon = np.broadcast_arrays(np.asarray(mu, dtype=float), np.asarray(epsilon, dtype=float))
    told = mu > 0
    with np.errstate(over="ignore", under="ignore"):
        ratio = epsilon / np.where(told, mu, 1.0)
        a, b = ratio - mu / 2, ratio + mu / 2
        height = np.exp(-(a**2) / 2) / np.sqrt(2 * np.pi)
        result = np.empty(mu.shape)
        narrow = mu < _NARROW
        nodes, weights = _legendre()
        inside = a[narrow, None] + mu[narrow, None] * (nodes + 1) / 2
        result[narrow] = height[narrow] * mu[narrow] / 2 * (_less_than_one(inside) @ weights)
        right = ~narrow & (a >= 0)
        result[right] = height[right] * (_mills(a[right]) - _mills(b[right]))
        left = ~narrow & (a < 0)
        result[left] = ndtr(-a[left]) - np.exp(epsilon[left] + log_ndtr(-b[left]))
    return np.where(told, np.clip(result, 0.0, 1.0), 0.0)


def poisson_gaussian_delta(mu: np.ndarray, rate: float, epsilon: np.ndarray) -> np.ndarray:
    """Curve of (1 − q)N(0, 1) + qN(r, 1) and (1 − q)N(0, 1) + qN(−r, 1), r = μ/2.

    The likelihood ratio rises, and is e^ε at t with rt = ε/2 + arsinh(((1 − q)/q)·e^{r²/2}·sinh(ε/2)). So the curve is
    q times Φ(r − t) − αΦ(−t) − βΦ(−r − t), α = ((1 − q)/q)(e^ε − 1), β = e^ε. At t the densities of these three normal
    laws agree, φ(t − r) = αφ(t) + βφ(t + r), and with the shares v = βφ(t + r)/φ(t − r) = e^{ε − 2rt} and 1 − v of the
    two the curve is q·φ(t − r)·((1 − v)(R(t − r) − R(t)) + v(R(t − r) − R(t + r))).

    Parameters
    ----------
    mu : ndarray
        Not negative; 0 tells nothing.
    rate : float
        q, in (0, 1).
    epsilon : ndarray
        Not negative; broadcasts.
    """
    from scipy.special import log_ndtr, ndtr

    mu, epsilon = np.broadcast_arrays(np.asarray(mu, dtype=float), np.asarray(epsilon, dtype=float))
    told = mu > 0
    r = np.where(told, mu, 1.0) / 2
    odds = np.log1p(-rate) - np.log(rate)
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        logarithm = odds + _log_sinh(epsilon / 2)
        # The arsinh of a large number is the logarithm of twice the number.
        inside = logarithm + np.minimum(r**2 / 2, 1e300)  # −∞ at ε = 0, however large r is
        is_large = inside > _LOG_LARGE
        rise = np.arcsinh(np.exp(np.where(is_large, -np.inf, inside)))
        t = np.where(is_large, (epsilon / 2 + np.log(2.0) + logarithm) / r + r / 2, (epsilon / 2 + rise) / r)
        share = np.where(is_large, 0.0, np.exp(-2 * rise))  # ε − 2rt is −2·arsinh(…)
        a = t - r
        height = np.exp(-(a**2) / 2) / np.sqrt(2 * np.pi)
        near = (1 - share) * _mills_fall(a, r) + share * _mills_fall(a, 2 * r)
        # Where a is far below 0, R is too large for a number, and nothing cancels in the difference itself.
        alpha, beta = odds + _log_expm1(epsilon), epsilon
        far = ndtr(-a) - np.exp(alpha + log_ndtr(-t)) - np.exp(beta + log_ndtr(-t - r))
        result = np.where(a < -1, far, height * near)
    return np.where(told, np.clip(rate * result, 0.0, 1.0), 0.0)


#: Above this e^x/2 is sinh(x) in double precision.
_LOG_LARGE = 20.0


def _log_sinh(x: np.ndarray) -> np.ndarray:
    """Logarithm of sinh(x), x ≥ 0."""
    return x + np.log(-np.expm1(-2 * x)) - np.log(2.0)


def _log_expm1(x: np.ndarray) -> np.ndarray:
    """Logarithm of e^x − 1, x ≥ 0."""
    return x + np.log(-np.expm1(-x))


def _mills_fall(a: np.ndarray, width: np.ndarray) -> np.ndarray:
    """R(a) − R(a + w), for a ≥ −1: the integral of 1 − xR(x), where the difference would cancel."""
    nodes, weights = _legendre()
    near = np.minimum(width, _NARROW)[..., None] * (nodes + 1) / 2
    narrow = width / 2 * (_less_than_one(np.maximum(a, -1.0)[..., None] + near) @ weights)
    return np.where(width <= _NARROW, narrow, _mills(a) - _mills(a + width))


def _mills(x: np.ndarray) -> np.ndarray:
    """(1 − Φ(x))/φ(x)."""
    from scipy.special import erfcx

    return np.sqrt(np.pi / 2) * erfcx(x / np.sqrt(2))


def _less_than_one(x: np.ndarray) -> np.ndarray:
    """1 − x·R(x); for large x the first terms of its series 1/x² − 3/x⁴ + 15/x⁶ − 105/x⁸."""
    far = x > 40
    y = 1 / np.where(far, x, 1.0) ** 2
    near = np.where(far, 0.0, x)
    return np.where(far, y * (1 - 3 * y * (1 - 5 * y * (1 - 7 * y))), 1 - near * _mills(near))
