"""An accountant: Gaussian differential privacy (Dong, Roth, Su 2022)."""

import numpy as np
from scipy.stats import norm

import p2psim
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import GaussianNoise, Noise


@p2psim.register
class GaussianDP(p2psim.Accountant):
    """Releases with losses μ_t are together √Σμ_t²-GDP, exactly (Corollary 3.3), for Gaussian noise alone."""

    name = "gdp"
    meaning = "Gaussian DP: squares of losses add up, for Gaussian noise alone"

    def supports(self, noise: Noise) -> bool:
        return isinstance(noise, GaussianNoise)

    def epsilon_bound(self, charges: Charges, delta: float) -> np.ndarray:
        mu = np.sqrt(charges.sums(charges.loss**2))
        # δ(ε) ≤ P(N(μ²/2, μ²) > ε) < δ from here on.
        low, high = np.zeros(mu.size), mu * (mu / 2 + np.sqrt(-2 * np.log(delta)))
        for _ in range(64):
            middle = (low + high) / 2
            over = _delta(mu, middle) > delta
            low, high = np.where(over, middle, low), np.where(over, high, middle)
        return high

    def delta_bound(self, charges: Charges, epsilon: float) -> np.ndarray:
        return _delta(np.sqrt(charges.sums(charges.loss**2)), epsilon)


def _delta(mu: np.ndarray, epsilon: np.ndarray | float) -> np.ndarray:
    """Corollary 2.13: Φ(−ε/μ + μ/2) − e^ε·Φ(−ε/μ − μ/2)."""
    some = np.maximum(mu, 1e-300)
    first, second = norm.cdf(-epsilon / some + mu / 2), norm.logcdf(-epsilon / some - mu / 2)
    return np.where(mu > 0, np.maximum(first - np.exp(epsilon + second), 0.0), 0.0)
