"""From a budget to losses: the largest ones, or the most releases, that an accountant lets pass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from p2psim.privacy.accounting.accountant import Accountant
from p2psim.privacy.accounting.charges import Charges, joined, one_agent, repeated
from p2psim.privacy.accounting.curves import gaussian_delta
from p2psim.privacy.accounting.noises import Noise
from p2psim.privacy.accounting.searches import upper_crossing

#: Most releases that are counted where nothing says another number.
UNBOUNDED = 2**53
#: Relative width to which a loss is found.
_WIDTH = 1e-12
#: Losses beyond these are not looked for.
_LEAST, _LARGEST = 1e-280, 1e280


def gaussian_mu(epsilon: np.ndarray | float, delta: float) -> np.ndarray:
    """Largest μ = Δ/σ at which one Gaussian release is within ε at δ (Balle, Wang 2018, Theorem 8); never above it.

    Parameters
    ----------
    epsilon : ndarray
        Not negative and finite.
    delta : float
        In (0, 1).
    """
    epsilon = np.asarray(epsilon, dtype=float)
    flat = epsilon.reshape(-1)

    # In 1/μ the curve falls; δ ≥ 1 − e^−… everywhere is reached before μ = √(2ε) + 2·x, Φ(−x) ≤ (1 − δ)/2.
    def over(inverse: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(gaussian_delta(1 / inverse, flat)) - np.log(delta)

    low, high = np.ones(flat.size), np.ones(flat.size)
    while (short := over(low) <= 0).any():
        low = np.where(short, low / 2, low)
    while (long := over(high) > 0).any():
        high = np.where(long, high * 2, high)
    return (1 / upper_crossing(over, low, high)).reshape(epsilon.shape)


def largest_loss(
    accountant: Accountant,
    noise: Noise,
    weights: np.ndarray,
    epsilon: float,
    delta: float,
    power: int = 1,
    before: Charges | None = None,
) -> float:
    """Largest c for which releases of losses c·weights stay within ε at δ; the account of what is returned is.

    Parameters
    ----------
    accountant : Accountant
    noise : Noise
    weights : ndarray, shape (releases,)
        Not negative.
    epsilon : float
        Not negative.
    delta : float
        In [0, 1).
    power : int
        The power of the losses that adds up: where the search begins, no more.
    before : Charges, optional
        Of one agent: what it released already.

    Returns
    -------
    float
        Infinite where nothing is released or ε is infinite, 0 where nothing can be.
    """
    weights = np.asarray(weights, dtype=float)
    largest = float(weights.max(initial=0.0))
    if largest == 0 or np.isinf(epsilon):
        return float("inf")
    scaled = weights / largest
    equal = bool((scaled == 1).all())

    def within(loss: float) -> float:
        """How far the account is within ε; not negative if it is."""
        if equal:
            charges = repeated(noise, loss, weights.size, before)
        else:
            made = one_agent(noise, loss * scaled)
            charges = (made if before is None else joined(before, made)).lists
        return epsilon - float(accountant.epsilon(charges, delta)[0])

    guess = epsilon / (scaled**power).sum() ** (1 / power)
    return _last(within, max(guess, _LEAST)) / largest


def _last(within: Callable[[float], float], guess: float) -> float:
    """Largest positive number at which a falling function is not negative, and never one at which it is negative."""
    low, high, factor = guess, guess, 2.0
    at_low = at_high = within(guess)
    while at_high >= 0:
        low, at_low = high, at_high
        if high > _LARGEST:
            return low
        high *= factor
        at_high, factor = within(high), factor**1.5
    factor = 2.0
    while at_low < 0:
        high, at_high = low, at_low
        if low < _LEAST:
            return 0.0
        low /= factor
        at_low, factor = within(low), factor**1.5
    step = 0
    while high - low > _WIDTH * high:
        step += 1
        # Regula falsi on even steps, a touch towards the far end on others, so that both ends close in; bisection of
        # the logarithm where it does not help.
        middle = low + (high - low) * at_low / (at_low - at_high) if np.isfinite(at_high) else low
        if step % 4 == 3:
            middle = np.sqrt(low * high)
        elif step % 2:
            middle += 1e-2 * (high - middle if middle - low > high - middle else low - middle)
        if not low < middle < high:
            middle = np.sqrt(low) * np.sqrt(high)
        if not low < middle < high:
            break
        at_middle = within(float(middle))
        if at_middle >= 0:
            low, at_low = float(middle), at_middle
        else:
            high, at_high = float(middle), at_middle
    return low


def most_releases(
    accountant: Accountant,
    noise: Noise,
    losses: np.ndarray | float,
    epsilon: float,
    delta: float,
    before: Charges | None = None,
    most: int | None = None,
) -> int:
    """Longest beginning of a list of releases that stays within ε at δ.

    Parameters
    ----------
    accountant : Accountant
    noise : Noise
    losses : ndarray, shape (releases,), or float
        In the order of the releases; a number is the loss of any number of them.
    epsilon : float
        Not negative.
    delta : float
        In [0, 1).
    before : Charges, optional
        Of one agent: what it released already.
    most : int, optional
        Where to stop counting; `UNBOUNDED` when left out.

    Returns
    -------
    int
        Its account is within ε, and that of one more is not, unless there is no more; 0 if nothing may be released.
    """
    listed = np.asarray(losses, dtype=float)
    limit = UNBOUNDED if most is None else most
    if listed.ndim:
        limit = min(limit, listed.size)

    def fits(count: int) -> bool:
        if listed.ndim:
            made = one_agent(noise, listed[:count])
            charges = (made if before is None else joined(before, made)).lists
        elif listed == 0 or np.isinf(listed):
            made = one_agent(noise, [float(listed)])
            charges = (made if before is None else joined(before, made)).lists
        else:
            charges = repeated(noise, float(listed), count, before)
        return bool(accountant.epsilon(charges, delta)[0] <= epsilon)

    if limit < 1 or not fits(1):
        return 0
    low, high = 1, 2
    while high < limit and fits(high):
        low, high = high, 2 * high
    if high >= limit:
        if fits(limit):
            return limit
        high = limit
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
