"""Composition of Kairouz, Oh, Viswanath (2015), Theorem 3.5: for different losses of pure DP, in closed form."""

from __future__ import annotations

import numpy as np

from p2psim.privacy.accounting.accountant import Accountant, is_pure, pure_losses
from p2psim.privacy.accounting.advanced import tail
from p2psim.privacy.accounting.charges import Lists


def kov_terms(losses: np.ndarray, delta: float) -> tuple[float, float, float]:
    """Σ ε, B + √(2S·log(e + √S/δ)) and B + √(2S·log(1/δ)), with S = Σ ε² and B = Σ ε·(e^ε − 1)/(e^ε + 1).

    The inner root of the second is Σ ε² under a root over δ: some prints have √S/δ outside the logarithm's e, or the
    root over the quotient, which is too small.

    Parameters
    ----------
    losses : ndarray, shape (releases,)
        ε of each release.
    delta : float
        In (0, 1).
    """
    squares, means = (values.sum() for values in _sums(losses))
    return (
        float(losses.sum()),
        float(means + np.sqrt(2 * squares * np.log(np.e + np.sqrt(squares) / delta))),
        float(means + np.sqrt(2 * squares * np.log(1 / delta))),
    )


def kov_epsilon(losses: np.ndarray, delta: float) -> float:
    """The smallest of the three terms; parameters as in `kov_terms`."""
    return min(kov_terms(losses, delta))


def _sums(losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return losses**2, losses * np.tanh(losses / 2)


def _epsilon(lists: Lists, delta: float) -> np.ndarray:
    squares, means = (lists.total(values) for values in _sums(pure_losses(lists)))
    # log(e + r) as 1 + log(1 + r/e) keeps its digits, and √S/δ may overflow.
    with np.errstate(over="ignore"):
        grown = 1 + np.log1p(np.exp(np.minimum(np.log(np.sqrt(squares)) - np.log(delta) - 1, 700)))
    return means + np.sqrt(2 * squares * np.minimum(grown, -np.log(delta)))


def _delta(lists: Lists, epsilon: float) -> np.ndarray:
    squares, means = (lists.total(values) for values in _sums(pure_losses(lists)))
    third = tail(epsilon - means, 2 * squares)
    # log(e + √S/δ) = t gives δ = √S/(e^t − e), for t > 1; e^−t is the third term.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        second = np.where(third < np.exp(-1), np.sqrt(squares) * third / (1 - np.e * third), 1.0)
    return np.minimum(second, third)


KOV = Accountant("kov", True, is_pure, _epsilon, _delta)
