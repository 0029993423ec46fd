"""Rényi accounting, optimised over real orders."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from p2psim.privacy.accounting import formulas
from p2psim.privacy.accounting.accountant import Accountant, basic_sums
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import Noise, RenyiNoise

#: Logarithms of α − 1 that are tried first; from the best on the search is by golden sections.
_GRID = np.linspace(np.log(1e-3), np.log(1e9), 57)
_SECTIONS = 45
_GOLDEN = (np.sqrt(5) - 1) / 2


def divergences(charges: Charges, orders: np.ndarray) -> np.ndarray:
    """Rényi divergence of each agent's releases together, at orders of its own: shape (N,) for orders (N,)."""
    of_release = np.repeat(orders, np.diff(charges.offsets))
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

    Every order gives a true bound, so that a search that misses the optimum is never unsound.
    """

    def at(logarithms: np.ndarray) -> np.ndarray:
        orders = 1 + np.exp(logarithms)
        values = objective(divergences(charges, orders), orders)
        return np.where(np.isnan(values), np.inf, values)

    tried = np.array([at(np.full(charges.agents, x)) for x in _GRID])
    best = np.argmin(tried, axis=0)
    step = _GRID[1] - _GRID[0]
    low, high = _GRID[best] - step, _GRID[best] + step
    inner, outer = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    f_inner, f_outer = at(inner), at(outer)
    for _ in range(_SECTIONS):
        left = f_inner < f_outer
        high, low = np.where(left, outer, high), np.where(left, low, inner)
        new = np.where(left, high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
        f_new = at(new)
        inner, outer = np.where(left, new, outer), np.where(left, inner, new)
        f_inner, f_outer = np.where(left, f_new, f_outer), np.where(left, f_inner, f_new)
    x = np.where(f_inner < f_outer, inner, outer)
    value = np.minimum(np.minimum(f_inner, f_outer), tried.min(axis=0))
    return value, 1 + np.exp(x)


def optimal_order(charges: Charges, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """ε at δ by the conversion of Canonne, Kamath, Steinke 2020, uncapped, and the order, shape (N,) each."""
    return optimal(charges, lambda tau, order: formulas.rdp(tau, order, delta))


def _epsilon(charges: Charges, delta: float) -> np.ndarray:
    distinct, places = charges.distinct()
    few = _of(charges, distinct)
    return np.minimum(basic_sums(charges), optimal_order(few, delta)[0][places])


def _delta(charges: Charges, epsilon: float) -> np.ndarray:
    distinct, places = charges.distinct()
    few = _of(charges, distinct)
    logarithm = optimal(few, lambda tau, order: formulas.rdp_delta(tau, order, np.array(epsilon)))[0]
    return np.exp(np.minimum(logarithm, 0.0))[places]


def _of(charges: Charges, agents: list[int]) -> Charges:
    """Charges of some agents."""
    if len(agents) == charges.agents:
        return charges
    rows = [np.arange(charges.offsets[a], charges.offsets[a + 1]) for a in agents]
    picked = np.concatenate([np.zeros(0, np.int64), *rows])
    counts = [row.size for row in rows]
    return Charges(
        charges.noises,
        charges.kind[picked],
        charges.loss[picked],
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
    )


def supports(noise: Noise) -> bool:
    """Whether the noise's Rényi divergences are known."""
    return isinstance(noise, RenyiNoise)


ACCOUNTANT = Accountant(
    "rdp",
    "Rényi DP at the best real order (Mironov 2017; Canonne, Kamath, Steinke 2020), or basic where that is less",
    supports,
    True,
    _epsilon,
    _delta,
)
