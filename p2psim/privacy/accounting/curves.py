"""The hockey-stick curve δ(ε) of a Gaussian release, for ε ≥ 0, to relative precision."""

from __future__ import annotations

import numpy as np

#: Below this μ the difference of two Mills ratios is integrated, since it would cancel.
_NARROW = 0.5
#: Nodes of the quadrature, exact to 1e-16 on intervals of that length.
_NODES = 10


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
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        inside = a[narrow, None] + mu[narrow, None] * (nodes + 1) / 2
        result[narrow] = height[narrow] * mu[narrow] / 2 * (_less_than_one(inside) @ weights)
        right = ~narrow & (a >= 0)
        result[right] = height[right] * (_mills(a[right]) - _mills(b[right]))
        left = ~narrow & (a < 0)
        result[left] = ndtr(-a[left]) - np.exp(epsilon[left] + log_ndtr(-b[left]))
    return np.where(told, np.clip(result, 0.0, 1.0), 0.0)


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
