"""The plan of releases: how many releases each agent may make, and with how much noise.

The plan follows from budgets, allocations and accountants. It is fixed before a run, from public numbers alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from p2psim.core.errors import AgentError
from p2psim.core.options import derived
from p2psim.privacy.accounting.accountants import ACCOUNTANTS, AccountantName
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import Noise, before_sampling, sampled
from p2psim.privacy.allocations import Allocation, StatedLosses
from p2psim.privacy.mechanisms import Mechanism, noise_scales
from p2psim.privacy.releases import by_agent
from p2psim.privacy.shares import UNLIMITED, Releases, RunForecast, Totals, of_shared_record

#: Of more releases than these no charges are kept.
_MOST_KEPT = 4096

#: Largest scale of noise: a draw, which can be 38 times as large, must be a number.
LARGEST = 1e300


@dataclass(frozen=True)
class Limit:
    """What all releases of each agent may cost together, and who counts.

    Attributes
    ----------
    epsilon : ndarray, shape (N,)
        ε, positive; infinite for no limit and no noise.
    delta : float
        δ; 0 where no accountant needs one. Of one agent's releases, where several may hold the same record.
    enforce : str
        The accountant that stops releases.
    start : ndarray, shape (N,), or None
        Loss of a release that each agent made before the first event, for its start, for the records as scaled;
        infinite where that guarantees nothing.
    start_real : ndarray, shape (N,), or None
        The same for the real records.
    start_noise : Noise or None
        What accountants know of that release; the mechanism's noise when left out.
    promise : ndarray, shape (N,), or None
        ε that a record of each agent may lose to all its holders; `epsilon` when left out.
    holders : int
        The most agents that hold the same record.
    """

    epsilon: np.ndarray
    delta: float = 0.0
    enforce: AccountantName = "basic"
    start: np.ndarray | None = None
    start_real: np.ndarray | None = None
    start_noise: Noise | None = None
    promise: np.ndarray | None = None
    holders: int = 1


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
    poisson : bool
        Whether each record takes part whatever the others do, where rates are below 1.
    equal : ndarray, shape (N,), or None
        Loss of each release of an agent, where an accountant composed them.
    factor : float
        How much larger losses are than budgets permit: above 1 in audits alone, where more is to be seen.
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
    poisson: bool = False
    equal: np.ndarray | None = None
    factor: float = 1.0

    def within(self, limit: Limit, allowance: np.ndarray) -> Plan:
        """The same plan for other budgets, with all of what is known of it that does not depend on them."""
        return derived(self, _OF_ANY_LIMIT, limit=limit, allowance=allowance)

    @property
    def budget(self) -> np.ndarray:
        """ε that a record of each agent may lose, shape (N,)."""
        return self.limit.epsilon if self.limit.promise is None else self.limit.promise

    @cached_property
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

    @cached_property
    def stretch(self) -> np.ndarray:
        """What the real records' loss of a release is times the claimed one, shape (N,): the scale of the records."""
        claimed, unmoved = self.claimed_sensitivity, np.full(self.budget.size, float(self.scale_records))
        return np.divide(self.sensitivity, claimed, out=unmoved, where=claimed > 0)

    @cached_property
    def claims_are_real(self) -> bool:
        """Whether the real records lose what is claimed for the records as scaled."""
        claimed, real = self.limit.start, self.limit.start_real
        alike = claimed is real or (
            claimed is not None and real is not None and np.array_equal(claimed, real)
        )
        return alike and self.is_unscaled

    @cached_property
    def is_unscaled(self) -> bool:
        """Whether releases of the real records lose what they do of the records as scaled."""
        return bool((self.stretch == 1).all())

    def totals(self, parts: Iterable[Releases]) -> Totals | None:
        """Sums of weights that a clairvoyant allocation divides by; None, and nothing is read, for any other.

        Parameters
        ----------
        parts : iterable of Releases
            All of the run.
        """
        if not self.clairvoyant:
            return None
        totals = Totals(np.full(self.budget.size, -np.inf), np.zeros(self.budget.size))
        for part in parts:
            totals = totals.add(part.agents, self._logarithms(part))
        return totals

    @cached_property
    def even(self) -> bool:
        """Whether all releases of an agent have the same loss."""
        return not self.mechanism.is_private or self.equal is not None or self.allocation.even

    def claimed(self, releases: Releases, totals: Totals | None = None) -> np.ndarray:
        """Claimed losses of releases, for the records as scaled, shape (releases,); infinite without noise.

        Parameters
        ----------
        releases : Releases
        totals : Totals, optional
            From `totals`. When left out, a clairvoyant allocation's releases cost what is expected before the run.
        """
        if not self.mechanism.is_private:
            return np.full(releases.agents.size, np.inf)
        endless = np.isinf(self.limit.epsilon[releases.agents])
        if isinstance(self.allocation, StatedLosses):
            losses = self.allocation.stated_losses(releases.numbers)
        elif self.equal is not None:
            losses = self.equal[releases.agents]
        else:
            power, limits = self.mechanism.power, self.releases[releases.agents]
            if totals is not None:
                shares = totals.shares(releases.agents, self._logarithms(releases))
            else:
                # Who may never release has infinite shares, which nothing looks up.
                with np.errstate(divide="ignore"):
                    shares = self.allocation.weights(releases, limits, self.forecast, power)
            losses = (np.where(endless, 1.0, self.allowance[releases.agents]) * shares) ** (1.0 / power)
            if power == 1 and self.sampled:
                losses = before_sampling(losses, self.rates[releases.agents])
        return self.factor * np.where(endless, np.inf, losses)

    def _logarithms(self, releases: Releases) -> np.ndarray:
        return self.allocation.logarithms(releases, self.forecast, self.mechanism.power)

    def scales(self, releases: Releases, totals: Totals | None = None) -> np.ndarray:
        """Scale of the noise of releases, shape (releases,); parameters as in `claimed`.

        Raises
        ------
        MeaningError
            If a scale is too large for its draws to be numbers.
        """
        if self.even and totals is None:
            scales = self._scale_of_each[releases.agents]
        else:
            scales = noise_scales(self.claimed_sensitivity[releases.agents], self.claimed(releases, totals))
        lost = ~(scales <= LARGEST)
        if lost.any():
            agent, number = releases.agents[lost][0], releases.numbers[lost][0]
            what = f"the noise of release {number} of agent {{agent}} overflows"
            message = f"{what}; its share of the budget is too small"
            raise AgentError("privacy.allocation", message, int(agent))
        return scales

    @cached_property
    def all_of_each(self) -> tuple[np.ndarray, np.ndarray]:
        """Agents whose releases are limited, and as many releases as each of them may make."""
        ends = np.where(self.releases == UNLIMITED, 0, self.releases)
        owners = ends.nonzero()[0]
        return owners, ends[owners]

    @cached_property
    def claimed_of_each(self) -> np.ndarray:
        """Claimed loss of each agent's releases, shape (N,), where all of an agent's are alike."""
        agents = np.arange(self.budget.size)
        with np.errstate(all="ignore"):  # of those who may release nothing, which nobody looks up
            return self.claimed(Releases(agents, np.zeros_like(agents), np.zeros_like(agents)))

    @cached_property
    def _scale_of_each(self) -> np.ndarray:
        """Scale of the noise of each agent's releases, shape (N,), where all of an agent's are alike."""
        with np.errstate(all="ignore"):
            return noise_scales(self.claimed_sensitivity, self.claimed_of_each)

    def noise(self, unit: np.ndarray, releases: Releases, totals: Totals | None = None) -> np.ndarray:
        """Noise of releases, shape (releases, p), from what the mechanism drew for them; parameters as in `claimed`."""
        return (
            self.mechanism.of_scale(unit, self.scales(releases, totals))
            if self.mechanism.is_private
            else unit
        )

    def epsilon(self, accountant: str, charges: Charges, lost: np.ndarray | None = None) -> np.ndarray:
        """ε of a record of each agent of each run, whoever else holds it, by an accountant, shape (runs·N,).

        At the limit's δ; infinite without noise, once something was released, and of those who are ``lost``, shape
        (runs·N,), whatever the accountant says.
        """
        charged = charges.offsets[1:] > charges.offsets[:-1]
        if not self.mechanism.is_private or (lost is not None and lost[charged].all()):
            spent = np.where(charged, np.inf, 0.0)
        else:
            spent = ACCOUNTANTS[accountant].epsilon(charges, self.limit.delta)
            if lost is not None:
                spent = np.where(lost, np.inf, spent)
        if self.limit.holders == 1:
            return spent
        runs = np.split(spent, spent.size // self.budget.size)
        return np.concatenate([of_shared_record(run, self.limit.holders) for run in runs])

    def charges(self, claims: Claims, start: np.ndarray | None = None) -> Charges:
        """What releases cost, and each agent's start, for accountants.

        Parameters
        ----------
        claims : Claims
        start : ndarray, shape (N,), optional
            Loss of the agents' starts.

        Returns
        -------
        Charges
            Of N agents for each run of the claims.
        """
        n, runs, known = self.budget.size, claims.runs, self._charged
        key = claims.agents.tobytes(), b"" if claims.counts is None else claims.counts.tobytes(), runs
        if key in known:
            releases = known[key].costing(claims.losses)
        else:
            noises, kinds = self._noises
            owners = np.searchsorted(claims.agents, np.arange(runs * n + 1))
            releases = Charges(noises, kinds[claims.agents % n], claims.losses, owners, claims.counts)
            if claims.agents.size <= _MOST_KEPT:
                known.clear()
                known[key] = releases
        if start is None:
            return releases
        # A start is made of all records.
        noise, start = self.limit.start_noise or self.mechanism.noise, np.tile(start, runs)
        first = np.arange(start.size + 1)
        return releases.plus(Charges((noise,), np.zeros(start.size, np.int32), start, first))

    @cached_property
    def _charged(self) -> dict[tuple[bytes, bytes, int], Charges]:
        """The last charges: the next cell mostly has as many, which cost something else."""
        return {}

    @cached_property
    def _noises(self) -> tuple[tuple[Noise, ...], np.ndarray]:
        """Noises that differ by the share of the records that releases sample, and the place of each agent's."""
        if not self.sampled:
            return (self.mechanism.noise,), np.zeros(self.rates.size, np.int32)
        rates, kinds = np.unique(self.rates, return_inverse=True)
        noises = tuple(sampled(self.mechanism.noise, float(rate), self.poisson) for rate in rates)
        return noises, kinds.reshape(-1).astype(np.int32)


#: What of a plan does not depend on its limit, nor on what agents may lose.
_OF_ANY_LIMIT = (
    "limits", "sampled", "sensitivity", "claimed_sensitivity", "stretch", "is_unscaled", "even", "all_of_each",
    "_charged", "_noises",
)  # fmt: skip


@dataclass(frozen=True)
class Claims:
    """What all releases of a run, or of several, are claimed to cost, for the records as scaled.

    Attributes
    ----------
    agents : ndarray of int, shape (k,)
        Whose each is, in order; agent i of run r is r·N + i.
    losses : ndarray, shape (k,)
    counts : ndarray, shape (k,), or None
        How many equal releases each stands for; None for one.
    runs : int
    """

    agents: np.ndarray
    losses: np.ndarray
    counts: np.ndarray | None = None
    runs: int = 1

    @classmethod
    def of(cls, plan: Plan, releases: Releases, totals: Totals | None) -> Claims:
        """The claims of a plan; one for each agent where all of its releases are alike."""
        return cls.of_runs(plan, [(releases, totals)])

    @classmethod
    def of_runs(cls, plan: Plan, runs: Sequence[tuple[Releases, Totals | None]]) -> Claims:
        """The claims of several runs of a plan."""
        n = plan.budget.size
        if plan.even:
            made = np.concatenate([np.bincount(releases.agents, minlength=n) for releases, _ in runs])
            agents = np.flatnonzero(made)
            return cls(agents, plan.claimed_of_each[agents % n], made[agents].astype(float), len(runs))
        orders = [by_agent(releases) for releases, _ in runs]
        pairs = list(zip(runs, orders, strict=True))
        whose = [releases.agents[order] + r * n for r, ((releases, _), order) in enumerate(pairs)]
        losses = [plan.claimed(releases, totals)[order] for (releases, totals), order in pairs]
        return cls(np.concatenate(whose), np.concatenate(losses), runs=len(runs))
