"""Zero-concentrated DP (Bun, Steinke 2016): ρ adds up (Lemma 2.3)."""

from __future__ import annotations

import numpy as np

from p2psim.privacy.accounting.accountant import Accountant
from p2psim.privacy.accounting.advanced import tail
from p2psim.privacy.accounting.charges import Lists
from p2psim.privacy.accounting.noises import Noise, zcdp_of


def zcdp_epsilon(rho: np.ndarray | float, delta: float) -> np.ndarray:
    """ρ + 2√(ρ·log(1/δ)) (Proposition 1.3).

    Parameters
    ----------
    rho : ndarray
        Σ ρ, not negative.
    delta : float
        In (0, 1).
    """
    return np.asarray(rho + 2 * np.sqrt(-np.log(delta) * np.asarray(rho)))


def _supports(noise: Noise) -> bool:
    return zcdp_of(noise, np.ones(1)) is not None


def _rho(lists: Lists) -> np.ndarray:
    result = np.zeros(lists.loss.size)
    for number, mask in lists.masks():
        with np.errstate(over="ignore"):
            result[mask] = zcdp_of(lists.noises[number], lists.loss[mask])
    return lists.total(result)


def _epsilon(lists: Lists, delta: float) -> np.ndarray:
    return zcdp_epsilon(_rho(lists), delta)


def _delta(lists: Lists, epsilon: float) -> np.ndarray:
    rho = _rho(lists)
    return tail(epsilon - rho, 4 * rho)


ZCDP = Accountant("zcdp", True, _supports, _epsilon, _delta)
