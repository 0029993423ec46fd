"""Plans releases: what budgets, allocations and accountants say of each agent, settled before a run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from p2psim.errors import AgentError, MeaningError
from p2psim.privacy.allocations import Allocation
from p2psim.privacy.budgets import Limit, affordable, allowances, composed
from p2psim.privacy.mechanisms import Mechanism
from p2psim.privacy.plan import Plan
from p2psim.privacy.shares import UNLIMITED, Outlook, Releases

#: Where an allocation sets no end, the search for one ends after so many horizons: no agent makes more releases.
_HORIZONS = 4


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
        C of `p2psim.theory.graph.contraction_rate`, for allocation ``contraction`` with rate auto.
    rates : ndarray, shape (N,), optional
        Chance of each agent's records to take part in a release; 1 when left out.
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
    limited = mechanism.is_private & limit.finite
    if mechanism.is_private and allocation.clairvoyant and not mechanism.adds_up:
        message = f"{allocation.kind} spreads what is left over all releases at once, which needs losses that add up"
        raise MeaningError("privacy.allocation", f"{message}; {mechanism.kind} noise has none: give another")
    # An infinite budget cannot be spent, so it limits nobody: such a run is the noiseless one.
    releases = np.array(
        [
            allocation.limit(horizon, float(share), float(mean)) if is_limited else UNLIMITED
            for share, mean, is_limited in zip(shares, expected, limited, strict=True)
        ],
        dtype=np.int64,
    )
    if never:
        releases[:] = 0
    made = Plan(
        mechanism,
        allocation,
        limit,
        allowances(mechanism, limit) if limited.any() else limit.epsilon,
        releases,
        _moved(bound, divisors, factors),
        dimension,
        rates,
        scale_records,
        Outlook(expected, 1.0 / shares, contraction),
    )
    return made if never or not limited.any() else _within_budgets(made, limited, horizon)


def _moved(bound: float, divisors: np.ndarray, factors: np.ndarray | None) -> np.ndarray:
    """How far one record moves what each agent releases, shape (N,); 0 without records."""
    held = divisors > 0
    moved = np.where(held, 2 * bound / np.where(held, divisors, 1.0), 0.0)
    return moved if factors is None else moved * factors


def _within_budgets(made: Plan, limited: np.ndarray, horizon: int) -> Plan:
    """The plan with as many releases, or as large losses, as the accountant that enforces budgets permits."""
    mechanism, allocation, limit, rates = made.mechanism, made.allocation, made.limit, made.rates
    if (compose := allocation.composed_by) is not None:
        return replace(made, equal=composed(mechanism, limit, compose, made.releases, rates))
    if mechanism.adds_up and (allocation.clairvoyant or allocation.sums_to_one):
        return made  # the shares' sum is at most one: no accountant finds more than the budget
    made = replace(
        made, releases=np.where(limited, np.minimum(made.releases, _HORIZONS * horizon), made.releases)
    )

    def losses(agent: int) -> np.ndarray:
        numbers = np.arange(made.releases[agent])
        none = np.zeros(numbers.size, np.int64)
        claimed = made.claimed(Releases(np.full(numbers.size, agent), numbers, none))
        if not (claimed > 0).all():
            wrong = int(np.argmin(claimed > 0))
            message = (
                f"{allocation.kind} gives release {wrong} of agent {{agent}} no positive share of its budget"
            )
            raise AgentError("privacy.allocation", message, agent)
        return claimed

    return replace(made, releases=affordable(mechanism, limit, rates, losses, made.releases))
