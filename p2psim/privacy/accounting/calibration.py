"""Noise for a budget, and releases for a budget: both stay within it."""

from collections.abc import Callable

import numpy as np

from p2psim.privacy.accounting.accountant import Accountant
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import Noise

#: Relative width at which a search ends.
_WIDTH = 1e-12

#: Factors beyond which none is looked for.
_SMALLEST, _LARGEST = 1e-290, 1e290

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

    Returns
    -------
    float
        The account of c was seen to be within the budget.

    Raises
    ------
    ValueError
        If the budget or the weights mean nothing, or no loss is within it.
    """
    w = np.asarray(weights, dtype=float)
    if not (0 < epsilon < np.inf and (w >= 0).all() and w.any()):
        raise ValueError(f"a positive finite ε and some positive weight are needed, got {epsilon} and {w}")
    different, counts = np.unique(w, return_counts=True)

    def left(factor: float) -> float:
        """What is left of ε, negative if the account is above it."""
        with np.errstate(over="ignore"):
            charges = Charges.of(noise, (factor * different) ** (1 / power), counts)
        return epsilon - float(accountant.epsilon(before.plus(charges) if before else charges, delta)[0])

    factor = _last((epsilon if power == 1 else epsilon**2) / float(w.sum()), left)
    if factor == 0:
        raise ValueError(f"{accountant.name} finds no loss within ε = {epsilon}, δ = {delta}")
    return factor


def _last(guess: float, left: Callable[[float], float]) -> float:
    """Largest positive number, nearly, at which a falling function is not negative; 0 if there is none.

    Where the function is negative nothing is returned, even if it falls but roughly.
    """
    low = high = min(max(guess, _SMALLEST), _LARGEST)
    at_low = at_high = left(guess)
    step = 2.0
    while at_high >= 0:
        low, at_low = high, at_high
        if high >= _LARGEST:
            return low
        high, step = high * step, step * step if step < 1e4 else step
        at_high = left(high)
    step = 2.0
    while at_low < 0:
        high, at_high = low, at_low
        if low <= _SMALLEST:
            return 0.0
        low, step = low / step, step * step if step < 1e4 else step
        at_low = left(low)
    turn = 0
    while high - low > _WIDTH * high:
        # A secant, one that is moved so that the farther end closes in, and now and then a half of the logarithms.
        share = at_low / (at_low - at_high) if np.isfinite(at_high) else 0.5
        if turn % 4 in (1, 2):
            share += 0.02 * (1 - share) if share < 0.5 else -0.02 * share
        middle = low + share * (high - low)
        if turn % 4 == 3 or not low < middle < high:
            middle = float(np.sqrt(low) * np.sqrt(high))
        if not low < middle < high:
            break
        at_middle = left(middle)
        if at_middle >= 0:
            low, at_low = middle, at_middle
        else:
            high, at_high = middle, at_middle
        turn += 1
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
        The account of so many was seen to be within the budget, and that of one more not to be, unless it is the end.
    """
    listed = np.asarray(losses, dtype=float)
    end = listed.size if listed.ndim else MOST

    def within(count: int) -> bool:
        prefix, repeated = (listed[:count], None) if listed.ndim else (listed, float(count))
        charges = Charges.of(noise, prefix, repeated)
        return bool(accountant.epsilon(before.plus(charges) if before else charges, delta)[0] <= epsilon)

    # Double, then halve.
    low, high = 0, 1
    while high < end and within(high):
        low, high = high, 2 * high
    if high >= end:
        if end == 0 or within(end):
            return end
        high = end
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return low
