"""Rényi accounting, optimised over real orders."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from p2psim.privacy.accounting import formulas
from p2psim.privacy.accounting.accountant import Formula
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import Noise, RenyiNoise
from p2psim.privacy.accounting.searches import least

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
