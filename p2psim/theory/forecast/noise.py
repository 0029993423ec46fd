"""Variance of the noise of the k-th answer, before it is known whose answers came before."""

from __future__ import annotations

import numpy as np


def geometric_variances(first: np.ndarray, ratio: float, frequencies: np.ndarray, steps: int) -> np.ndarray:
    """Expected variance of owner i's noise in the k-th answer under budgets ε(1 − r)rʲ, shape (T, N).

    The j-th answer has variance first·r⁻²ʲ, and j ~ Bin(k − 1, γ_i) answers came before: E r⁻²ʲ =
    (1 − γ_i + γ_i·r⁻²)^(k−1).

    Parameters
    ----------
    first : ndarray, shape (N,)
        Variance of each owner's first answer.
    ratio : float
        r in (0, 1).
    frequencies : ndarray, shape (N,)
        γ_i.
    steps : int
        T.

    Raises
    ------
    FloatingPointError
        If one is too large for a number.
    """
    growth = 1 - frequencies + frequencies / ratio**2
    with np.errstate(over="raise"):
        found: np.ndarray = first * growth ** np.arange(steps)[:, None]
    return found


def average_variances(by_answer: np.ndarray, frequencies: np.ndarray, steps: int) -> np.ndarray:
    """Expected variance of owner i's noise in the k-th answer, shape (T, N).

    Parameters
    ----------
    by_answer : ndarray, shape (N, J)
        Variance of each owner's j-th answer, j = 0 … J − 1; later ones count as the last: what comes after a cap is
        neglected.
    frequencies : ndarray, shape (N,)
        γ_i.
    steps : int
        T.
    """
    if (by_answer == by_answer[:, :1]).all():
        return np.broadcast_to(by_answer[:, 0], (steps, len(by_answer)))
    gamma = frequencies[:, None]
    chance = np.zeros_like(by_answer)
    chance[:, 0] = 1.0
    found = np.empty((steps, len(by_answer)))
    for k in range(steps):
        found[k] = np.einsum("ij,ij->i", chance, by_answer)
        moved = chance * gamma
        chance -= moved
        chance[:, 1:] += moved[:, :-1]
        chance[:, -1] += moved[:, -1]
    return found
