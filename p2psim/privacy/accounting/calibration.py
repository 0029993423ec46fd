"""Noise for a budget, and releases for a budget: both stay within it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from p2psim.privacy.accounting.accountant import Accountant
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.gaussian import gaussian_mu
from p2psim.privacy.accounting.noises import Noise

__all__ = ["gaussian_mu", "largest_loss", "most_releases"]

#: Relative width at which a search ends.
_WIDTH = 1e-9

#: Releases beyond which a budget is taken to allow any number.
MOST = 1 << 40


def largest_loss(
    accountant: Accountant,
    noise: Noise,
    weights: np.ndarray,
    epsilon: float,
    delta: float,
    power: int = 1,
    before: Charges | None = None,
) -> float:
    """Largest factor c such that releases with losses (c·w)^(1/power) are within (ε, δ), never above.

    Parameters
    ----------
    accountant : Accountant
    noise : Noise
    weights : ndarray, shape (releases,)
        w, not negative, some positive.
    epsilon, delta : float
        Budget: ε positive, finite.
    power : int
        1 where losses add up, 2 where their squares do.
    before : Charges, optional
        What one agent has released already; it is a part of what must be within the budget.

    Raises
    ------
    ValueError
        If the budget or the weights mean nothing, or no loss is within it.
    """
    w = np.asarray(weights, dtype=float)
    if not (0 < epsilon < np.inf and (w >= 0).all() and w.any()):
        raise ValueError(f"a positive finite ε and some positive weight are needed, got {epsilon} and {w}")

    def within(factor: float) -> bool:
        charges = _after(before, noise, (factor * w) ** (1 / power))
        return bool(accountant.epsilon(charges, delta)[0] <= epsilon)

    high = (epsilon if power == 1 else epsilon**2) / float(w.sum())
    for _ in range(200):
        if not within(high):
            break
        high *= 2
    low = high / 2
    for _ in range(2000):
        if within(low):
            break
        low /= 2
        if low < 1e-290:
            raise ValueError(f"{accountant.name} finds no loss within ε = {epsilon}, δ = {delta}")
    return _bisected(within, low, 2 * low if 2 * low < high else high)


def _after(before: Charges | None, noise: Noise, losses: np.ndarray) -> Charges:
    """One agent's charges, with those of further releases."""
    more = Charges.of(noise, losses)
    if before is None:
        return more
    kind = np.concatenate([before.kind, np.full(more.loss.size, len(before.noises), before.kind.dtype)])
    loss = np.concatenate([before.loss, more.loss])
    return Charges((*before.noises, noise), kind, loss, np.array([0, loss.size]))


def _bisected(within: Callable[[float], bool], low: float, high: float) -> float:
    while high - low > _WIDTH * low:
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return low


def most_releases(
    accountant: Accountant,
    noise: Noise,
    losses: float | np.ndarray,
    epsilon: float,
    delta: float,
    before: Charges | None = None,
) -> int:
    """Longest prefix of a list of losses that is within (ε, δ).

    Parameters
    ----------
    accountant : Accountant
    noise : Noise
    losses : float or ndarray, shape (releases,)
        One number stands for any number of releases with that loss; then at most `MOST` are told.
    epsilon, delta : float
    before : Charges, optional
        What one agent has released already.

    Returns
    -------
    int
    """

    def within(count: int) -> bool:
        own = np.full(count, losses) if np.ndim(losses) == 0 else np.asarray(losses)[:count]
        return bool(accountant.epsilon(_after(before, noise, own), delta)[0] <= epsilon) if count else True

    if np.ndim(losses) == 0:
        if losses == 0:
            return MOST
        end = 1
        while end < MOST and within(end):
            end *= 2
            if end > 1 << 24:
                raise ValueError(f"more than {1 << 24} releases are within the budget; give the list")
    else:
        end = np.asarray(losses).size
        if within(end):
            return end
    low, high = 0, end
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return low
