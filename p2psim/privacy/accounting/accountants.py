"""All accountants by their names in scenarios, the least of them (``best``), and the whole trade-off curve.

``best`` is the least of all accountants of p2psim that support every release. Accountants from other packages are used
only when they are named: what ``best`` returns must not depend on which modules have been loaded.
"""

from collections.abc import Callable, Mapping
from typing import Annotated

import numpy as np

from p2psim.core.registry import NameOf, parts, register_all
from p2psim.privacy.accounting.accountant import Accountant
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.classical import KOV, RDP, ZCDP, Advanced, Basic, ExactGaussian
from p2psim.privacy.accounting.noises import Noise
from p2psim.privacy.accounting.pld import PLD

#: Those of which ``best`` is the least.
ALL: tuple[Accountant, ...] = (Basic(), Advanced(), KOV(), RDP(), ZCDP(), ExactGaussian(), PLD())


class Best(Accountant):
    """The least of all accountants of p2psim."""

    name = "best"
    meaning = "the least of all that support every release"

    def supports(self, noise: Noise) -> bool:
        """Noise that any of them supports."""
        return any(accountant.supports(noise) for accountant in ALL)

    def epsilon_bound(self, charges: Charges, delta: float) -> np.ndarray:
        """The least ε of each agent."""
        return _least(charges, lambda accountant, some: accountant.epsilon(some, delta))

    def delta_bound(self, charges: Charges, epsilon: float) -> np.ndarray:
        """The least δ of each agent."""
        return _least(charges, lambda accountant, some: accountant.delta(some, epsilon))


def _least(charges: Charges, measure: Callable[[Accountant, Charges], np.ndarray]) -> np.ndarray:
    """The least of each agent, shape (N,): agents with the same noises are measured together."""
    has = np.zeros((charges.agents, len(charges.noises)), bool)
    has[charges.owners, charges.kind] = True
    smallest = np.zeros(charges.agents)
    for noises in np.unique(has, axis=0):
        alike = (has == noises).all(axis=1)
        some = charges.pick(alike)
        able = [accountant for accountant in ALL if all(map(accountant.supports, some.used))]
        smallest[alike] = np.minimum.reduce([measure(accountant, some) for accountant in able])
    return smallest


register_all([*ALL, Best()])


#: Accountants that are registered, by name.
ACCOUNTANTS: Mapping[str, Accountant] = parts("accountant")


def trade_off(accountant: Accountant, charges: Charges, epsilons: np.ndarray) -> np.ndarray:
    """δ of each agent at each ε, shape (N, len(epsilons)): non-increasing along ε."""
    columns = [accountant.delta(charges, float(epsilon)) for epsilon in epsilons]
    # Each is a bound, so at a larger ε none need be larger than before.
    return np.minimum.accumulate(np.stack(columns, axis=1), axis=1)


def type_two_error(epsilons: np.ndarray, deltas: np.ndarray, type_one: np.ndarray) -> np.ndarray:
    """Least error of missing a record, at each rate of false alarms: the trade-off function of (ε, δ) pairs.

    max over pairs of 0, 1 − δ − e^ε·α and e^{−ε}(1 − δ − α) (Dong, Roth, Su 2022, Proposition 2.4).

    Parameters
    ----------
    epsilons, deltas : ndarray, shape (m,)
    type_one : ndarray, shape (k,)
        α in [0, 1].

    Returns
    -------
    ndarray, shape (k,)
    """
    a = np.asarray(type_one, dtype=float)[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        steep = np.where(a > 0, 1 - deltas - np.exp(epsilons) * a, 1 - deltas)
        flat = np.exp(-epsilons) * (1 - deltas - a)
    return np.maximum(0.0, np.maximum(steep, flat)).max(axis=1)


#: The name of any accountant that is registered.
AccountantName = Annotated[str, NameOf("accountant")]
