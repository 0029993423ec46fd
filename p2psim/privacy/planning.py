"""Plans releases within budgets, from public numbers alone: how many, and how much each may cost.

Releases add up in one of two ways, and an allocation spreads what adds up: Σ ε₀ ≤ ε for pure DP, since every accountant
takes the smaller of its own bound and basic composition; Σ μ² ≤ μ̄² for Gaussian noise, since every accountant's bound
on a list of Gaussians depends on Σ μ² alone, with μ̄ the largest μ of one release within ε at δ. Where losses are
stated instead, or are the largest that an accountant permits, that accountant is asked.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from p2psim.core.errors import AgentError, MeaningError
from p2psim.core.printing import exact
from p2psim.privacy.accounting.accountant import Accountant
from p2psim.privacy.accounting.accountants import ACCOUNTANTS, AccountantName, largest_loss, most_releases
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import Noise, sampled
from p2psim.privacy.allocations import Allocation
from p2psim.privacy.mechanisms import Mechanism
from p2psim.privacy.plan import Limit, Plan
from p2psim.privacy.shares import UNLIMITED, Releases, RunForecast

#: Of a bracket that is at most as wide as four times the number in it: as many as its digits.
_HALVINGS = 54

#: Where an allocation sets no end, the search for one ends after so many horizons: no agent makes more releases.
_HORIZONS = 4


def allowance(mechanism: Mechanism, epsilon: np.ndarray, delta: float, enforce: AccountantName) -> np.ndarray:
    """What ε at δ is worth in what adds up of losses, shape (N,): ε itself, or μ̄²; infinite where ε is.

    Parameters
    ----------
    mechanism : Mechanism
    epsilon : ndarray, shape (N,)
        Positive.
    delta : float
    enforce : str
        The accountant that says when one release is within ε at δ.
    """
    if mechanism.power == 1 and mechanism.adds_up:
        return epsilon
    values, place = np.unique(epsilon, return_inverse=True)
    worth = np.full(values.size, np.inf)
    finite = np.isfinite(values)
    if finite.any():
        worth[finite] = _of_one_release(mechanism.noise, values[finite], delta, enforce) ** mechanism.power
    return worth[place.reshape(-1)]


def _of_one_release(noise: Noise, epsilon: np.ndarray, delta: float, enforce: AccountantName) -> np.ndarray:
    """Largest loss of a single release within each ε at δ, for all together, and never above it."""

    def within(losses: np.ndarray) -> np.ndarray:
        charges = Charges((noise,), np.zeros(losses.size, np.int8), losses, np.arange(losses.size + 1))
        return ACCOUNTANTS[enforce].epsilon(charges, delta) <= epsilon

    low, high = np.ones(epsilon.size), np.ones(epsilon.size)
    while (fits := within(high)).any():
        high = np.where(fits, 2 * high, high)
    while not (fits := within(low)).all():
        low = np.where(fits, low, low / 2)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fits = within(middle)
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return low


def _allowances(mechanism: Mechanism, limit: Limit) -> np.ndarray:
    """What each agent's releases have in all of what adds up, after its start, shape (N,).

    Raises
    ------
    MeaningError
        If nothing is left.
    """
    whole = allowance(mechanism, limit.epsilon, limit.delta, limit.enforce)
    if limit.start is None:
        return whole
    left = whole - np.where(np.isfinite(limit.start), limit.start, 0.0) ** mechanism.power
    if (left <= 0).any():
        agent = int(np.argmax(left <= 0))
        raise AgentError(
            "learning.algorithm.start.epsilon",
            f"must be less than privacy.epsilon, {exact(limit.epsilon[agent])} for agent {{agent}}, "
            "of which it is a part",
            agent,
        )
    return left


def plan(
    mechanism: Mechanism,
    allocation: Allocation,
    limit: Limit,
    bound: float,
    divisors: np.ndarray,
    horizon: int,
    shares: np.ndarray,
    scale_records: float = 1.0,
    never: bool = False,
    contraction: float | None = None,
    rates: np.ndarray | None = None,
    poisson: bool = False,
    dimension: int = 1,
    factors: np.ndarray | None = None,
) -> Plan:
    """Plan the releases of all agents.

    Parameters
    ----------
    mechanism, allocation
        Parts of the privacy section.
    limit : Limit
        What all releases may cost.
    bound : float
        Ξ, the bound on the norm of one record's gradient, in the mechanism's norm.
    divisors : ndarray, shape (N,)
        What each agent's sum of gradients is divided by, n_i where all records take part; 0 without records.
    horizon : int
        T, the most releases that allocation ``horizon`` prepares for.
    shares : ndarray, shape (N,)
        Probability that a commit is each agent's: it is expected to make T·share releases when nothing limits it.
    scale_records : float
        Noise as if each record stood for this many.
    never : bool
        Whether no update ever touches data.
    contraction : float, optional
        C of `p2psim.theory.bounds.graph.contraction_rate`, for allocation ``contraction`` with rate auto.
    rates : ndarray, shape (N,), optional
        Chance of each agent's records to take part in a release; 1 when left out.
    poisson : bool
        Whether each record takes part whatever the others do.
    factors : ndarray, shape (N,), optional
        What each agent multiplies its gradients by before noise, and so their sensitivity.
    dimension : int
        p, the length of a release.

    Raises
    ------
    MeaningError
        If an agent's start leaves nothing of its budget, or a clairvoyant allocation meets noise whose losses do not
        add up to one number.
    """
    shares = np.asarray(shares, dtype=float)
    rates = np.ones(shares.size) if rates is None else rates
    expected = np.maximum(1.0, np.rint(horizon * shares))
    limited = mechanism.is_private & np.isfinite(limit.epsilon)
    if mechanism.is_private and allocation.clairvoyant and not mechanism.adds_up:
        message = f"{allocation.kind} spreads what is left over all releases at once, which needs losses that add up"
        raise MeaningError("privacy.allocation", f"{message}; {mechanism.kind} noise has none: give another")
    # An infinite budget cannot be spent, so it limits nobody: such a run is the noiseless one.
    releases = np.full(shares.size, UNLIMITED)
    # What is expected of an agent follows from its share; a million agents may have the same.
    distinct, place = np.unique(shares[limited], return_inverse=True)
    wakes = np.maximum(1.0, np.rint(horizon * distinct)).tolist()
    limits = [allocation.limit(horizon, *one) for one in zip(distinct.tolist(), wakes, strict=True)]
    releases[limited] = np.array(limits, dtype=np.int64)[place]
    if never:
        releases[:] = 0
    moved = np.divide(2 * bound, divisors, out=np.zeros(shares.size), where=divisors > 0)
    planned = Plan(
        mechanism,
        allocation,
        limit,
        _allowances(mechanism, limit) if limited.any() else limit.epsilon,
        releases,
        moved if factors is None else moved * factors,
        dimension,
        rates,
        scale_records,
        RunForecast(expected, 1.0 / shares, contraction),
        poisson,
    )
    return planned if never or not limited.any() else _within_budgets(planned, limited, horizon)


def replanned(planned: Plan, limit: Limit) -> Plan | None:
    """The same plan for other budgets, where these say only how large losses may be; else None."""
    mechanism, allocation, before = planned.mechanism, planned.allocation, planned.limit
    by_shares = mechanism.adds_up and (allocation.clairvoyant or allocation.sums_to_one)
    if before.start is not None or allocation.composed_by is not None or not by_shares:
        return None
    finite = np.isfinite(limit.epsilon)
    if not finite.any() or (finite != np.isfinite(before.epsilon)).any():
        return None
    return planned.within(limit, _allowances(mechanism, limit))


def _within_budgets(planned: Plan, limited: np.ndarray, horizon: int) -> Plan:
    """The plan with as many releases, or as large losses, as the accountant that enforces budgets permits."""
    mechanism, allocation = planned.mechanism, planned.allocation
    if allocation.composed_by is not None:
        return replace(planned, equal=_equal_losses(planned, ACCOUNTANTS[allocation.composed_by]))
    if mechanism.adds_up and (allocation.clairvoyant or allocation.sums_to_one):
        return planned  # the shares' sum is at most one: no accountant finds more than the budget
    most = np.where(limited, np.minimum(planned.releases, _HORIZONS * horizon), planned.releases)
    planned = replace(planned, releases=most)
    losses = [_claimed(planned, agent) if limited[agent] else np.empty(0) for agent in range(most.size)]
    keys: dict[bytes, int] = {}
    alike = np.array([keys.setdefault(claimed.tobytes(), len(keys)) for claimed in losses])
    enforcing = ACCOUNTANTS[planned.limit.enforce]
    affordable = _solved(
        planned, alike, lambda agent, budget: most_releases(enforcing, losses=losses[agent], **budget)
    )
    most[limited] = affordable[limited]
    return replace(planned, releases=most)


def _equal_losses(planned: Plan, accountant: Accountant) -> np.ndarray:
    """Largest loss that each of an agent's equal releases may have, shape (N,); infinite where the budget is.

    Raises
    ------
    MeaningError
        If no loss is small enough.
    """
    power = planned.mechanism.power

    def solve(agent: int, budget: dict[str, Any]) -> float:
        try:
            factor = largest_loss(accountant, weights=np.ones(planned.releases[agent]), power=power, **budget)
        except ValueError as error:
            raise AgentError("privacy.epsilon", f"is too small for agent {{agent}}: {error}", agent) from None
        return factor ** (1 / power)

    return _solved(planned, planned.releases, solve)


def _claimed(planned: Plan, agent: int) -> np.ndarray:
    """Losses of an agent's releases in order, as many as it makes at most."""
    numbers = np.arange(planned.releases[agent])
    claimed = planned.claimed(Releases(np.full(numbers.size, agent), numbers, np.zeros_like(numbers)))
    if not (claimed > 0).all():
        wrong = int(np.argmin(claimed > 0))
        share = f"{planned.allocation.kind} gives release {wrong} of agent {{agent}} no positive share of its budget"
        raise AgentError("privacy.allocation", share, agent)
    return claimed


