"""All accountants by their names, and the whole trade-off curve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from p2psim.privacy.accounting import best
from p2psim.privacy.accounting.accountant import Accountant
from p2psim.privacy.accounting.charges import Charges
from p2psim.registry import parts, register_all

__all__ = ["ACCOUNTANTS", "Accountant", "trade_off", "type_two_error"]

register_all([*best.ALL, best.ACCOUNTANT])


class _Registered(Mapping[str, Accountant]):
    """Accountants that are registered, by name."""

    def __getitem__(self, name: str) -> Accountant:
        return _made(parts("accountant")[name])

    def __iter__(self) -> Iterator[str]:
        return iter(parts("accountant"))

    def __len__(self) -> int:
        return len(parts("accountant"))


@cache
def _made(part: Any) -> Accountant:
    accountant: Accountant = part() if isinstance(part, type) else part
    return accountant


ACCOUNTANTS: Mapping[str, Accountant] = _Registered()


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
