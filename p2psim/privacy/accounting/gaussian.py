"""The exact account of Gaussian releases: their composition is one Gaussian release (Dong, Roth, Su 2022)."""

from __future__ import annotations

import numpy as np

from p2psim.privacy.accounting.accountant import Accountant
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import GAUSSIAN, GaussianNoise

#: Halvings of a bracket: more than a double has digits.
_HALVINGS = 200


def gaussian_epsilon(mu: np.ndarray, delta: float) -> np.ndarray:
    """ε at δ of Gaussian releases with loss μ, exact to rounding and rounded up; same shape as ``mu``.

    Parameters
    ----------
    mu : ndarray
        Not negative, finite.
    delta : float
        In (0, 1).
    """
    mu = np.asarray(mu, dtype=float)
    # δ(ε) ≤ P(N(μ²/2, μ²) > ε) ≤ exp(−(ε − μ²/2)²/(2μ²)).
    low, high = np.zeros(mu.shape), mu**2 / 2 + mu * np.sqrt(2 * np.log(1 / delta))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = GAUSSIAN.delta(mu, middle) > delta
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(GAUSSIAN.delta(mu, np.zeros(mu.shape)) <= delta, 0.0, high)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest loss μ of a Gaussian release that is (ε, δ)-DP: the analytic calibration of Balle, Wang 2018.

    σ = Δ₂/μ. Never above the exact value.

    Parameters
    ----------
    epsilon : float
        Not negative, finite.
    delta : float
        In (0, 1).

    Raises
    ------
    ValueError
        If they are out of range.
    """
    if not (0 <= epsilon < np.inf and 0 < delta < 1):
        raise ValueError(f"ε must be finite and not negative, and δ in (0, 1); got {epsilon} and {delta}")
    low, high = 0.0, 1.0
    while GAUSSIAN.delta(np.array(high), np.array(epsilon)) <= delta:
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if GAUSSIAN.delta(np.array(middle), np.array(epsilon)) <= delta:
            low = middle
        else:
            high = middle
    return low


def _mu(charges: Charges) -> np.ndarray:
    return np.sqrt(charges.sums(charges.loss**2))


ACCOUNTANT = Accountant(
    "gaussian",
    "exact, for Gaussian releases alone: squares of losses add up",
    lambda noise: isinstance(noise, GaussianNoise),
    True,
    lambda charges, delta: gaussian_epsilon(_mu(charges), delta),
    lambda charges, epsilon: GAUSSIAN.delta(_mu(charges), np.full(charges.agents, epsilon)),
)
