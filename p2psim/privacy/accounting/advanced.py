"""Advanced composition (Dwork, Rothblum, Vadhan 2010, Theorem III.3), for different losses."""

from __future__ import annotations

import numpy as np

from p2psim.privacy.accounting.accountant import Accountant, is_pure, pure_losses
from p2psim.privacy.accounting.charges import Lists


def advanced_epsilon(losses: np.ndarray, delta: float) -> float:
    """√(2·log(1/δ)·Σ ε²) + Σ ε(e^ε − 1), as it stands: it may be far above Σ ε.

    Parameters
    ----------
    losses : ndarray, shape (releases,)
        ε of each release.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        Infinite where e^ε overflows.
    """
    squares, means = _sums(losses)
    return float(np.sqrt(2 * np.log(1 / delta) * squares.sum()) + means.sum())


def _sums(losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(over="ignore"):
        return losses**2, losses * np.expm1(losses)


def _epsilon(lists: Lists, delta: float) -> np.ndarray:
    squares, means = (lists.total(values) for values in _sums(pure_losses(lists)))
    return np.sqrt(-2 * np.log(delta) * squares) + means


def _delta(lists: Lists, epsilon: float) -> np.ndarray:
    squares, means = (lists.total(values) for values in _sums(pure_losses(lists)))
    return tail(epsilon - means, 2 * squares)


def tail(over: np.ndarray, twice: np.ndarray) -> np.ndarray:
    """Bound e^(−over²/twice) on the chance to exceed a mean by so much; 1 where it is not exceeded."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        exponent = np.where(over > 0, np.maximum(over, 0.0) / twice * np.maximum(over, 0.0), 0.0)
    return np.exp(-np.nan_to_num(exponent, nan=0.0, posinf=np.inf))


ADVANCED = Accountant("advanced", True, is_pure, _epsilon, _delta)
