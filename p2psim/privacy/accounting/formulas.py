"""Formulas of accountants: composition theorems as functions of sums over releases, and δ(ε) of a Gaussian release.

The theorems are as printed, and not capped by one another.

S₁ = Σε, S₂ = Σε², B = Σε·tanh(ε/2) (which is Σε(e^ε − 1)/(e^ε + 1)) and D = Σε(e^ε − 1), over all releases of an agent;
ρ = Σρ of zCDP. All take arrays that broadcast, and 0 < δ < 1.

`gaussian_delta` is the hockey-stick curve δ(ε) of a Gaussian release, for ε ≥ 0, to relative precision.
"""

from __future__ import annotations

import numpy as np


def advanced(S2: np.ndarray, D: np.ndarray, delta: float) -> np.ndarray:
    """Advanced composition, √(2·S₂·ln(1/δ)) + D (Dwork, Rothblum, Vadhan 2010, Theorem III.3, for unequal ε)."""
    return np.sqrt(-2 * S2 * np.log(delta)) + D


def kov_logarithm(S2: np.ndarray, B: np.ndarray, delta: float) -> np.ndarray:
    """Middle term of Kairouz, Oh, Viswanath 2017, Theorem 3.5: B + √(2·S₂·ln(e + √S₂/δ)).

    B's main text prints S₂/δ under the root in place of √S₂/δ, which under-reports.
    """
    with np.errstate(divide="ignore"):  # no releases
        return B + np.sqrt(2 * S2 * np.logaddexp(1.0, np.log(S2) / 2 - np.log(delta)))


def kov_plain(S2: np.ndarray, B: np.ndarray, delta: float) -> np.ndarray:
    """Last term of Kairouz, Oh, Viswanath 2017, Theorem 3.5: B + √(2·S₂·ln(1/δ))."""
    return B + np.sqrt(-2 * S2 * np.log(delta))


def kov(S1: np.ndarray, S2: np.ndarray, B: np.ndarray, delta: float) -> np.ndarray:
    """Kairouz, Oh, Viswanath 2017, Theorem 3.5: the least of S₁ and the two terms."""
    return np.minimum(S1, np.minimum(kov_logarithm(S2, B, delta), kov_plain(S2, B, delta)))


def zcdp(rho: np.ndarray, delta: float) -> np.ndarray:
    """ρ + 2√(ρ·ln(1/δ)) (Bun, Steinke 2016, Proposition 1.3)."""
    return rho + 2 * np.sqrt(-rho * np.log(delta))


def rdp(divergence: np.ndarray, order: np.ndarray, delta: float) -> np.ndarray:
    """ε from a Rényi divergence of order α (Canonne, Kamath, Steinke 2020, Proposition 12).

    τ + (ln(1/δ) + (α − 1)·ln(1 − 1/α) − ln α)/(α − 1).
    """
    a = np.asarray(order, dtype=float)
    return divergence + ((a - 1) * np.log1p(-1 / a) - np.log(a) - np.log(delta)) / (a - 1)


def rdp_delta(divergence: np.ndarray, order: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
    """Natural logarithm of δ at ε from a Rényi divergence: the same inequality, solved for δ."""
    a = np.asarray(order, dtype=float)
    return (a - 1) * (divergence - epsilon + np.log1p(-1 / a)) - np.log(a)


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