def _solved(planned: Plan, alike: np.ndarray, solve: Callable[[int, dict[str, Any]], float]) -> np.ndarray:
    """A number of each agent, shape (N,), solved once for all that are alike; infinite where the budget is.

    Parameters
    ----------
    planned : Plan
    alike : ndarray, shape (N,)
        The same number for agents that differ in budgets, starts and rates at most.
    solve : callable
        From an agent and its budget, as a search takes it: the noise of its releases, ε, δ, and its start's charges.
    """
    limit, noise, start = planned.limit, planned.mechanism.noise, planned.limit.start
    starts = np.zeros(alike.size) if start is None else start
    table = np.stack([limit.epsilon, starts, planned.rates, alike.astype(float)], axis=1)
    _, first, place = np.unique(table, axis=0, return_index=True, return_inverse=True)
    values = np.full(first.size, np.inf)
    for at in np.flatnonzero(np.isfinite(limit.epsilon[first])):
        agent = int(first[at])
        # After a start that guarantees nothing there is nothing to keep within the budget.
        starts_within = start is not None and start[agent] < np.inf
        before = Charges.of(limit.start_noise or noise, starts[agent]) if starts_within else None
        budget = {"noise": sampled(noise, float(planned.rates[agent]), planned.poisson), "before": before}
        values[at] = solve(agent, budget | {"epsilon": float(limit.epsilon[agent]), "delta": limit.delta})
    return values[place.reshape(-1)]
