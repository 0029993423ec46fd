"""The plan of releases: how many releases each agent may make, and with how much noise.

The plan follows from budgets, allocations and accountants. It is fixed before a run, from public numbers alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from p2psim.core.errors import AgentError, MeaningError
from p2psim.privacy.accounting.accountants import ACCOUNTANTS
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import before_sampling, sampled
from p2psim.privacy.allocations import Allocation, StatedLosses
from p2psim.privacy.mechanisms import Mechanism, noise_scales
from p2psim.privacy.section import Limit, affordable, allowances, composed
from p2psim.privacy.shares import UNLIMITED, Releases, RunForecast, Totals, of_shared_record

#: Largest scale of noise: a draw, which can be 38 times as large, must be a number.
LARGEST = 1e300


@dataclass(frozen=True)
class Plan:
    """Releases of all agents: the budgets, the noise, and what may be claimed.

    Attributes
    ----------
    mechanism : Mechanism
        The noise.
    allocation
        How a budget is spread.
    limit : Limit
        The budgets, for the records as scaled.
    allowance : ndarray, shape (N,)
        What an agent's releases have in all of what adds up of their losses; infinite for no noise.
    releases : ndarray of int64, shape (N,)
        The most releases that each agent may make (`UNLIMITED` for any number).
    moved : ndarray, shape (N,)
        How far one record moves the mean gradient of a release, in the mechanism's norm: 2Ξ over what a sum of
        gradients is divided by, n_i, or q·n_i or b for batches; 0 without records.
    dimension : int
        p, the length of a release.
    rates : ndarray, shape (N,)
        Chance of each agent's records to take part in a release; 1 where there are no batches.
    scale_records : float
        Noise as if each record stood for this many.
    forecast : RunForecast
        What is known of the run beforehand.
    equal : ndarray, shape (N,), or None
        Loss of each release of an agent, where an accountant composed them.
    """

    mechanism: Mechanism
    allocation: Allocation
    limit: Limit
    allowance: np.ndarray
    releases: np.ndarray
    moved: np.ndarray
    dimension: int
    rates: np.ndarray
    scale_records: float
    forecast: RunForecast
    equal: np.ndarray | None = None

    @property
    def budget(self) -> np.ndarray:
        """ε that a record of each agent may lose, shape (N,)."""
        return self.limit.promised

    @property
    def limits(self) -> np.ndarray | None:
        """The one number an agent that privacy tells the network; None where nobody is limited."""
        return None if (self.releases == UNLIMITED).all() else self.releases

    @cached_property
    def sampled(self) -> bool:
        """Whether some release is made of a sample of the records."""
        return bool((self.rates < 1).any())

    @property
    def clairvoyant(self) -> bool:
        """Whether the noise depends on the releases that will happen, which nobody could know."""
        return self.mechanism.is_private and self.allocation.clairvoyant

    @cached_property
    def sensitivity(self) -> np.ndarray:
        """Sensitivity of a release in the mechanism's norm, for the real records, shape (N,)."""
        return self.mechanism.sensitivity_of(self.moved, self.dimension)

    @cached_property
    def claimed_sensitivity(self) -> np.ndarray:
        """Sensitivity of a release for the records as scaled, shape (N,)."""
        return self.mechanism.sensitivity_of(self.moved / self.scale_records, self.dimension)

    @property
    def stretch(self) -> np.ndarray:
        """What the real records' loss of a release is times the claimed one, shape (N,): the scale of the records."""
        claimed = self.claimed_sensitivity
        some = claimed > 0
        return np.where(some, self.sensitivity / np.where(some, claimed, 1.0), self.scale_records)

    def totals(self, parts: Iterable[Releases]) -> Totals | None:
        """Sums of weights that a clairvoyant allocation divides by; None, and nothing is read, for any other.

        Parameters
        ----------
        parts : iterable of Releases
            All of the run.
        """
        if not self.clairvoyant:
            return None
        totals = Totals.empty(self.budget.size)
        for part in parts:
            totals = totals.add(part.agents, self._logarithms(part))
        return totals

    @cached_property
    def even(self) -> bool:
        """Whether all releases of an agent have the same loss."""
        return not self.mechanism.is_private or self.equal is not None or self.allocation.even

    @cached_property
    def _firsts(self) -> Releases:
        """A release of each agent."""
        none = np.zeros(self.budget.size, np.int64)
        return Releases(np.arange(self.budget.size), none, none)

    @cached_property
    def _even_losses(self) -> np.ndarray:
        """Loss of any release of each agent, shape (N,), where all are the same."""
        # Who may never release has infinite shares, which nothing looks up.
        with np.errstate(divide="ignore"):
            return self._losses(self._firsts, None)

    @cached_property
    def _even_scales(self) -> np.ndarray:
        """Scale of the noise of any release of each agent, shape (N,), where all are the same."""
        return noise_scales(self.claimed_sensitivity, self.claimed(self._firsts))

    def claimed(self, releases: Releases, totals: Totals | None = None) -> np.ndarray:
        """Claimed losses of releases, for the records as scaled, shape (releases,); infinite without noise.

        Parameters
        ----------
        releases : Releases
        totals : Totals, optional
            From `totals`. When left out, a clairvoyant allocation's releases cost what is expected before the run.
        """
        return self._even_losses[releases.agents] if self.even else self._losses(releases, totals)

    def _losses(self, releases: Releases, totals: Totals | None) -> np.ndarray:
        if not self.mechanism.is_private:
            return np.full(releases.agents.size, np.inf)
        endless = ~self.limit.finite[releases.agents]
        if isinstance(self.allocation, StatedLosses):
            losses = self.allocation.stated_losses(releases.numbers)
        elif self.equal is not None:
            losses = self.equal[releases.agents]
        else:
            allowed = np.where(endless, 1.0, self.allowance[releases.agents])
            losses = (allowed * self._weights(releases, totals)) ** (1.0 / self.mechanism.power)
            if self.mechanism.power == 1 and self.sampled:
                losses = before_sampling(losses, self.rates[releases.agents])
        return np.where(endless, np.inf, losses)

    def _weights(self, releases: Releases, totals: Totals | None) -> np.ndarray:
        """Share of its agent's allowance that each release takes."""
        if totals is not None:
            return totals.shares(releases.agents, self._logarithms(releases))
        limits = self.releases[releases.agents]
        return self.allocation.weights(releases, limits, self.forecast, self.mechanism.power)

    def _logarithms(self, releases: Releases) -> np.ndarray:
        return self.allocation.logarithms(releases, self.forecast, self.mechanism.power)

    def scales(self, releases: Releases, totals: Totals | None = None) -> np.ndarray:
        """Scale of the noise of releases, shape (releases,); parameters as in `claimed`.

        Raises
        ------
        MeaningError
            If a scale is too large for its draws to be numbers.
        """
        if self.even:  # as are all that follow in a run: not looked at one by one
            scales = self._even_scales[releases.agents]
        else:
            scales = noise_scales(self.claimed_sensitivity[releases.agents], self.claimed(releases, totals))
        lost = ~(scales <= LARGEST)
        if lost.any():
            agent, number = releases.agents[lost][0], releases.numbers[lost][0]
            raise AgentError(
                "privacy.allocation",
                f"the noise of release {number} of agent {{agent}} overflows; its share of the budget is too small",
                int(agent),
            )
        return scales

    def noise(self, unit: np.ndarray, releases: Releases, totals: Totals | None = None) -> np.ndarray:
        """Noise of releases, shape (releases, p), from what the mechanism drew for them; parameters as in `claimed`."""
        return self.mechanism.of_scale(unit, self.scales(releases, totals))

    def epsilon(self, accountant: str, charges: Charges) -> np.ndarray:
        """ε of a record of each agent, whoever else holds it, by an accountant, shape (N,).

        At the limit's δ; infinite without noise, once something was released.
        """
        if self.mechanism.is_private:
            spent = ACCOUNTANTS[accountant].epsilon(charges, self.limit.delta)
        else:
            spent = np.where(np.diff(charges.offsets) > 0, np.inf, 0.0)
        return of_shared_record(spent, self.limit.holders)

    def charges(
        self,
        agents: np.ndarray,
        losses: np.ndarray,
        start: np.ndarray | None = None,
        counts: np.ndarray | None = None,
    ) -> Charges:
        """What releases cost, and each agent's start, for accountants.

        Parameters
        ----------
        agents : ndarray of int, shape (releases,)
            Whose each is, in order.
        losses : ndarray, shape (releases,)
        start : ndarray, shape (N,), optional
            Loss of the agents' starts.
        counts : ndarray, shape (releases,), optional
            How many equal releases each stands for; one when left out.
        """
        first = np.arange(self.budget.size + 1)
        rates, kinds = self._rates
        noises = tuple(sampled(self.mechanism.noise, float(rate)) for rate in rates)
        releases = Charges(noises, kinds[agents], losses, np.searchsorted(agents, first), counts)
        if start is None:
            return releases
        # A start is made of all records.
        return releases.plus(Charges((self.mechanism.noise,), np.zeros(start.size, np.int32), start, first))

    @cached_property
    def _rates(self) -> tuple[np.ndarray, np.ndarray]:
        """Shares of the records that releases sample, each once, and the place among them of each agent's."""
        rates, kinds = np.unique(self.rates, return_inverse=True)
        return rates, kinds.reshape(-1).astype(np.int32)


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
        C of `p2psim.theory.bounds.graph.contraction_rate`, for allocation ``contraction`` with rate auto.
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
    held = divisors > 0
    moved = np.where(held, 2 * bound / np.where(held, divisors, 1.0), 0.0)
    planned = Plan(
        mechanism,
        allocation,
        limit,
        allowances(mechanism, limit) if limited.any() else limit.epsilon,
        releases,
        moved if factors is None else moved * factors,
        dimension,
        rates,
        scale_records,
        RunForecast(expected, 1.0 / shares, contraction),
    )
    return planned if never or not limited.any() else _within_budgets(planned, limited, horizon)


