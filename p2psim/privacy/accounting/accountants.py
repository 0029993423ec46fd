"""All accountants by name, the least of them (``best``), the trade-off curve, and noise or releases for a budget.

``best`` is the least of all accountants of p2psim that support every release. Accountants from other packages are used
only when they are named: what ``best`` returns must not depend on which modules have been loaded.
"""

from collections.abc import Callable, Mapping
from typing import Annotated

import numpy as np

from p2psim.core.part_types import NameOf
from p2psim.core.registry import parts, register_all
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

    No place where the function is negative is returned, even if it falls only roughly.
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
        One number counts as any number of releases with that loss, of which at most `MOST` are returned.
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
