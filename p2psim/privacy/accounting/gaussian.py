"""The exact account of Gaussian releases: their composition is one Gaussian release (Dong, Roth, Su 2022)."""

from __future__ import annotations

import numpy as np

from p2psim.privacy.accounting.accountant import Accountant
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.grids import upper_crossing
from p2psim.privacy.accounting.noises import Noise, gaussian_delta, is_gaussian

#: Where μ²/2 is not a number any more, ε is infinite.
_LARGEST = 1e150


def gaussian_epsilon(mu: np.ndarray, delta: float) -> np.ndarray:
    """ε at δ of Gaussian releases with loss μ, exact to rounding and rounded up; same shape as ``mu``.

    Parameters
    ----------
    mu : ndarray
        Not negative.
    delta : float
        In (0, 1).
    """
    mu = np.asarray(mu, dtype=float)
    inside = np.minimum(mu.reshape(-1), _LARGEST)
    # δ(ε) ≤ P(N(μ²/2, μ²) > ε) ≤ exp(−(ε − μ²/2)²/(2μ²)).
    high = inside * (inside / 2 + np.sqrt(-2 * np.log(delta)))
    epsilon = upper_crossing(lambda e: _excess(inside, e, delta), np.zeros(inside.size), high)
    return np.where(mu > _LARGEST, np.inf, epsilon.reshape(mu.shape))


def _excess(mu: np.ndarray, epsilon: np.ndarray, delta: float) -> np.ndarray:
    """Logarithm of how many times δ the curve is at ε: positive where it is above."""
    with np.errstate(divide="ignore"):
        return np.log(gaussian_delta(mu, epsilon)) - np.log(delta)


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
        If they are out of range, or so small that no loss is within them.
    """
    if not (0 <= epsilon < np.inf and 0 < delta < 1):
        raise ValueError(f"ε must be finite and not negative, and δ in (0, 1); got {epsilon} and {delta}")

    def over(inverse: np.ndarray) -> np.ndarray:
        """As a function of 1/μ the curve falls."""
        return _excess(1 / inverse, np.full(1, epsilon), delta)

    low = high = np.ones(1)
    while over(low)[0] <= 0:
        low = low / 2
    while over(high)[0] > 0:
        if high[0] > _LARGEST**2:
            raise ValueError(f"no loss is within ε = {epsilon}, δ = {delta}")
        high = high * 2
    # Rounding of the curve, of logarithms as large as δ's, and of the quotient must not bring it above.
    margin = 1e-14 - 1e-15 * np.log(delta)
    return float((1 - margin) / upper_crossing(over, low, high)[0])


def _mu(charges: Charges) -> np.ndarray:
    """μ of each agent, √Σμ², shape (N,); scaled by the largest, so that no square overflows or vanishes."""
    largest = np.zeros(charges.agents)
    np.maximum.at(largest, charges.owners, charges.loss)
    scale = np.where(largest > 0, largest, 1.0)
    return scale * np.sqrt(charges.sums((charges.loss / scale[charges.owners]) ** 2))


class ExactGaussian(Accountant):
    """One Gaussian release that all of an agent's Gaussian releases are together."""

    name = "gaussian"
    meaning = "exact, for Gaussian releases alone: squares of losses add up"

    def supports(self, noise: Noise) -> bool:
        """Gaussian noise alone."""
        return is_gaussian(noise)

    def epsilon_bound(self, charges: Charges, delta: float) -> np.ndarray:
        """ε of the one release, rounded up."""
        return gaussian_epsilon(_mu(charges), delta)

    def delta_bound(self, charges: Charges, epsilon: float) -> np.ndarray:
        """δ of the one release."""
        return gaussian_delta(_mu(charges), np.full(charges.agents, epsilon))
