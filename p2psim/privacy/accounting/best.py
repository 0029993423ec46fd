"""The least of all accountants of p2psim that support every release.

Those of others are asked by their names alone: what ``best`` says must not depend on which modules have been loaded.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from p2psim.privacy.accounting import gaussian, pld, rdp
from p2psim.privacy.accounting.accountant import Accountant, Formula
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.classical import ADVANCED, BASIC, KOV, ZCDP

#: All that are asked.
ALL: tuple[Accountant, ...] = (
    BASIC,
    ADVANCED,
    KOV,
    rdp.ACCOUNTANT,
    ZCDP,
    gaussian.ACCOUNTANT,
    pld.ACCOUNTANT,
)


def _least(charges: Charges, measure: Callable[[Accountant, Charges], np.ndarray]) -> np.ndarray:
    """The least of each agent, shape (N,): agents are asked about together if they have the same noises."""
    has = np.zeros((charges.agents, len(charges.noises)), bool)
    has[charges.owners, charges.kind] = True
    found = np.zeros(charges.agents)
    for noises in np.unique(has, axis=0):
        alike = (has == noises).all(axis=1)
        own = charges.pick(alike)
        able = [one for one in ALL if all(one.supports(noise) for noise in own.used)]
        found[alike] = np.minimum.reduce([measure(one, own) for one in able])
    return found


ACCOUNTANT = Formula(
    "best",
    "the least of all that support every release",
    lambda noise: any(one.supports(noise) for one in ALL),
    lambda charges, delta: _least(charges, lambda one, own: one.epsilon(own, delta)),
    lambda charges, epsilon: _least(charges, lambda one, own: one.delta(own, epsilon)),
)
