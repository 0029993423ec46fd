"""Gaussian releases, exactly: they compose to one with μ² = Σ μ² (Dong, Roth, Su 2022, Corollary 3.3)."""

from __future__ import annotations

import numpy as np

from p2psim.privacy.accounting.accountant import Accountant
from p2psim.privacy.accounting.charges import Lists
from p2psim.privacy.accounting.curves import gaussian_delta
from p2psim.privacy.accounting.noises import Noise, gaussian_of
from p2psim.privacy.accounting.searches import upper_crossing


def gaussian_epsilon(mu: np.ndarray, delta: float) -> np.ndarray:
    """ε at which the curve of N(0, 1) and N(μ, 1) is δ; never below it.

    Parameters
    ----------
    mu : ndarray, shape (N,)
        Not negative.
    delta : float
        In (0, 1).
    """
    mu = np.asarray(mu, dtype=float)
    some = (mu > 0) & np.isfinite(mu)
    result = np.where(mu > 0, np.inf, 0.0)
    inside = mu[some]
    # δ(ε) is below Φ(−a) ≤ e^(−a²/2), a = ε/μ − μ/2.
    with np.errstate(over="ignore"):
        high = inside * (inside / 2 + np.sqrt(-2 * np.log(delta)))

    def over(epsilon: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(gaussian_delta(inside, epsilon)) - np.log(delta)

    result[some] = upper_crossing(over, np.zeros(inside.size), high)
    return result


def gaussian_total(lists: Lists) -> np.ndarray:
    """μ of each list, shape (lists,); of its Gaussian releases alone."""
    mu = np.zeros(lists.loss.size)
    for number, mask in lists.masks():
        found = gaussian_of(lists.noises[number], lists.loss[mask])
        mu[mask] = 0.0 if found is None else found
    # Scaled by the largest, so that no square overflows or vanishes.
    largest = np.zeros(lists.size)
    np.maximum.at(largest, lists.owner, mu)
    scale = np.where(largest > 0, largest, 1.0)
    return scale * np.sqrt(lists.total((mu / scale[lists.owner]) ** 2))


def _supports(noise: Noise) -> bool:
    return gaussian_of(noise, np.ones(1)) is not None


def _epsilon(lists: Lists, delta: float) -> np.ndarray:
    return gaussian_epsilon(gaussian_total(lists), delta)


def _delta(lists: Lists, epsilon: float) -> np.ndarray:
    mu = gaussian_total(lists)
    result = np.zeros(lists.size)
    result[mu > 0] = gaussian_delta(mu[mu > 0], np.asarray(epsilon))
    return result


GAUSSIAN_ACCOUNTANT = Accountant("gaussian", True, _supports, _epsilon, _delta)