def _within_budgets(planned: Plan, limited: np.ndarray, horizon: int) -> Plan:
    """The plan with as many releases, or as large losses, as the accountant that enforces budgets permits."""
    mechanism, allocation, limit, rates = planned.mechanism, planned.allocation, planned.limit, planned.rates
    if (compose := allocation.composed_by) is not None:
        return replace(planned, equal=composed(mechanism, limit, compose, planned.releases, rates))
    if mechanism.adds_up and (allocation.clairvoyant or allocation.sums_to_one):
        return planned  # the shares' sum is at most one: no accountant finds more than the budget
    most = np.where(limited, np.minimum(planned.releases, _HORIZONS * horizon), planned.releases)
    planned = replace(planned, releases=most)

    def losses(agent: int) -> np.ndarray:
        numbers = np.arange(most[agent])
        none = np.zeros(numbers.size, np.int64)
        claimed = planned.claimed(Releases(np.full(numbers.size, agent), numbers, none))
        if not (claimed > 0).all():
            wrong = int(np.argmin(claimed > 0))
            share = (
                f"{allocation.kind} gives release {wrong} of agent {{agent}} no positive share of its budget"
            )
            raise AgentError("privacy.allocation", share, agent)
        return claimed

    return replace(planned, releases=affordable(mechanism, limit, rates, losses, most))
