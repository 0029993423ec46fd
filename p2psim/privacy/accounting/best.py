"""The least of all accountants that support every release."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from p2psim.privacy.accounting import gaussian, pld, rdp
from p2psim.privacy.accounting.accountant import Accountant
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


def _least(charges: Charges, measure: Callable[[Accountant], np.ndarray]) -> np.ndarray:
    able = [one for one in ALL if all(one.supports(noise) for noise in charges.used)]
    return np.minimum.reduce([measure(one) for one in able])


ACCOUNTANT = Accountant(
    "best",
    "the least of all that support every release",
    lambda noise: any(one.supports(noise) for one in ALL),
    True,
    lambda charges, delta: _least(charges, lambda one: one.epsilon(charges, delta)),
    lambda charges, epsilon: _least(charges, lambda one: one.delta(charges, epsilon)),
)
