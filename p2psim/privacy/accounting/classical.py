"""The accountants ``basic``, ``advanced``, ``kov``, ``zcdp`` and ``gaussian``, formulas of a few sums, and ``rdp``.

``rdp`` is Rényi accounting, optimised over real orders. The composition theorems are functions of sums over releases,
as printed, and not capped by one another: S₁ = Σε, S₂ = Σε², B = Σε·tanh(ε/2) (which is Σε(e^ε − 1)/(e^ε + 1)) and
D = Σε(e^ε − 1), over all releases of an agent; ρ = Σρ of zCDP. All take arrays that broadcast, and 0 < δ < 1.

``gaussian`` is the exact account of Gaussian releases: their composition is one Gaussian release (Dong, Roth, Su 2022).
"""

from collections.abc import Callable

import numpy as np

from p2psim.privacy.accounting.accountant import Accountant, basic_sums
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.gaussian_curves import gaussian_delta
from p2psim.privacy.accounting.grids import least, upper_crossing
from p2psim.privacy.accounting.noises import Noise, is_gaussian, is_pure


def advanced(S2: np.ndarray, D: np.ndarray, delta: float) -> np.ndarray:
    """Advanced composition, √(2·S₂·ln(1/δ)) + D (Dwork, Rothblum, Vadhan 2010, Theorem III.3, for unequal ε)."""
    return np.sqrt(-2 * S2 * np.log(delta)) + D


def kov_logarithm(S2: np.ndarray, B: np.ndarray, delta: float) -> np.ndarray:
    """Middle term of Kairouz, Oh, Viswanath 2017, Theorem 3.5: B + √(2·S₂·ln(e + √S₂/δ)).

    B's main text prints S₂/δ under the root in place of √S₂/δ, which under-reports.
    """
    with np.errstate(divide="ignore"):  # no releases
        return B + np.sqrt(2 * S2 * np.logaddexp(1.0, np.log(S2) / 2 - np.log(delta)))


def kov(S1: np.ndarray, S2: np.ndarray, B: np.ndarray, delta: float) -> np.ndarray:
    """Kairouz, Oh, Viswanath 2017, Theorem 3.5: the least of S₁, of `kov_logarithm` and of B + √(2·S₂·ln(1/δ))."""
    return np.minimum(S1, np.minimum(kov_logarithm(S2, B, delta), advanced(S2, B, delta)))


def zcdp(rho: np.ndarray, delta: float) -> np.ndarray:
    """ρ + 2√(ρ·ln(1/δ)) (Bun, Steinke 2016, Proposition 1.3)."""
    return rho + 2 * np.sqrt(-rho * np.log(delta))


def rdp(divergence: np.ndarray, order: np.ndarray, delta: float) -> np.ndarray:
    """ε from a Rényi divergence of order α (Canonne, Kamath, Steinke 2020, Proposition 12).

    τ + (ln(1/δ) + (α − 1)·ln(1 − 1/α) − ln α)/(α − 1).
    """
    return divergence + ((order - 1) * np.log1p(-1 / order) - np.log(order) - np.log(delta)) / (order - 1)


