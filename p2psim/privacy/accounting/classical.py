"""The accountants ``basic``, ``advanced``, ``kov`` and ``zcdp``, which are formulas of a few sums, and ``rdp``.

``rdp`` is Rényi accounting, optimised over real orders.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from p2psim.privacy.accounting import formulas
from p2psim.privacy.accounting.accountant import Formula, basic_sums
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.grids import least
from p2psim.privacy.accounting.noises import ConcentratedNoise, Noise, PureNoise, RenyiNoise, is_pure


def _pure_losses(charges: Charges) -> np.ndarray:
    def pure(noise: Noise, losses: np.ndarray) -> np.ndarray:
        assert isinstance(noise, PureNoise)
        return noise.pure(losses)

    return charges.each(pure)


def pure_sums(charges: Charges) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """S₁, S₂, B and D of each agent (`p2psim.privacy.accounting.formulas`), shape (N,) each; D may be infinite."""
    e = _pure_losses(charges)
    with np.errstate(over="ignore"):
        slopes = e * np.expm1(e)
    return charges.sums(e), charges.sums(e**2), charges.sums(e * np.tanh(e / 2)), charges.sums(slopes)


def _advanced_epsilon(charges: Charges, delta: float) -> np.ndarray:
    _, S2, _, D = pure_sums(charges)
    return formulas.advanced(S2, D, delta)


def _gaussian_tail(excess: np.ndarray, S2: np.ndarray) -> np.ndarray:
    """δ with √(2·S₂·ln(1/δ)) = excess; 1 where the excess is not positive."""
    positive = (excess > 0) & (S2 > 0)
    safe = np.where(positive, S2, 1.0)
    # Not the square of the excess, which may overflow.
    return np.where(positive, np.exp(-np.maximum(excess, 0.0) / (2 * safe) * np.maximum(excess, 0.0)), 1.0)


def _advanced_delta(charges: Charges, epsilon: float) -> np.ndarray:
    _, S2, _, D = pure_sums(charges)
    return _gaussian_tail(epsilon - D, S2)


def _kov_epsilon(charges: Charges, delta: float) -> np.ndarray:
    S1, S2, B, _ = pure_sums(charges)
    return formulas.kov(S1, S2, B, delta)


def _kov_delta(charges: Charges, epsilon: float) -> np.ndarray:
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


def _zcdp_sums(charges: Charges) -> np.ndarray:
    def rho(noise: Noise, losses: np.ndarray) -> np.ndarray:
        assert isinstance(noise, ConcentratedNoise)
        return noise.zcdp(losses)

    return charges.sums(charges.each(rho))


def _zcdp_epsilon(charges: Charges, delta: float) -> np.ndarray:
    return formulas.zcdp(_zcdp_sums(charges), delta)


def _zcdp_delta(charges: Charges, epsilon: float) -> np.ndarray:
    rho = _zcdp_sums(charges)
    return _gaussian_tail(epsilon - rho, 2 * rho)


BASIC = Formula(
    "basic",
    "ε of several releases add up, at δ = 0 (Dwork et al. 2006)",
    is_pure,
    lambda charges, _: basic_sums(charges),
    lambda charges, _: np.ones(charges.agents),
    needs_delta=False,
)
ADVANCED = Formula(
    "advanced",
    "advanced composition (Dwork, Rothblum, Vadhan 2010), or basic where that is less",
    is_pure,
    _advanced_epsilon,
    _advanced_delta,
)
KOV = Formula(
    "kov",
    "the three-way minimum of Kairouz, Oh, Viswanath 2017",
    is_pure,
    _kov_epsilon,
    _kov_delta,
)
ZCDP = Formula(
    "zcdp",
    "zero-concentrated DP (Bun, Steinke 2016), or basic where that is less",
    lambda noise: isinstance(noise, ConcentratedNoise),
    _zcdp_epsilon,
    _zcdp_delta,
)

#: Logarithms of λ = α − 1 between which the best order is looked for, by so many golden sections: 48·.618^36 leaves
#: 2e-6 of a logarithm, and so 1e-11 of ε.
LOWEST, HIGHEST = float(np.log(1e-6)), float(np.log(1e15))
_SECTIONS = 36


def divergences(charges: Charges, orders: np.ndarray) -> np.ndarray:
    """Rényi divergence of each agent's releases together, at orders of its own: shape (N,) for orders (N,)."""
    of_release = orders[charges.owners]
    found = np.empty(charges.loss.size)
    for k in np.unique(charges.kind):
        noise, mine = charges.noises[k], charges.kind == k
        assert isinstance(noise, RenyiNoise)
        found[mine] = noise.rdp(charges.loss[mine], of_release[mine])
    return charges.sums(found)


def optimal(
    charges: Charges, objective: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Least value over real orders of a function of (divergence, order), and the order, shape (N,) each.

    Every order gives a true bound, so that a search that misses the optimum is never unsound. The objectives are
    (K(λ) + c(λ))/λ and K(λ) + c(λ), K the cumulant of the losses and c convex in λ, as K is. The one falls and then
    rises, as a convex function by a linear one does, and so does the other: golden sections find the optimum.
    """

    def at(logarithms: np.ndarray) -> np.ndarray:
        orders = 1 + np.exp(logarithms)
        return objective(divergences(charges, orders), orders)

    ends = np.full(charges.agents, LOWEST), np.full(charges.agents, HIGHEST)
    x, value = least(at, *ends, _SECTIONS)
    return value, 1 + np.exp(x)


def optimal_order(charges: Charges, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """ε at δ by the conversion of Canonne, Kamath, Steinke 2020, uncapped, and the order, shape (N,) each."""
    return optimal(charges, lambda tau, order: formulas.rdp(tau, order, delta))


def _delta(charges: Charges, epsilon: float) -> np.ndarray:
    logarithm = optimal(charges, lambda tau, order: formulas.rdp_delta(tau, order, np.array(epsilon)))[0]
    return np.exp(np.minimum(logarithm, 0.0))


def supports(noise: Noise) -> bool:
    """Whether the noise's Rényi divergences are known."""
    return isinstance(noise, RenyiNoise)


ACCOUNTANT = Formula(
    "rdp",
    "Rényi DP at the best real order (Mironov 2017; Canonne, Kamath, Steinke 2020), or basic where that is less",
    supports,
    lambda charges, delta: optimal_order(charges, delta)[0],
    _delta,
)
