"""Composition theorems as functions of sums over releases, as printed: not capped by one another.

S₁ = Σε, S₂ = Σε², B = Σε·tanh(ε/2) (which is Σε(e^ε − 1)/(e^ε + 1)) and D = Σε(e^ε − 1), over all releases of an agent;
ρ = Σρ of zCDP. All take arrays that broadcast, and 0 < δ < 1.
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