def rdp_delta(divergence: np.ndarray, order: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
    """Natural logarithm of δ at ε from a Rényi divergence: the same inequality, solved for δ."""
    return (order - 1) * (divergence - epsilon + np.log1p(-1 / order)) - np.log(order)


def pure_sums(charges: Charges) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """S₁, S₂, B and D of each agent, shape (N,) each; D may be infinite."""
    e = charges.each(lambda noise, losses: noise.pure(losses))
    with np.errstate(over="ignore"):
        slopes = e * np.expm1(e)
    return charges.sums(e), charges.sums(e**2), charges.sums(e * np.tanh(e / 2)), charges.sums(slopes)


def _gaussian_tail(excess: np.ndarray, S2: np.ndarray) -> np.ndarray:
    """δ with √(2·S₂·ln(1/δ)) = excess; 1 where the excess is not positive."""
    positive = (excess > 0) & (S2 > 0)
    safe = np.where(positive, S2, 1.0)
    # Not the square of the excess, which may overflow.
    return np.where(positive, np.exp(-np.maximum(excess, 0.0) / (2 * safe) * np.maximum(excess, 0.0)), 1.0)


class Basic(Accountant):
    """Basic composition."""

    name = "basic"
    meaning = "ε of several releases add up, at δ = 0 (Dwork et al. 2006)"
    needs_delta = False

    def supports(self, noise: Noise) -> bool:
        """Noise that is ε₀-DP."""
        return is_pure(noise)

    def epsilon_bound(self, charges: Charges, delta: float) -> np.ndarray:
        """Σε₀."""
        return basic_sums(charges)

    def delta_bound(self, charges: Charges, epsilon: float) -> np.ndarray:
        """Nothing beyond what all accountants say: 0 from Σε₀ on."""
        return np.ones(charges.agents)


class Advanced(Basic):
    """Advanced composition."""

    name = "advanced"
    meaning = "advanced composition (Dwork, Rothblum, Vadhan 2010), or basic where that is less"
    needs_delta = True

    def epsilon_bound(self, charges: Charges, delta: float) -> np.ndarray:
        """ε by `advanced`."""
        _, S2, _, D = pure_sums(charges)
        return advanced(S2, D, delta)

    def delta_bound(self, charges: Charges, epsilon: float) -> np.ndarray:
        """`advanced`, solved for δ."""
        _, S2, _, D = pure_sums(charges)
        return _gaussian_tail(epsilon - D, S2)


class KOV(Basic):
    """Composition by Kairouz, Oh, Viswanath."""

    name = "kov"
    meaning = "the three-way minimum of Kairouz, Oh, Viswanath 2017"
    needs_delta = True

    def epsilon_bound(self, charges: Charges, delta: float) -> np.ndarray:
        """ε by `kov`."""
        S1, S2, B, _ = pure_sums(charges)
        return kov(S1, S2, B, delta)

    def delta_bound(self, charges: Charges, epsilon: float) -> np.ndarray:
        """The two terms of `kov`, each solved for δ."""
        _, S2, B, _ = pure_sums(charges)
        excess = epsilon - B
        positive = (excess > 0) & (S2 > 0)
        above = np.where(positive, excess, 0.0)
        exponent = above / (2 * np.where(positive, S2, 1.0)) * above
        # √S₂/(e^x − e), as √S₂·e^{−x}/(1 − e^{1−x}), which no x makes overflow.
        some = exponent > 1
        x = np.where(some, exponent, 2.0)
        logarithm = np.where(some, np.sqrt(S2) * np.exp(-x) / -np.expm1(1 - x), 1.0)
        return np.minimum(_gaussian_tail(excess, S2), np.minimum(logarithm, 1.0))


class ZCDP(Accountant):
    """Zero-concentrated DP."""

    name = "zcdp"
    meaning = "zero-concentrated DP (Bun, Steinke 2016), or basic where that is less"

    def supports(self, noise: Noise) -> bool:
        """Noise that is ρ-zCDP."""
        return hasattr(noise, "zcdp")

    def epsilon_bound(self, charges: Charges, delta: float) -> np.ndarray:
        """ε by `zcdp`."""
        return zcdp(self._rho(charges), delta)

    def delta_bound(self, charges: Charges, epsilon: float) -> np.ndarray:
        """`zcdp`, solved for δ."""
        rho = self._rho(charges)
        return _gaussian_tail(epsilon - rho, 2 * rho)

    def _rho(self, charges: Charges) -> np.ndarray:
        return charges.sums(charges.each(lambda noise, losses: noise.zcdp(losses)))


#: Logarithms of λ = α − 1 between which the best order is looked for, by so many golden sections: 48·.618^36 leaves
#: 2e-6 of a logarithm, and so 1e-11 of ε.
LOWEST, HIGHEST = float(np.log(1e-6)), float(np.log(1e15))
_SECTIONS = 36


def optimal(charges: Charges, objective: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    """Least value over real orders of a function of (divergence, order), shape (N,).

    Every order gives a true bound, so that a search that misses the optimum is never unsound. The objectives are
    (K(λ) + c(λ))/λ and K(λ) + c(λ), K the cumulant of the losses and c convex in λ, as K is. The one falls and then
    rises, as a convex function by a linear one does, and so does the other: golden sections find the optimum.
    """

    def at(logarithms: np.ndarray) -> np.ndarray:
        orders = 1 + np.exp(logarithms)
        rdp = charges.each(lambda noise, losses, orders: noise.rdp(losses, orders), orders[charges.owners])
        return objective(charges.sums(rdp), orders)

    lowest, highest = np.full(charges.agents, LOWEST), np.full(charges.agents, HIGHEST)
    return least(at, lowest, highest, _SECTIONS)[1]


class RDP(Accountant):
    """Rényi DP at the best real order."""

    name = "rdp"
    meaning = (
        "Rényi DP at the best real order (Mironov 2017; Canonne, Kamath, Steinke 2020), "
        "or basic where that is less"
    )

    def supports(self, noise: Noise) -> bool:
        """Noise whose Rényi divergences are known."""
        return hasattr(noise, "rdp")

    def epsilon_bound(self, charges: Charges, delta: float) -> np.ndarray:
        """ε by `rdp`."""
        return optimal(charges, lambda tau, order: rdp(tau, order, delta))

    def delta_bound(self, charges: Charges, epsilon: float) -> np.ndarray:
        """δ by `rdp_delta`."""
        logarithm = optimal(charges, lambda tau, order: rdp_delta(tau, order, np.array(epsilon)))
        return np.exp(np.minimum(logarithm, 0.0))


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
